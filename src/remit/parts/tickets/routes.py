"""Tickets over HTTP, beside the operations of `tickets`: messages, pages, waits, batches and runs."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from remit.api.part import held
from remit.api.route import ApiRequest, DetailedAnswer, Route
from remit.api.routes.tools import PENDING
from remit.api.routes.tools import execute as call
from remit.codes import Code
from remit.errors import UsageError
from remit.http.problem import HttpProblem
from remit.parts.tickets.report import RunReport
from remit.parts.tickets.run import RunRequest, ToolPolicy
from remit.parts.tickets.steps import MAX_STEPS, normalised
from remit.parts.tickets.ticket import Kind, Status, Ticket
from remit.parts.tickets.tickets import tickets_of
from remit.record.outcome import OutcomeView

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


class ExecuteBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call (`tool_name`), or the steps of a ticket (`ticket_id` and `tool_steps`) as one run."""

    tool_name: str = ""
    """A key, or the name as models see it: no dot."""
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    timeout_ms: Annotated[int, msgspec.Meta(ge=1, le=86_400_000)] | None = None
    ticket_id: Annotated[str, msgspec.Meta(max_length=200)] = ""
    attempt: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 0
    """The ticket's retry_count."""
    tool_steps: Annotated[list[dict[str, Any]], msgspec.Meta(max_length=MAX_STEPS)] | None = None
    tool_policy: ToolPolicy = ToolPolicy()


async def take(request: ApiRequest) -> Ticket:
    """Create a TRIAGE ticket from a message of a thread. In strict mode the message has to fit its schema."""
    document = {"type": "TRIAGE", "event": request.body}
    return await tickets_of(request.service).create(
        document, principal=request.principal, identifier=request.identifier("tkt")
    )


async def page(request: ApiRequest) -> TicketPage:
    """List tickets, newest first, page by page."""
    query: TicketQuery = request.query
    rows = await tickets_of(request.service).page(
        kind=query.type, states=query.state, thread=query.thread, before=query.before, limit=query.limit
    )
    return TicketPage(items=rows, next=rows[-1].id if len(rows) == query.limit else None)


async def batch(request: ApiRequest) -> list[Ticket]:
    """Create a TRIAGE ticket for each message, in their order."""
    tickets = tickets_of(request.service)
    return [
        await tickets.create(
            {"type": "TRIAGE", "event": event},
            principal=request.principal,
            identifier=request.identifier("tkt", number),
        )
        for number, event in enumerate(request.body.events)
    ]


async def free(request: ApiRequest) -> Free:
    """Say whether a ticket of a kind can be leased; with `wait`, once there is one. Nothing is leased."""
    query: FreeQuery = request.query
    tickets_free = await tickets_of(request.service).free(query.type)
    if not tickets_free and query.wait:
        tickets_free = bool(
            await held(request, tickets_of(request.service).free(query.type, wait_s=query.wait), query.wait)
        )
    return Free(tickets_free)


async def execute(request: ApiRequest) -> DetailedAnswer:
    """Call a tool through the gateway, or run a ticket's steps.

    A call: 200 with the outcome, whatever it is: `ok`, `failed` or `blocked` with a code. 202 if a person has to
    approve first: the outcome names the confirmation, and the same call made again continues it. 503 while a
    required dependency is missing.

    A run: 200 with its report. The same ticket and attempt is the same run: it is met, not repeated. What a missing
    dependency refuses is in the report, step by step.
    """
    body: ExecuteBody = request.body
    if (body.tool_steps is None) == (not body.tool_name) or (body.tool_steps is not None and not body.ticket_id):
        reason = "Give either tool_name, or ticket_id and tool_steps."
        raise UsageError(reason, code=Code.INVALID_TOOL_STEP)
    if body.tool_steps is None:
        return await call(request)
    return DetailedAnswer(value=await _run(request, body, body.tool_steps))


async def _run(api_request: ApiRequest, body: ExecuteBody, steps: list[dict[str, Any]]) -> RunReport:
    api_request.access.require_all_tools("the steps of a ticket")
    request = RunRequest(
        ticket_id=body.ticket_id,
        attempt=body.attempt,
        tool_steps=tuple(normalised(step, number) for number, step in enumerate(steps)),
        tool_policy=body.tool_policy,
        principal=api_request.principal,
    )
    report = await held(api_request, tickets_of(api_request.service).executor().execute(request), None)
    if report is None:  # the run goes on, and is met when it is asked for again
        raise HttpProblem(Code.SERVER_STOPPING if api_request.stopping.is_set() else Code.INTERRUPTED)
    return report


ROUTES: Final = (
    Route(
        method="POST",
        path="/events",
        name="events.take",
        scope="tickets",
        summary="Take a message; it becomes a TRIAGE ticket.",
        handler=take,
        body=dict[str, Any],
        answer=Ticket,
        status=201,
        starts=True,
        codes=(Code.SCHEMA_VALIDATION_FAILED,),
        example={"type": "message", "thread_id": "t1", "content": "Is the build green?", "actor": "ann"},
    ),
    Route(
        method="POST",
        path="/v1/tools/execute",
        name="tools.execute",
        scope="call",
        summary="Call a tool, or run a ticket's steps.",
        handler=execute,
        body=ExecuteBody,
        answer=(OutcomeView, RunReport),
        also=(PENDING,),
        starts=True,
        keeps_key=True,
        codes=(
            Code.INVALID_TOOL_STEP,
            Code.INVALID_BUDGET,
            Code.MCP_REQUIRED_UNAVAILABLE,
            Code.IDEMPOTENCY_MISMATCH,
            Code.RETRY_REPEATS,
        ),
        example={"tool_name": "fs_read", "args": {"path": "README.md"}},
    ),
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
