"""Conversations of agents over HTTP."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from remit.api.route import ApiRequest, Route
from remit.api.routes.jobs import WaitQuery, held_row, narrowed
from remit.codes import Code
from remit.errors import AppendConflictError
from remit.jobs.state import ENDED
from remit.service.jobs import Options
from remit.service.views import JobRow


class SayBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said, and how the job that answers is filed if it is a new one."""

    text: str
    title: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    priority: int = 0
    policy: tuple[dict[str, Any], ...] = ()
    """Further rules for its calls; they may deny or ask, never allow."""
    tools: tuple[str, ...] | None = None
    """The only tools that it may call, of those that the conversation has; null: all of those."""
    budget: dict[str, int] = msgspec.field(default_factory=dict)
    job: str = ""
    """Its identifier: `job_` and 26 digits; empty: a new one."""


async def view(asked: ApiRequest) -> list[dict[str, Any]]:
    """Show what was said in a job, in the message format of OpenAI's Chat Completions."""
    job = await asked.service.jobs.find(asked.path["job"])
    return await asked.service.conversations.in_openai_format(job)


async def say(asked: ApiRequest) -> JobRow:
    """Say something to an agent. The answer is the job that answers: this one if it is at work, else a new one."""
    body: SayBody = asked.body
    job = await asked.service.jobs.find(asked.path["job"])
    row = await asked.service.jobs.row(job)
    if row.state not in ENDED:
        asked.access.require("decide")  # it goes on with what it may do, not with what the token is for
    options = Options(
        title=body.title,
        labels={"trace_id": asked.trace.trace_id, **body.labels} if asked.trace.given else body.labels,
        priority=body.priority,
        principal=asked.principal,
        policy=body.policy,
        tools=narrowed(asked, body.tools),
        budget=body.budget,
        job=body.job or asked.identifier("job"),
    )
    try:
        answering = await asked.service.conversations.say(job, body.text, options, key=asked.identifier("say"))
    except AppendConflictError:
        if body.job or not options.job:
            raise
        answering = options.job  # an earlier attempt at this request got that far
    return await held_row(asked, answering)


ROUTES: Final = (
    Route(
        method="GET",
        path="/v1/jobs/{job}/conversation",
        name="conversations.view",
        scope="read",
        summary="Show an agent's conversation.",
        handler=view,
        answer=list[dict[str, Any]],
        codes=(Code.JOB_NOT_FOUND,),
    ),
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
        ),
        example={"text": "And what about last week?"},
    ),
)
