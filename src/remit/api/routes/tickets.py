"""Tickets over HTTP, beside the operations of `remit.service.tickets`: pages, waits and batches."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from remit.api.holding import held
from remit.api.route import ApiRequest, Route
from remit.codes import Code
from remit.tickets.ticket import Kind, Status, Ticket

_PAGE: Final = 1_000
_LONGEST_S: Final = 60


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


class BatchBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages that become TRIAGE tickets."""

    events: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=100)]


class FreeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Tickets of which kind, and how long to hold the answer until there is one."""

    type: Kind
    wait: Annotated[float, msgspec.Meta(ge=0, le=_LONGEST_S)] = 0
    """Seconds to hold the answer until a ticket can be leased."""


class Free(msgspec.Struct, frozen=True):
    """Whether a ticket can be leased."""

    free: bool


async def page(asked: ApiRequest) -> TicketPage:
    """List tickets, newest first, page by page."""
    query: TicketQuery = asked.query
    found = await asked.service.tickets.page(
        kind=query.type, states=query.state, thread=query.thread, before=query.before, limit=query.limit
    )
    return TicketPage(items=found, next=found[-1].id if len(found) == query.limit else None)


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


async def free(asked: ApiRequest) -> Free:
    """Say whether a ticket of a kind can be leased; with `wait`, once there is one. Nothing is leased."""
    query: FreeQuery = asked.query
    found = await asked.service.tickets.free(query.type)
    if not found and query.wait:
        found = bool(await held(asked, asked.service.tickets.free(query.type, wait_s=query.wait), query.wait))
    return Free(found)


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
        example={"events": [{"type": "message", "thread_id": "t1", "content": "Is the build green?"}]},
    ),
    Route(
        method="GET",
        path="/v1/tickets/free",
        name="tickets.free",
        scope="work",
        summary="Wait for a ticket that can be leased.",
        handler=free,
        query=FreeQuery,
        answer=Free,
    ),
)
