"""`remit work board`: the issues that are worked on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.work.unit import STATES

if TYPE_CHECKING:
    from remit.work.store import UnitRow


@click.command("board")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES), help="Only issues in this state; repeatable."
)
@click.option("--limit", metavar="N", default=100, type=click.IntRange(1, 10_000), help="Show at most N. Default: 100.")
@json_option("the issues")
@pass_state
def command(state: State, states: tuple[str, ...], limit: int) -> int:
    """List the issues that are worked on, newest first."""
    return state.listing(
        state.ask(lambda remit: remit.service.work.board(states=states, limit=limit), code="unused"),
        _print,
        "nothing is worked on: `remit work issue` opens an issue",
    )


def _print(state: State, rows: list[UnitRow]) -> None:
    from remit.cli.tables import Column, moment, table

    columns = ("ISSUE", "STATE", "RUN", "EXECUTOR", Column("CHANGED", style="dim"), Column("TITLE", whole=False))
    cells = [
        (row.issue_ref, row.state, row.run_id or "-", row.executor or "-", moment(row.updated_at), row.title)
        for row in rows
    ]
    table(state.output.out, columns, cells)
