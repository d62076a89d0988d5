"""`remit versions`: which versions do open jobs need?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import catalog_option, json_option, live_option, pass_state
from remit.cli.output import counted, one_line

if TYPE_CHECKING:
    from remit.parts.drift.needs import Need, VersionsReport

_SERVED: Final = {"yes": "served", "no": "missing", "unknown": "unknown"}
_RETIRE: Final = {
    "recipe": "recipe {0} {1}",
    "migration": "migration of {0} from {1}",
    "patch": "{0}: the old way of {1}",
}


@click.command("versions")
@catalog_option
@live_option
@json_option("what open jobs need, and what can be retired")
@pass_state
def command(state: CommandState, live: bool) -> int:
    """Say which versions open jobs need, and what can be retired.

    Lists each version of a recipe, of plans and of a tool that jobs which have not ended were recorded under, and
    whether a process that works now has it. Then what no open job needs: older recipes that processes still carry, old
    ways of `run.patched`, and, with --live, migrations. Exits with status 1 if an open job needs code that no process
    has.
    """
    report: VersionsReport = state.ask(
        lambda remit: remit.service.drift.versions(), code="needed" if live else "recorded"
    )
    state.show(report, _print)
    missing = any(need.served == "no" and need.kind != "tool" for need in report.needs)
    return exit_codes.ERROR if missing else exit_codes.OK


def _print(state: CommandState, report: VersionsReport) -> None:
    from remit.cli.tables import TableColumn, table

    out = state.output.out
    columns = ("NEEDED", "VERSION", "JOBS", TableColumn("SERVED", states=True), TableColumn("BY", whole=False))
    rows = [(*_what(need), str(need.open), _SERVED[need.served], _by(need)) for need in report.needs]
    table(out, columns, rows)
    if not report.needs:
        out.line("no open job needs anything")
    if report.retirable:
        out.line()
        out.line(out.style("No open job needs:", "dim"))
    for row in report.retirable:
        out.line(f"  {one_line(_RETIRE[row.kind].format(row.name, row.version))}  {out.style(row.why, 'dim')}")
    state.note(f"{counted(report.open, 'open job')}; {counted(len(report.workers), 'worker')} at work")


def _what(need: Need) -> tuple[str, str]:
    name = need.name if need.kind in {"plan", "tool"} else f"recipe {need.name}"
    return name, need.version or (f"{need.schema[:19]}…" if need.schema else "none")


def _by(need: Need) -> str:
    """Return who has it; else the jobs that wait for it."""
    return ", ".join(need.served_by) or f"for {', '.join(need.open_jobs)}"
