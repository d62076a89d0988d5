"""Questions to people over HTTP, and the approvals that are remembered."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from remit.api.route import ApiRequest, Route
from remit.api.routes.jobs import labels_of
from remit.codes import Code
from remit.gateway.proof import ProofKind
from remit.record.views import ConfirmationView
from remit.service.confirmations import CLOSED, ONE, QuestionFilter
from remit.service.visible import sees_tool

MOST: Final = 1_000
"""Questions of one list."""


class PendingQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which questions."""

    job: str = ""
    """Only those of this job."""
    state: Literal["pending", "answered"] = "pending"
    """Those that can still be answered, oldest first, or those that cannot any more, newest first."""
    tool: str = ""
    """Only those about this tool, by its full name."""
    principal: str = ""
    """Only those that this principal's calls ask."""
    recipe: str = ""
    """Only those of jobs of this recipe or plan."""
    label: tuple[str, ...] = ()
    """`KEY=VALUE`: only those of jobs with this label."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST)] = MOST
    """At most so many; of answered ones, so many are looked at."""
    after: str = ""
    """Only open ones that were asked after this question, the last of an earlier page."""


class DecideBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer. The digest is the one that was shown: an answer to anything else does not count."""

    digest: str
    reason: str = ""


async def pending(request: ApiRequest) -> list[ConfirmationView]:
    """List questions: those that can still be answered, or those that cannot any more."""
    query: PendingQuery = request.query
    wanted = QuestionFilter(
        tool=query.tool, recipe=query.recipe, labels=labels_of(query.label), principal=query.principal
    )
    if query.state == "pending":
        return await _open(request, query, wanted)
    caller = f"job/{query.job}" if query.job else ""
    answered = await request.service.confirmations.answered(limit=query.limit)
    matches = wanted.of(view for view in answered if caller in {"", view.caller})
    return [view for view in matches if sees_tool(request.access, view.tool)]


async def _open(request: ApiRequest, query: PendingQuery, wanted: QuestionFilter) -> list[ConfirmationView]:
    """The first open questions that the token may see: a list that is shorter than its limit is the end."""
    confirmations: list[ConfirmationView] = []
    after = query.after
    while len(confirmations) < query.limit:
        page = await request.service.confirmations.pending(
            query.job or None, only=wanted, limit=query.limit, after=after
        )
        confirmations += [view for view in page if sees_tool(request.access, view.tool)]
        if len(page) < query.limit:
            break
        after = page[-1].confirmation
    return confirmations[: query.limit]


async def approve(request: ApiRequest) -> ConfirmationView:
    """Approve the exact call with this digest."""
    return await _decide(request, "approve")


async def deny(request: ApiRequest) -> ConfirmationView:
    """Deny the call; the reason reaches the caller."""
    return await _decide(request, "deny")


async def _decide(request: ApiRequest, decision: Literal["approve", "deny"]) -> ConfirmationView:
    body: DecideBody = request.body
    return await request.service.confirmations.decide(
        request.path["confirmation"],
        decision,
        digest=body.digest,
        by=request.principal,
        reason=body.reason,
        proof=_proof(request),
    )


def _proof(request: ApiRequest) -> ProofKind:
    return "token" if request.access.principal else ""


_ANSWER: Final = {"digest": "sha256:…", "reason": "checked with the customer"}

ROUTES: Final = (
    Route(
        method="GET",
        path="/v1/confirmations",
        name="confirmations.pending",
        scope="read",
        summary="List open questions.",
        handler=pending,
        query=PendingQuery,
        answer=list[ConfirmationView],
        codes=(Code.CONFIRMATION_NOT_FOUND,),
    ),
    Route(
        method="POST",
        path=f"{ONE}/approve",
        name="confirmations.approve",
        scope="decide",
        summary="Approve a call.",
        handler=approve,
        body=DecideBody,
        answer=ConfirmationView,
        codes=CLOSED,
        example=_ANSWER,
    ),
    Route(
        method="POST",
        path=f"{ONE}/deny",
        name="confirmations.deny",
        scope="decide",
        summary="Deny a call.",
        handler=deny,
        body=DecideBody,
        answer=ConfirmationView,
        codes=CLOSED,
        example=_ANSWER,
    ),
)
