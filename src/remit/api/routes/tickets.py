"""Tickets over HTTP (contract: tickets, "HTTP")."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from remit.api.route import ApiRequest, Route
from remit.api.routes.leases import Name
from remit.codes import Code
from remit.tickets.queue import Filled
from remit.tickets.report import RunReport
from remit.tickets.ticket import Kind, Proof, Status, Ticket

_PAGE: Final = 1_000


class TicketQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which tickets."""

    type: Kind | None = None
    state: tuple[Status, ...] = ()
    thread: str = ""
    before: str = ""
    """Continue after this ticket of an earlier page."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=_PAGE)] = 20


class TicketPage(msgspec.Struct, frozen=True, kw_only=True):
    """Tickets, newest first."""

    items: list[Ticket]
    next: str | None
    """`before` of the next page; null if this is the last."""


class FillBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a ticket is completed with, and by whom: under a lease, or `by` someone who may fill it directly."""

    outputs: dict[str, Any]
    lease_owner: str = ""
    lease_token: str = ""
    by: str = ""


class BlockBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a ticket cannot go on."""

    code: Name
    reason: Name
    source: Name
    lease_owner: str = ""
    lease_token: str = ""
    outputs: dict[str, Any] | None = None
    """What there is so far."""


class FailBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why the work on a ticket failed."""

    code: Name
    reason: str
    lease_owner: Name
    lease_token: Name
    outputs: dict[str, Any] | None = None
    """What there is so far."""


class BatchBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages that become TRIAGE tickets."""

    events: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=100)]


async def page(asked: ApiRequest) -> TicketPage:
    """List tickets, newest first, page by page."""
    query: TicketQuery = asked.query
    found = await asked.service.tickets.page(
        kind=query.type, states=query.state, thread=query.thread, before=query.before, limit=query.limit
    )
    return TicketPage(items=found, next=found[-1].id if len(found) == query.limit else None)


async def view(asked: ApiRequest) -> Ticket:
    """Show a ticket."""
    return await asked.service.tickets.get(asked.path["ticket"])


async def report(asked: ApiRequest) -> RunReport | None:
    """Show the report of a TOOL ticket's newest run; null if none has begun."""
    return await asked.service.tickets.report(asked.path["ticket"])


async def create(asked: ApiRequest) -> Ticket:
    """Create a ticket of any kind."""
    _check_steps(asked, asked.body)
    return await asked.service.tickets.create(asked.body, principal=asked.principal, identifier=asked.identifier("tkt"))


async def batch(asked: ApiRequest) -> list[Ticket]:
    """Create a TRIAGE ticket for each message, in their order."""
    tickets = asked.service.tickets
    return [
        await tickets.create(
            {"type": "TRIAGE", "event": event},
            principal=asked.principal,
            identifier=asked.identifier("tkt", number),
        )
        for number, event in enumerate(asked.body.events)
    ]


async def fill(asked: ApiRequest) -> Filled:
    """Complete a ticket, and derive what follows. A ticket that is done is returned unchanged."""
    body: FillBody = asked.body
    _check_steps(asked, body.outputs)
    return await asked.service.tickets.fill(asked.path["ticket"], body.outputs, proof=_proof(body), by=body.by)


async def fail(asked: ApiRequest) -> Ticket:
    """Record that the work on a leased ticket failed."""
    body: FailBody = asked.body
    proof = Proof(owner=body.lease_owner, token=body.lease_token)
    return await asked.service.tickets.fail(
        asked.path["ticket"], proof, code=body.code, reason=body.reason, outputs=body.outputs
    )


async def block(asked: ApiRequest) -> Ticket:
    """Record why a pending or leased ticket cannot go on."""
    body: BlockBody = asked.body
    return await asked.service.tickets.block(
        asked.path["ticket"],
        code=body.code,
        reason=body.reason,
        source=body.source,
        proof=_proof(body),
        outputs=body.outputs,
    )


