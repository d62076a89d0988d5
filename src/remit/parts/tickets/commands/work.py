"""`remit tickets work`: lease TOOL tickets and run their steps."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import pass_state
from remit.cli.output import reserved_stdout
from remit.codes import Code
from remit.errors import RemitError, UsageError
from remit.parts.tickets.commands import LEASE

if TYPE_CHECKING:
    from remit.cli.runner import SignalStop
    from remit.parts.tickets.runner import ExecutorReport, RunnerConfig, TicketRunner

    Worked = tuple[ExecutorReport, RemitError | None]
    """The work done, and the failure for good."""

STATUS: Final = {"ok": 0, "blocked": 2, "failed": 3}
"""The exit status by the report's (contract: tickets, "Execution"); 1 is a fatal error."""


_AT_SERVER: Final = "Set NO_MCP or tools.no_mcp where the server runs: the steps run there."


@click.command("work")
@click.option("--limit", metavar="N", default=10, type=click.IntRange(1, 100), help="Tickets at once. Default: 10.")
@click.option(
    "--lease-sec", metavar="S", default=30, type=LEASE, help="Seconds for which each is leased; renewed. Default: 30."
)
@click.option("--owner", metavar="NAME", help="The worker that leases them. Default: this machine and process.")
@click.option("--no-mcp", is_flag=True, help="Run without MCP servers: stubs give fixed answers.")
@click.option("--once", is_flag=True, help="Work on one batch, then exit.")
@pass_state
def command(state: CommandState, limit: int, lease_sec: int, owner: str | None, no_mcp: bool, once: bool) -> int:
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
