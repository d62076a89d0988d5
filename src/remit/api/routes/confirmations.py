"""Questions to people over HTTP, and the approvals that are remembered."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

from remit.api.route import ApiRequest, Route
from remit.api.routes.jobs import labels_of
from remit.codes import Code
from remit.gateway.proof import ProofKind
from remit.policy.remembered import Remembered
from remit.service.approvals import LONGEST_S
from remit.service.confirmations import QuestionFilter
from remit.service.reach import sees_tool
from remit.service.views import ConfirmationView
from remit.tools.provider import Preview

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


class EditBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Other arguments for the call, which then has to be approved in its own right."""

    args: dict[str, Any]
    reason: str = ""


class RememberBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which later calls an approval also holds for."""

    scope: Literal["job", "session", "everything"]
    seconds: Annotated[int, msgspec.Meta(ge=1, le=LONGEST_S)]
    exact: bool = False
    """Only calls with the same arguments."""
    digest: str | None = None
    """The one that was shown: approves the question in the same act. Null: you have approved it."""
    reason: str = ""


class RevokeBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why an approval, or a remembered one, ends."""

    reason: str = ""


async def pending(asked: ApiRequest) -> list[ConfirmationView]:
    """List questions: those that can still be answered, or those that cannot any more."""
    query: PendingQuery = asked.query
    wanted = QuestionFilter(
        tool=query.tool, recipe=query.recipe, labels=labels_of(query.label), principal=query.principal
    )
    if query.state == "pending":
        return await _open(asked, query, wanted)
    caller = f"job/{query.job}" if query.job else ""
    answered = await asked.service.confirmations.answered(limit=query.limit)
    found = wanted.of(one for one in answered if caller in {"", one.caller})
    return [one for one in found if sees_tool(asked.access, one.tool)]


async def _open(asked: ApiRequest, query: PendingQuery, wanted: QuestionFilter) -> list[ConfirmationView]:
    """The first open questions that the token may see: a list that is shorter than its limit is the end."""
    found: list[ConfirmationView] = []
    after = query.after
    while len(found) < query.limit:
        page = await asked.service.confirmations.pending(query.job or None, only=wanted, limit=query.limit, after=after)
        found += [one for one in page if sees_tool(asked.access, one.tool)]
        if len(page) < query.limit:
            break
        after = page[-1].confirmation
    return found[: query.limit]


async def view(asked: ApiRequest) -> ConfirmationView:
    """Show a question: the exact call, its digest, who asks and who has approved."""
    return await asked.service.confirmations.view(asked.path["confirmation"])


async def preview(asked: ApiRequest) -> Preview | None:
    """Show what the call would change as things are now, such as a file's diff; null if its tool cannot say."""
    return await asked.service.confirmations.preview(asked.path["confirmation"])


async def approve(asked: ApiRequest) -> ConfirmationView:
    """Approve the exact call with this digest."""
    return await _decide(asked, "approve")


async def deny(asked: ApiRequest) -> ConfirmationView:
    """Deny the call; the reason reaches the caller."""
    return await _decide(asked, "deny")


async def take_back(asked: ApiRequest) -> ConfirmationView:
    """Take back an approval that no call has used; the call asks again."""
    name, body = asked.path["confirmation"], asked.body
    return await asked.service.confirmations.revoke(name, by=asked.principal, reason=body.reason)


async def edit(asked: ApiRequest) -> ConfirmationView:
    """Replace the question by one with other arguments, still to be approved."""
    body: EditBody = asked.body
    return await asked.service.confirmations.edit(
        asked.path["confirmation"], body.args, by=asked.principal, reason=body.reason
    )


async def remember(asked: ApiRequest) -> Remembered | None:
    """Let your approval hold for later calls too, within a scope and for a time; null: more people must want that."""
    body: RememberBody = asked.body
    return await asked.service.approvals.remember(
        asked.path["confirmation"],
        body.scope,
        seconds=body.seconds,
        exact=body.exact,
        digest=body.digest,
        by=asked.principal,
        reason=body.reason,
        proof=_proof(asked),
    )


