"""`remit tickets`: work that comes in as messages, is done by tools, and ends in a reply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.group import LazyCommand, LazyGroup, show_help
from remit.cli.options import json_option, pass_state
from remit.cli.output import clean, pretty, reserved_stdout
from remit.cli.values import json_value
from remit.codes import Code
from remit.errors import RemitError, UsageError

if TYPE_CHECKING:
    from remit.journal.leases import LeaseProof
    from remit.parts.tickets.reader import Filled
    from remit.parts.tickets.report import RunReport
    from remit.parts.tickets.ticket import Kind, Leased, Status, Ticket
    from remit.parts.tickets.tickets import Tickets

COMMANDS: Final[dict[str, LazyCommand]] = {
    "create": LazyCommand("Tickets", "Create a ticket."),
    "list": LazyCommand("Tickets", "List tickets, newest first."),
    "show": LazyCommand("Tickets", "Show a ticket, or the report of its run."),
    "lease": LazyCommand("Work", "Lease tickets, so that no other worker takes them."),
    "fill": LazyCommand("Work", "Complete a ticket with its outputs."),
    "block": LazyCommand("Work", "Block a ticket, with a reason."),
    "release": LazyCommand("Work", "Give a leased ticket back."),
    "retry": LazyCommand("Work", "Make a failed or blocked ticket pending again."),
    "work": LazyCommand("Work", "Lease TOOL tickets and run their steps."),
}


@click.group("tickets", cls=LazyGroup, entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Work with tickets: messages that become tool runs and replies.

    TRIAGE decides what to do, TOOL does it through the gateway, REPLY answers.
    """
    show_help(context)


T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

KINDS: Final = click.Choice(["TRIAGE", "TOOL", "REPLY"], case_sensitive=False)
STATES: Final = click.Choice(["pending", "running", "blocked", "failed", "done"])
LEASE: Final = click.IntRange(1, 86_400)


def proof_options(command: F) -> F:
    """The options that prove a lease."""
    owner = click.option("--owner", metavar="NAME", help="Who holds the lease.")
    token = click.option("--token", metavar="TOKEN", help="The lease's token, as `remit tickets lease` printed it.")
    return owner(token(command))


def proof_of(owner: str | None, token: str | None) -> LeaseProof | None:
    """The proof of a lease, if both parts were given. Raise UsageError for one alone."""
    from remit.journal.leases import LeaseProof

    if (owner is None) != (token is None):
        raise click.UsageError("A lease is proved by --owner and --token together.")
    return LeaseProof(owner=owner, token=token) if owner is not None and token is not None else None


def session(
    state: CommandState, use: Callable[[Tickets], Awaitable[T]], *, creates: bool = False, writes: bool = True
) -> T:
    """Open the journal or the server, use its tickets, close it."""
    return state.ask(lambda remit: use(remit.service.tickets), code="unused", writes=writes, creates=creates)


def print_ticket(state: CommandState, ticket: Ticket) -> None:
    """Print which ticket it is, and its state."""
    out = state.output.out
    out.line(f"{ticket.id}  {ticket.type}  {out.style(ticket.status, ticket.status)}")


def _print_whole(state: CommandState, ticket: Ticket) -> None:
    from remit.cli.tables import fields

    print_ticket(state, ticket)
    out, meta = state.output.out, ticket.metadata
    stopped = meta.block or meta.failure
    fields(
        out,
        (
            ("created", meta.created_at),
            ("updated", meta.updated_at),
            ("thread", _of(ticket.event, "thread_id")),
            ("actor", _of(ticket.event, "actor")),
            ("held by", f"{meta.lease_owner} until {meta.lease_expires}" if meta.lease_owner else ""),
            ("retries", str(meta.retry_count) if meta.retry_count else ""),
            ("stopped by", f"{stopped.code} ({stopped.source}): {stopped.reason}" if stopped else ""),
            ("parent", meta.parent_ticket_id),
            ("derived", f"{meta.derived_ticket_id} {meta.derive_reason}".strip()),
        ),
    )
    _json(state, "message", _of(ticket.event, "content"))
    _json(state, "input", meta.tool_input)
    _json(state, "outputs", meta.final_outputs)


def _of(event: Any, field: str) -> str:
    return str(event.get(field, "")) if isinstance(event, dict) else ""


def _json(state: CommandState, title: str, value: Any) -> None:
    if value in (None, ""):
        return

    out = state.output.out
    out.line(f"  {out.style(title, 'dim')}")
    text = value if isinstance(value, str) else pretty(value)
    for row in text.splitlines():
        out.line("    " + clean(row))