async def retry(asked: ApiRequest) -> Ticket:
    """Make a failed or blocked ticket pending again; what was done stays done."""
    asked.access.require_all_tools("the ticket")
    if (await asked.service.tickets.get(asked.path["ticket"])).type == "TOOL":
        asked.access.require("call")
    return await asked.service.tickets.retry(asked.path["ticket"], by=asked.principal)


def _check_steps(asked: ApiRequest, document: dict[str, Any]) -> None:
    """Raise Problem if a token that may not call, or only some tools, would have a worker make a document's calls."""
    if document.get("type") == "TOOL" or document.get("tool_steps"):
        asked.access.require("call")
        asked.access.require_all_tools("the steps of a ticket")


def _proof(body: FillBody | BlockBody) -> Proof | None:
    return Proof(owner=body.lease_owner, token=body.lease_token) if body.lease_token or body.lease_owner else None


_ONE: Final = "/v1/tickets/{ticket}"
_HELD: Final = (Code.not_found, Code.lease_owner_mismatch, Code.lease_conflict)
_MESSAGE: Final = {"type": "message", "thread_id": "t1", "content": "Is the build green?"}

ROUTES: Final = (
    Route(
        method="GET",
        path="/v1/tickets",
        name="tickets.page",
        scope="tickets",
        summary="List tickets.",
        handler=page,
        query=TicketQuery,
        answer=TicketPage,
    ),
    Route(
        method="POST",
        path="/v1/tickets",
        name="tickets.create",
        scope="tickets",
        summary="Create a ticket.",
        handler=create,
        body=dict[str, Any],
        answer=Ticket,
        status=201,
        starts=True,
        codes=(Code.SCHEMA_VALIDATION_FAILED,),
        example={"type": "TRIAGE", "event": _MESSAGE},
    ),
    Route(
        method="POST",
        path="/v1/triage/batch",
        name="tickets.batch",
        scope="tickets",
        summary="Take several messages.",
        handler=batch,
        body=BatchBody,
        answer=list[Ticket],
        status=201,
        starts=True,
        codes=(Code.SCHEMA_VALIDATION_FAILED,),
        example={"events": [_MESSAGE]},
    ),
    Route(
        method="GET",
        path=_ONE,
        name="tickets.view",
        scope="tickets",
        summary="Show a ticket.",
        handler=view,
        answer=Ticket,
        codes=(Code.not_found,),
    ),
    Route(
        method="GET",
        path=f"{_ONE}/report",
        name="tickets.report",
        scope="tickets",
        summary="Show the report of a ticket's run.",
        handler=report,
        answer=RunReport | None,
        codes=(Code.not_found, Code.INVALID_TOOL_STEP, Code.INVALID_BUDGET),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/fill",
        name="tickets.fill",
        scope="work",
        summary="Complete a ticket.",
        handler=fill,
        body=FillBody,
        answer=Filled,
        codes=(
            *_HELD,
            Code.direct_fill_missing_by,
            Code.direct_fill_not_allowed,
            Code.SCHEMA_VALIDATION_FAILED,
        ),
        example={"outputs": {"triage": "look"}, "by": "http_fill"},
    ),
    Route(
        method="POST",
        path=f"{_ONE}/fail",
        name="tickets.fail",
        scope="work",
        summary="Record that the work on a ticket failed.",
        handler=fail,
        body=FailBody,
        answer=Ticket,
        codes=_HELD,
    ),
    Route(
        method="POST",
        path=f"{_ONE}/block",
        name="tickets.block",
        scope="work",
        summary="Record why a ticket cannot go on.",
        handler=block,
        body=BlockBody,
        answer=Ticket,
        codes=(*_HELD, Code.USAGE),
        example={"code": "MCP_REQUIRED_UNAVAILABLE", "reason": "the server is down", "source": "ann"},
    ),
    Route(
        method="POST",
        path=f"{_ONE}/retry",
        name="tickets.retry",
        scope="tickets",
        summary="Make a failed or blocked ticket pending again.",
        handler=retry,
        answer=Ticket,
        codes=(Code.not_found, Code.lease_conflict, Code.lease_owner_mismatch),
    ),
)