async def remembered(asked: ApiRequest) -> list[Remembered]:
    """List the remembered approvals that hold now."""
    return [one for one in await asked.service.approvals.active() if sees_tool(asked.access, one.tool)]


async def revoke(asked: ApiRequest) -> None:
    """End a remembered approval: its calls are asked about again."""
    await asked.service.approvals.revoke(asked.path["rule"], by=asked.principal, reason=asked.body.reason)


async def _decide(asked: ApiRequest, decision: Literal["approve", "deny"]) -> ConfirmationView:
    body: DecideBody = asked.body
    return await asked.service.confirmations.decide(
        asked.path["confirmation"],
        decision,
        digest=body.digest,
        by=asked.principal,
        reason=body.reason,
        proof=_proof(asked),
    )


def _proof(asked: ApiRequest) -> ProofKind:
    return "token" if asked.access.principal else ""


_ONE: Final = "/v1/confirmations/{confirmation}"
_CLOSED: Final = (
    Code.CONFIRMATION_NOT_FOUND,
    Code.CONFIRMATION_CLOSED,
    Code.CONFIRMATION_EXPIRED,
    Code.CONFIRMATION_MISMATCH,
    Code.DECIDER_NOT_ALLOWED,
)
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
        method="GET",
        path=_ONE,
        name="confirmations.view",
        scope="read",
        summary="Show a question.",
        handler=view,
        answer=ConfirmationView,
        codes=(Code.CONFIRMATION_NOT_FOUND,),
    ),
    Route(
        method="GET",
        path=f"{_ONE}/preview",
        name="confirmations.preview",
        scope="decide",
        summary="Show what a call would change.",
        handler=preview,
        answer=Preview | None,
        codes=(Code.CONFIRMATION_NOT_FOUND,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/approve",
        name="confirmations.approve",
        scope="decide",
        summary="Approve a call.",
        handler=approve,
        body=DecideBody,
        answer=ConfirmationView,
        codes=_CLOSED,
        example=_ANSWER,
    ),
    Route(
        method="POST",
        path=f"{_ONE}/deny",
        name="confirmations.deny",
        scope="decide",
        summary="Deny a call.",
        handler=deny,
        body=DecideBody,
        answer=ConfirmationView,
        codes=_CLOSED,
        example=_ANSWER,
    ),
    Route(
        method="POST",
        path=f"{_ONE}/revoke",
        name="confirmations.revoke",
        scope="decide",
        summary="Take back an approval.",
        handler=take_back,
        body=RevokeBody,
        answer=ConfirmationView,
        codes=(Code.CONFIRMATION_NOT_FOUND, Code.CONFIRMATION_CLOSED, Code.DECIDER_NOT_ALLOWED),
        example={"reason": "the wrong account"},
    ),
    Route(
        method="POST",
        path=f"{_ONE}/edit",
        name="confirmations.edit",
        scope="decide",
        summary="Ask about other arguments instead.",
        handler=edit,
        body=EditBody,
        answer=ConfirmationView,
        codes=(*_CLOSED, Code.INVALID_TOOL_ARGS, Code.NOT_CANONICAL),
        example={"args": {"path": "notes.md", "content": "shorter"}},
    ),
    Route(
        method="POST",
        path=f"{_ONE}/remember",
        name="confirmations.remember",
        scope="decide",
        summary="Remember an approval.",
        handler=remember,
        body=RememberBody,
        answer=Remembered | None,
        codes=(*_CLOSED, Code.REMEMBERING_OFF),
        example={"scope": "job", "seconds": 3_600, "digest": "sha256:…"},
    ),
    Route(
        method="GET",
        path="/v1/approvals",
        name="approvals.active",
        scope="read",
        summary="List remembered approvals.",
        handler=remembered,
        answer=list[Remembered],
    ),
    Route(
        method="POST",
        path="/v1/approvals/{rule}/revoke",
        name="approvals.revoke",
        scope="decide",
        summary="End a remembered approval.",
        handler=revoke,
        body=RevokeBody,
        status=204,
        codes=(Code.STREAM_NOT_FOUND,),
        example={"reason": "the task is over"},
    ),
)
