"""`remit tickets work`: lease TOOL tickets and run their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import pass_state
from remit.cli.tickets import LEASE

if TYPE_CHECKING:
    from remit.cli.running import Stop
    from remit.tickets.runner import ExecutorReport

STATUS: Final = {"ok": 0, "blocked": 2, "failed": 3}
"""The exit status by the report's (contract: tickets, "Execution"); 1 is a fatal error."""


@click.command("work")
@click.option("--limit", metavar="N", default=10, type=click.IntRange(1, 100), help="Tickets at once. Default: 10.")
@click.option("--lease-sec", metavar="S", default=300, type=LEASE, help="How long each is leased. Default: 300.")
@click.option("--owner", metavar="NAME", help="Who works on them. Default: this machine and process.")
@click.option("--no-mcp", is_flag=True, help="Do without MCP servers: stand-ins answer, always the same.")
@click.option("--once", is_flag=True, help="Lease and work on one batch, then end.")
@pass_state
def command(state: State, limit: int, lease_sec: int, owner: str | None, no_mcp: bool, once: bool) -> int:
    """Work on TOOL tickets: lease them, run their steps through the gateway, complete, block or fail them.

    When it ends, a report is printed to stdout as JSON, and nothing else; logs go to stderr. Without --once it waits
    for more tickets until it is stopped. Exit status: 0 ok, 1 fatal, 2 some tickets were blocked, 3 some failed.
    """
    from remit.cli.output import reserved_stdout
    from remit.cli.running import run_async

    state.logs = 0 if state.quiet else 1

    async def work(stop: Stop) -> ExecutorReport:
        from remit.tickets.runner import RunnerConfig

        flags = {"tools.no_mcp": True} if no_mcp else None
        async with state.remit(creates=True, flags=flags) as remit:
            engine, mine = remit.runtime.engine, set[str]()
            stop.hurry = engine.stop
            engine.start(only=mine)
            config = RunnerConfig(limit=limit, lease_sec=lease_sec, owner=owner or engine.owner, no_mcp=no_mcp)
            runner = remit.service.tickets.runner(config, remit.service.tickets.executor(mine.add))
            return await runner.run(stop.requested, once=once)

    with reserved_stdout():
        report = run_async(work, gentle=True)
    state.output.json(report)
    return STATUS.get(report.status, exit_codes.ERROR)