@command.command("create")
@click.argument("document", required=False, metavar="[JSON|@FILE]")
@click.option("--type", "kind", type=KINDS, default="TRIAGE", help="The ticket's kind. Default: TRIAGE.")
@click.option("--thread", metavar="ID", help="The thread that the message belongs to.")
@click.option("--content", metavar="TEXT", help="The message.")
@click.option("--actor", metavar="NAME", help="Who wrote the message. Default: you.")
@click.option("--steps", metavar="JSON|@FILE", help="The steps of a TOOL ticket: [{tool_name, args}].")
@json_option("the ticket")
@pass_state
@click.pass_context
def create_command(
    context: click.Context,
    state: CommandState,
    document: str | None,
    kind: str,
    thread: str | None,
    content: str | None,
    actor: str | None,
    steps: str | None,
) -> int:
    """Create a ticket, from a message or from a whole document.

    \b
    remit tickets create --thread t1 --content "the build is red"
    remit tickets create --type TOOL --thread t1 --content "…" --steps '[{"tool_name": "fs_read", "args": {…}}]'
    remit tickets create @ticket.json
    """  # noqa: D301 - click reads the backspace: these lines stay as they are
    if (document is None) == (thread is None or content is None):
        raise click.UsageError("Give a document, or --thread and --content.", context)
    if document is not None:
        parsed = json_value(document, "DOCUMENT")
    else:
        message = {"type": "message", "thread_id": thread, "content": content, "actor": actor or ""}
        parsed = {"type": kind, "event": message}
        if steps is not None:
            parsed["tool_input"] = {"event": message, "tool_steps": json_value(steps, "--steps")}

    return state.show(session(state, lambda tickets: tickets.create(parsed), creates=True), print_ticket)


@command.command("list")
@click.option("--type", "kind", type=KINDS, help="Only tickets of this kind.")
@click.option("--state", "states", type=STATES, multiple=True, help="Only tickets in this state; repeatable.")
@click.option("--thread", metavar="ID", default="", help="Only tickets of this thread.")
@click.option("--before", metavar="TICKET", default="", help="Continue after this ticket of an earlier page.")
@click.option("--limit", metavar="N", default=20, type=click.IntRange(1, 1_000), help="Show at most N. Default: 20.")
@json_option("the tickets")
@pass_state
def list_command(
    state: CommandState, kind: Kind | None, states: tuple[Status, ...], thread: str, before: str, limit: int
) -> int:
    """List tickets, newest first."""
    page = session(
        state,
        lambda tickets: tickets.page(kind=kind, states=states, thread=thread, before=before, limit=limit),
        writes=False,
    )
    return state.listing(page, _print_list, "no tickets")


def _print_list(state: CommandState, tickets: list[Ticket]) -> None:
    from remit.cli.tables import TableColumn, table

    created, holder = TableColumn("CREATED", style="dim"), TableColumn("HOLDER", style="dim")
    columns = (
        "TICKET",
        "TYPE",
        TableColumn("STATE", states=True),
        created,
        holder,
        TableColumn("MESSAGE", whole=False),
    )
    rows = [
        (
            ticket.id,
            ticket.type,
            ticket.status,
            ticket.metadata.created_at,
            ticket.metadata.lease_owner,
            _of(ticket.event, "content"),
        )
        for ticket in tickets
    ]
    table(state.output.out, columns, rows)


@command.command("show")
@click.argument("ticket")
@click.option("--report", is_flag=True, help="Show the report of the newest run.")
@json_option("the ticket, or the report")
@pass_state
def show_command(state: CommandState, ticket: str, report: bool) -> int:
    """Show a ticket: its message, state and outputs."""
    if report:
        newest = session(state, lambda tickets: tickets.report(ticket), writes=False)
        if newest is not None:
            return state.show(newest, _print_report)
        return state.show(None, lambda state, _: state.note(f"no run of {ticket} has begun"))
    return state.show(session(state, lambda tickets: tickets.get(ticket), writes=False), _print_whole)


