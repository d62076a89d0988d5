"""`remit sandbox clean`: deletes workspaces that are no longer needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.cli.workspaces import WorkspaceRow


@click.command("clean")
@click.option(
    "--days",
    metavar="N",
    type=click.IntRange(0, 36_500),
    default=7,
    help="Only those that were not used for N days.",
)
@click.option("--unknown", is_flag=True, help="Also workspaces of jobs that are not in this journal.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@json_option("a list of deleted workspaces")
@pass_state
def command(state: State, days: int, unknown: bool, dry_run: bool) -> int:
    """Delete workspaces that are no longer needed.

    Those are the workspaces of jobs that have ended, and of sessions, if they were not used for --days. A job that can
    still go on keeps its workspace however long it waits, and one that is in use at this moment is left alone. What
    was collected is in the journal, and stays.
    """
    from remit.cli.running import run_to_end

    async def work() -> list[WorkspaceRow]:
        from remit.cli.workspaces import deleted, listed

        async with state.remit(code="unused") as remit:
            found = await listed(remit, days, unknown=unknown)
            return [row for one, row in found if row.deletable and (dry_run or deleted(one))]

    rows = run_to_end(work())
    if state.as_json:
        state.output.json(rows)
    else:
        freed = sum(row.bytes for row in rows)
        word = "would be deleted" if dry_run else "deleted"
        state.output.out.line(f"{len(rows)} workspaces of {freed} bytes {word}")
    return exit_codes.OK
