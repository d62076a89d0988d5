"""Conversations of agents over HTTP."""

from __future__ import annotations

from typing import Final

from remit.api.job_request import Filing
from remit.api.route import ApiRequest, Route
from remit.api.routes.jobs import WaitQuery, held_row
from remit.codes import Code
from remit.jobs.state import ENDED
from remit.record.views import JobRow
from remit.service.admission import NO_ROOM


class SayBody(Filing, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said, and how the job that answers is filed if it is a new one."""

    text: str


async def say(request: ApiRequest) -> JobRow:
    """Say something to an agent. The answer is the job that answers: this one if it is at work, else a new one."""
    body: SayBody = request.body
    job = await request.service.jobs.find(request.path["job"])
    row = await request.service.jobs.row(job)
    if row.state not in ENDED:
        request.access.require("decide")  # it continues with what it may do, not with what the token is for
    options = body.options(request)
    saying = request.service.conversations.say(job, body.text, options, key=request.identifier("say"))
    return await held_row(request, await body.met(options, saying))


ROUTES: Final = (
    Route(
        method="POST",
        path="/v1/jobs/{job}/conversation",
        name="conversations.say",
        scope="call",
        summary="Say something to an agent.",
        handler=say,
        query=WaitQuery,
        body=SayBody,
        answer=JobRow,
        status=201,
        starts=True,
        codes=(
            Code.JOB_NOT_FOUND,
            Code.JOB_NOT_CONVERSATION,
            Code.PAYLOAD_ERASED,
            Code.POLICY_INVALID,
            Code.APPEND_CONFLICT,
            Code.USAGE,
            *NO_ROOM,
        ),
        example={"text": "And what about last week?"},
    ),
)
