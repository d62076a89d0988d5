"""`remit notify list`: the targets and their messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.notify.notifications import TargetView


@click.command("list")
@click.option(
    "--limit", metavar="N", default=5, type=click.IntRange(0, 1_000), help="Show N messages a target. Default: 5."
)
@json_option("the targets")
@pass_state
def command(state: State, limit: int) -> int:
    """List the targets and the state of their last messages.

    A `waiting` message is due later, or is tried again; a `dropped` one was settled before it was sent; a `failed` one
    was given up after a day.
    """
    from remit.cli.running import run_to_end

    async def views() -> list[TargetView]:
        async with state.remit(code="unused") as remit:
            views: list[TargetView] = await remit.service.notifications.views(limit=limit)
            return views

    return state.listing(run_to_end(views()), _print, "no one is told: remit.toml has no [[notify]] table")


def _print(state: State, views: list[TargetView]) -> None:
    from remit.cli.tables import Column, moment, table
    from remit.cli.text import one_line

    out = state.output.out
    for view in views:
        out.line(one_line(f"{view.target}: {view.where}"))
        told = f"{', '.join(view.on)}{f', after {view.after}' if view.after else ''}"
        counts = f"{view.sent} sent, {view.waiting} waiting ({view.failing} failing), {view.failed} failed"
        out.line(f"  {out.style(f'{told}; {counts}', 'dim')}")
        columns = (
            Column("QUEUED", style="dim"),
            Column("EVENT"),
            Column("ABOUT"),
            Column("STATE"),
            Column("TRIES"),
            Column("NEXT", style="dim"),
            Column("SAID", whole=False),
        )
        rows = [
            (
                moment(row.queued_at),
                row.event,
                row.about,
                row.state,
                str(row.attempts),
                moment(row.due_at) if row.due_at is not None else "",
                row.said,
            )
            for row in view.last
        ]
        table(out, columns, rows, indent=2)
