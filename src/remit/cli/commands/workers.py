"""`remit workers`: which processes run jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.service.workers import WorkerView

_SHOWN: Final = 4
"""Recipes that a line names."""


@click.command("workers")
@json_option("the processes, with the version of each recipe")
@pass_state
def command(state: CommandState) -> int:
    """List the processes that run jobs, and the code they run.

    These are `remit worker`, `remit serve`, `remit mcp serve`, `remit tickets work` and Python programs that open a
    Remit. A process that died is left out at once on its own machine, and after jobs.lease_seconds on others. A note
    names processes that run with an older remit.toml than there is now.
    """
    rows = state.ask(lambda remit: remit.service.workers.views(), code="unused")
    for row in rows:
        if row.outdated:
            state.note(
                f"{row.words} runs with an older remit.toml: its log says why; start it again if the file is right"
            )
    return state.listing(rows, _print, "no process runs jobs: start `remit worker`")


def _print(state: CommandState, rows: list[WorkerView]) -> None:
    from remit.cli.tables import TableColumn, moment, table

    columns = ("WORKER", "ROLE", "SINCE", "JOBS", TableColumn("RECIPES", whole=False))
    lines = [(row.words, row.role, moment(row.since), str(row.jobs), _recipes(row.recipes)) for row in rows]
    table(state.output.out, columns, lines)


def _recipes(recipes: dict[str, str]) -> str:
    named = [f"{name} {version}" for name, version in recipes.items()]
    return ", ".join(named[:_SHOWN]) + (f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else "")
