"""Tickets: a board by kind and state, and one ticket whole."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Final, Literal

import msgspec

from remit.clock import SECOND
from remit.errors import RemitError, UsageError
from remit.pages.page import Page, PageRequest, PageView, See, ShownValue, link, shown, written
from remit.parts.tickets.report import RunReport
from remit.parts.tickets.steps import ToolStep, steps_of
from remit.parts.tickets.ticket import Kind, Status, Ticket
from remit.parts.tickets.tickets import may_retry, tickets_of
from remit.record.teller import words

_COLUMN: Final = 20
"""Tickets of a column of the board."""
_PAGE: Final = 50
_CUT: Final = 200
_HISTORY: Final = 200
_STATES: Final[tuple[Status, ...]] = ("pending", "running", "blocked", "failed", "done")
_TONES: Final[dict[Status, str]] = {
    "pending": "quiet",
    "running": "busy",
    "blocked": "bad",
    "failed": "bad",
    "done": "quiet",
}


class TicketsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which tickets: this is what stands in the address."""

    type: Kind | None = None
    state: Status | None = None
    """Without one, all states stand beside each other."""
    thread: str = ""
    before: str = ""
    """Continue after this ticket of an earlier page."""


class TicketRetryForm(msgspec.Struct, frozen=True, kw_only=True):
    """Whether side effects may happen again."""

    repeat: Literal["", "yes"] = ""


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """A ticket on the board."""

    id: str
    kind: Kind
    state: Status
    tone: str
    about: str
    """The message that it answers."""
    thread: str
    note: str
    """The holder, or why it stopped."""
    created_at: int


class TicketColumn(msgspec.Struct, frozen=True, kw_only=True):
    """The newest tickets in a state."""

    state: Status
    cards: tuple[Card, ...]
    more: bool


class TicketBoard(PageView, frozen=True, kw_only=True):
    """Tickets, newest first."""

    template: ClassVar[str] = "tickets.html"
    query: TicketsQuery
    columns: tuple[TicketColumn, ...]
    next: str = ""
    """Continue after this ticket, if one state is shown; empty: this is all."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to a ticket."""

    at: int
    what: str
    words: str


class TicketView(PageView, frozen=True, kw_only=True):
    """One ticket, whole."""

    template: ClassVar[str] = "ticket.html"
    ticket: Ticket
    tone: str
    about: str
    created_at: int
    updated_at: int
    lease_until: int | None
    thread: str
    facts: tuple[tuple[str, str], ...]
    """Further facts of the message: actor, time, type."""
    steps: tuple[ToolStep, ...]
    wrong: str
    """Why its steps, or their report, cannot be read."""
    report: RunReport | None
    input: ShownValue | None
    outputs: ShownValue | None
    derived: Ticket | None
    """The ticket derived from it."""
    history: tuple[Moment, ...]


async def board(request: PageRequest) -> TicketBoard:
    """The newest tickets of each state; or those of one state, page by page."""
    query: TicketsQuery = request.query
    limit = _PAGE if query.state else _COLUMN
    columns = []
    following = ""
    for state in (query.state,) if query.state else _STATES:
        page = await tickets_of(request.service).page(
            kind=query.type, states=(state,), thread=query.thread, before=query.before, limit=limit + 1
        )
        columns.append(TicketColumn(state=state, cards=tuple(map(_card, page[:limit])), more=len(page) > limit))
        following = page[limit - 1].id if query.state and len(page) > limit else ""
    return TicketBoard(title="Tickets", query=query, columns=tuple(columns), next=following)