def _print_report(state: CommandState, report: RunReport) -> None:
    from remit.cli.tables import TableColumn, fields, table

    out = state.output.out
    out.line(f"{report.run_id}  {out.style(report.status, report.status)}  {report.code or ''}".rstrip())
    fields(
        out,
        (
            ("began", report.started_at),
            ("took", f"{report.duration_ms} ms"),
            ("verdict", f"{report.tool_verdict.status} {report.tool_verdict.reason}".strip()),
            ("evidence", str(len(report.evidence_summary.items))),
        ),
    )
    columns = ("STEP", "TOOL", TableColumn("STATE", states=True), "CODE", "MS", TableColumn("RESULT", whole=False))
    rows = [
        (str(step.step_index), step.tool_name, step.status, step.code or "", str(step.duration_ms), step.result_summary)
        for step in report.step_reports
    ]
    table(out, columns, rows, indent=2)


@command.command("lease")
@click.argument("ticket", required=False)
@click.option("--type", "kind", type=KINDS, default="TRIAGE", help="The kind, without TICKET. Default: TRIAGE.")
@click.option("--owner", required=True, metavar="NAME", help="The worker that leases them.")
@click.option("--limit", metavar="N", default=1, type=click.IntRange(1, 100), help="Lease at most N. Default: 1.")
@click.option("--lease-sec", metavar="S", default=300, type=LEASE, help="Seconds for which it is leased. Default: 300.")
@json_option("the leases, each with its ticket and token")
@pass_state
def lease_command(state: CommandState, ticket: str | None, kind: Kind, owner: str, limit: int, lease_sec: int) -> int:
    """Lease one ticket, or the oldest of a kind.

    The printed token proves the lease: `fill`, `block` and `release` need it, together with the owner.
    """

    async def lease(tickets: Tickets) -> list[Leased]:
        if ticket is not None:
            return [await tickets.lease_by_id(ticket, owner=owner, lease_sec=lease_sec)]
        return await tickets.lease(kind, owner=owner, limit=limit, lease_sec=lease_sec)

    return state.listing(session(state, lease), _print_leases, f"no {kind} ticket is free")


def _print_leases(state: CommandState, leases: list[Leased]) -> None:
    for lease in leases:
        state.output.out.line(f"{lease.ticket.id}  token {lease.lease_token}  until {lease.lease_expires}")


@command.command("fill")
@click.argument("ticket")
@click.option("--outputs", required=True, metavar="JSON|@FILE", help="The ticket's outputs.")
@proof_options
@click.option("--by", metavar="WHO", default="", help="Without a lease: http_fill, system or manual.")
@json_option("the ticket and what was derived from it")
@pass_state
def fill_command(state: CommandState, ticket: str, outputs: str, owner: str | None, token: str | None, by: str) -> int:
    """Complete a ticket with its outputs; follow-up tickets are derived from them.

    A leased ticket needs the --owner and --token of its lease. A ticket that is already done is returned unchanged.
    """
    value, proof = json_value(outputs, "--outputs"), proof_of(owner, token)
    return state.show(session(state, lambda tickets: tickets.fill(ticket, value, proof=proof, by=by)), _print_filled)


def _print_filled(state: CommandState, filled: Filled) -> None:
    print_ticket(state, filled.ticket)
    if not filled.changed:
        state.note("unchanged: it was done before")
    if filled.derived is not None:
        state.note(f"derived: {filled.derived.ticket or 'nothing'} ({filled.derived.reason})")


@command.command("block")
@click.argument("ticket")
@click.option("--code", required=True, metavar="CODE", help="A stable code, such as MCP_REQUIRED_UNAVAILABLE.")
@click.option("--reason", required=True, metavar="TEXT", help="The reason, in words.")
@click.option("--source", default="manual", metavar="NAME", help="What blocks it. Default: manual.")
@proof_options
@json_option("the ticket")
@pass_state
def block_command(
    state: CommandState, ticket: str, code: str, reason: str, source: str, owner: str | None, token: str | None
) -> int:
    """Block a pending ticket, or one that you have leased, until someone retries it."""
    proof = proof_of(owner, token)
    blocked = session(
        state, lambda tickets: tickets.block(ticket, code=code, reason=reason, source=source, proof=proof)
    )
    return state.show(blocked, print_ticket)


@command.command("release")
@click.argument("ticket")
@click.option("--owner", required=True, metavar="NAME", help="Who holds the lease.")
@click.option("--token", required=True, metavar="TOKEN", help="The lease's token.")
@click.option("--reason", default="", metavar="TEXT", help="The reason; it is recorded.")
@json_option("the ticket")
@pass_state
def release_command(state: CommandState, ticket: str, owner: str, token: str, reason: str) -> int:
    """Give a leased ticket back, so that another worker can take it at once."""
    from remit.journal.leases import LeaseProof

    proof = LeaseProof(owner=owner, token=token)
    return state.show(session(state, lambda tickets: tickets.release(ticket, proof, reason)), print_ticket)


