"""`remit work late`: results that came when their run was no longer active."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.work.result import WorkResult


@click.command("late")
@click.argument("issue")
@click.argument("run", required=False, default="")
@json_option("the results")
@pass_state
def command(state: State, issue: str, run: str) -> int:
    """Show the results that came when their run was no longer active.

    They are archived, and merged nowhere. `remit work result ISSUE RUN --adopt` takes the newest one of a run by hand.
    """
    return state.listing(
        state.ask(lambda remit: remit.service.work.late(issue, run), code="unused"), _print, "no result came too late"
    )


def _print(state: State, results: list[WorkResult]) -> None:
    from remit.cli.tables import Column, table

    columns = ("RUN", "STATUS", "PR", "COMMIT", Column("SUMMARY", whole=False))
    cells = [
        (result.run_id, result.status, result.changes.pr or "-", result.changes.commit or "-", result.summary)
        for result in results
    ]
    table(state.output.out, columns, cells)
