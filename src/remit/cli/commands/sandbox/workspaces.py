"""`remit sandbox workspaces`: what lies in the workspaces, and whose they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.cli.workspaces import WorkspaceRow


@click.command("workspaces")
@json_option("the workspaces")
@pass_state
def command(state: State) -> int:
    """List the workspaces of jobs and sessions.

    The most recently used comes first. Sizes include a workspace's inputs and the copy that lets a run start again
    after a crash.
    """
    from remit.cli.running import run_to_end

    async def look() -> list[WorkspaceRow]:
        from remit.cli.workspaces import listed

        async with state.remit(code="unused") as remit:
            return [row for _, row in await listed(remit, 0, unknown=False)]

    rows = run_to_end(look())
    return state.listing(rows, _print, "there are no workspaces")


def _print(state: State, rows: list[WorkspaceRow]) -> None:
    from remit.cli.tables import Column, moment, table
    from remit.cli.text import one_line

    columns = (
        Column("JOB"),
        Column("STATE", states=True),
        Column("BYTES"),
        Column("FILES"),
        Column("USED", style="dim"),
    )
    table(
        state.output.out,
        columns,
        [(one_line(row.job) or "?", row.state, str(row.bytes), str(row.files), moment(row.used_at)) for row in rows],
    )