@command.command("retry")
@click.argument("ticket")
@click.option("--repeat", is_flag=True, help="Repeat calls that took effect, or may have.")
@json_option("the ticket")
@pass_state
def retry_command(state: CommandState, ticket: str, repeat: bool) -> int:
    """Make a failed or blocked ticket pending again.

    Finished steps are kept; only the others run again.
    """
    return state.show(session(state, lambda tickets: tickets.retry(ticket, repeat=repeat)), print_ticket)


if TYPE_CHECKING:
    from remit.cli.runner import SignalStop
    from remit.parts.tickets.runner import ExecutorReport, RunnerConfig, TicketRunner

    Worked = tuple[ExecutorReport, RemitError | None]
    """The work done, and the failure for good."""

STATUS: Final = {"ok": 0, "blocked": 2, "failed": 3}
"""The exit status by the report's (contract: tickets, "Execution"); 1 is a fatal error."""


_AT_SERVER: Final = "Set NO_MCP or tools.no_mcp where the server runs: the steps run there."


@command.command("work")
@click.option("--limit", metavar="N", default=10, type=click.IntRange(1, 100), help="Tickets at once. Default: 10.")
@click.option(
    "--lease-sec", metavar="S", default=30, type=LEASE, help="Seconds for which each is leased; renewed. Default: 30."
)
@click.option("--owner", metavar="NAME", help="The worker that leases them. Default: this machine and process.")
@click.option("--no-mcp", is_flag=True, help="Run without MCP servers: stubs give fixed answers.")
@click.option("--once", is_flag=True, help="Work on one batch, then exit.")
@pass_state
def work_command(state: CommandState, limit: int, lease_sec: int, owner: str | None, no_mcp: bool, once: bool) -> int:
    """Work on TOOL tickets: lease them, run their steps through the gateway, complete, block or fail them.

    Prints only a report to stdout, as JSON, when it ends; logs go to stderr. Without --once it waits for more tickets
    until it is stopped. With --server the steps run there, and this process only leases tickets and ends them. Exit
    status: 0 ok, 1 fatal, 2 some tickets were blocked, 3 some failed.
    """
    from remit.cli.errors import InterruptedByUserError
    from remit.cli.errors import report as tell
    from remit.cli.runner import run_async
    from remit.cli.services import beside, keep_engine

    state.logs = 0 if state.quiet else 1

    async def there(stop: SignalStop) -> Worked:
        from remit.journal.leases import Owner

        if no_mcp:
            raise UsageError("--no-mcp does without MCP servers here", code=Code.LOCAL_ONLY, remedy=_AT_SERVER)
        config = _config(owner or str(Owner.this()))
        async with state.open(code="unused") as remit:
            runner = remit.service.tickets.runner(config, remit.service.tickets.executor())
            return await _worked(runner, stop, once=once)

    async def here(stop: SignalStop) -> Worked:
        flags = {"tools.no_mcp": True} if no_mcp else None
        async with AsyncExitStack() as stack:
            remit = await stop.unless(stack.enter_async_context(state.remit(creates=True, flags=flags)))
            if remit is None:
                raise InterruptedByUserError
            engine, tickets = remit.engine, remit.service.tickets
            stop.hurry = engine.stop
            engine.start(only=remit.awaited, role="tickets")
            config = _config(owner or engine.owner)
            runner = tickets.runner(config, tickets.executor())
            async with remit.sending(), beside(keep_engine(remit)):
                return await _worked(runner, stop, once=once)

    def _config(owner: str) -> RunnerConfig:
        from remit.parts.tickets.runner import RunnerConfig

        return RunnerConfig(limit=limit, lease_sec=lease_sec, owner=owner, no_mcp=no_mcp)

    with reserved_stdout():
        report, fatal = run_async(there if state.server else here, gentle=True)
    state.output.json(report)
    if fatal is None:
        return STATUS[report.status]
    tell(fatal, state.output, as_json=state.as_json, verbose=bool(state.verbose))
    return exit_codes.ERROR


async def _worked(runner: TicketRunner, stop: SignalStop, *, once: bool) -> Worked:
    """Return what was done, also if something then failed for good."""
    try:
        return await runner.run(stop.requested, once=once), None
    except RemitError as error:
        return runner.report(), error
