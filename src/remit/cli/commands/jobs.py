"""`remit jobs`: a list of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from remit.cli import exit_codes
from remit.cli.context import State, file_of
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.service.views import JobRow

_STATES: Final = ("pending", "running", "waiting", "completed", "failed", "cancelled")
_WIDE: Final = 110
"""Columns from which on there is room for the whole time."""


@click.command("jobs")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(_STATES), help="Only jobs in this state; may be repeated."
)
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Only with this label; may be repeated.")
@click.option("--limit", metavar="N", default=20, type=click.IntRange(1, 10_000), help="Show at most N. Default: 20.")
@json_option("a list of jobs")
@pass_state
def command(state: State, states: tuple[str, ...], labels: tuple[str, ...], limit: int) -> int:
    """List jobs, newest first.

    A job that was running is `stopped` when its process is gone, and `stuck` when the code here cannot go on with it:
    `remit resume` goes on with both.
    """
    from remit.cli.running import run_async
    from remit.cli.values import pairs

    wanted = pairs(labels, "--label")

    async def look() -> tuple[list[JobRow], str]:
        async with state.open(code="unused") as remit:
            return await remit.service.jobs.rows(states, labels=wanted, limit=limit), remit.url

    rows, url = run_async(lambda _stop: look())
    if state.as_json:
        state.output.json(rows)
    elif rows:
        _print(state, rows)
    else:
        # A file that is not there yet is read as one in memory.
        place = url if state.server else file_of(state.settings().journal.url) or url
        state.note(f"no jobs in {place}" if not states and not labels else "no such jobs")
    return exit_codes.OK


def _print(state: State, rows: list[JobRow]) -> None:
    from remit.cli.tables import Column, moment, table
    from remit.clock import SystemClock, age
    from remit.service.states import about, shown_state

    out = state.output.out
    wide = out.width is None or out.width >= _WIDE
    now = SystemClock().now()
    columns = (
        Column("JOB"),
        Column("STATE", states=True),
        Column("CREATED" if wide else "AGE", style="dim"),
        Column("NAME", whole=False),
        Column("ABOUT", whole=False),
    )
    times = (moment(row.created_at) if wide else age(now - row.created_at) for row in rows)
    table(
        out,
        columns,
        [(row.job, shown_state(row), time, row.name, about(row)) for row, time in zip(rows, times, strict=True)],
    )
