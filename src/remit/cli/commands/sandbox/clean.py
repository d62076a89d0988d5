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
    help="Only workspaces not used for N days. Default: 7.",
)
@click.option("--unknown", is_flag=True, help="Also delete workspaces of jobs that are not in this journal.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@json_option("the deleted workspaces")
@pass_state
def command(state: State, days: int, unknown: bool, dry_run: bool) -> int:
    """Delete workspaces that are no longer needed.

    Deletes the workspaces of ended jobs, and of sessions, that were not used for --days. Keeps the workspace of a job
    that can still continue, however long it waits, and any workspace in use. Collected files stay in the journal.
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