async def ticket(request: PageRequest) -> TicketView:
    """The ticket's page. Raises NotFoundError."""
    tickets = tickets_of(request.service)
    ticket_read = await tickets.get(request.path["ticket"])
    meta = ticket_read.metadata
    steps, report, wrong = await _run(request, ticket_read)
    derived = await tickets.get(meta.derived_ticket_id) if meta.derived_ticket_id else None
    events = await request.service.streams.events(f"ticket/{ticket_read.id}")
    event = ticket_read.event if isinstance(ticket_read.event, dict) else {}
    rest = {key: value for key, value in event.items() if key not in {"content", "thread_id"} and value}
    return TicketView(
        title=f"{ticket_read.type} {ticket_read.id[-6:]}",
        ticket=ticket_read,
        tone=_TONES[ticket_read.status],
        about=_message(ticket_read),
        created_at=_micros(meta.created_at),
        updated_at=_micros(meta.updated_at),
        lease_until=_micros(meta.lease_expires) if meta.lease_expires else None,
        thread=_thread(ticket_read),
        facts=tuple((key, value if isinstance(value, str) else written(value)) for key, value in rest.items()),
        steps=steps,
        wrong=wrong,
        report=report,
        input=shown(meta.tool_input) if meta.tool_input is not None and not steps else None,
        outputs=shown(meta.final_outputs) if meta.final_outputs is not None else None,
        derived=derived,
        history=tuple(
            Moment(at=each.at, what=each.kind.removeprefix("ticket_"), words=words(each)) for each in events[-_HISTORY:]
        ),
    )


async def moved(request: PageRequest) -> object:
    """Return what stays equal while nothing happens to the ticket and its run."""
    ticket_read = await tickets_of(request.service).get(request.path["ticket"])
    return ticket_read, await _run(request, ticket_read)


async def retry(request: PageRequest) -> See:
    """Make a failed or blocked ticket pending again."""
    tickets = tickets_of(request.service)
    await may_retry(tickets, request.access, request.path)
    await tickets.retry(request.path["ticket"], repeat=request.form.repeat == "yes", by=request.principal)
    return See(link("/tickets/{}", request.path["ticket"]))


async def _run(request: PageRequest, current: Ticket) -> tuple[tuple[ToolStep, ...], RunReport | None, str]:
    """A TOOL ticket's steps and their outcomes; why they are unknown, if they are."""
    if current.type != "TOOL":
        return (), None, ""
    try:
        steps = steps_of(current.metadata.tool_input, current.tool_steps)
    except UsageError as error:
        return (), None, error.message
    try:
        return steps, await tickets_of(request.service).report(current.id), ""
    except RemitError as error:
        return steps, None, error.message


def _card(current: Ticket) -> Card:
    meta, about = current.metadata, _message(current)
    stopped = meta.block or meta.failure
    note = f"{stopped.code}: {stopped.reason}" if stopped else f"held by {meta.lease_owner}" if meta.lease_owner else ""
    return Card(
        id=current.id,
        kind=current.type,
        state=current.status,
        tone=_TONES[current.status],
        about=about if len(about) <= _CUT else f"{about[:_CUT]}…",
        thread=_thread(current),
        note=note,
        created_at=_micros(meta.created_at),
    )


def _thread(current: Ticket) -> str:
    thread = current.event.get("thread_id", "") if isinstance(current.event, dict) else ""
    return thread if isinstance(thread, str) else written(thread)


def _message(current: Ticket) -> str:
    """Return what is asked, as text."""
    event: Any = current.event
    content = event.get("content", "") if isinstance(event, dict) else event
    return content if isinstance(content, str) else written(content)


def _micros(text: str) -> int:
    """A time of a ticket, in microseconds since the Unix epoch."""
    return round(datetime.fromisoformat(text).timestamp() * SECOND)


PAGES: Final = (
    Page(
        path="/tickets",
        scope="tickets",
        handler=board,
        name="Tickets",
        key="k",
        about="requests to this process, their steps, reports and outputs",
        query=TicketsQuery,
        live="heads",
    ),
    Page(path="/tickets/{ticket}", scope="tickets", handler=ticket, live="events", mark=moved),
    Page(path="/tickets/{ticket}/retry", scope="tickets", handler=retry, form=TicketRetryForm),
)
