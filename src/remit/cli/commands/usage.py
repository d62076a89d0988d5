"""`remit usage`: what models took."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.record.usage import BudgetRow, By, UsageRow

_BY = ("job", "principal", "model", "day")


@click.command("usage")
@click.option("--by", type=click.Choice(_BY), default="model", help="Group by this. Default: model.")
@click.option(
    "--days",
    metavar="N",
    type=click.IntRange(1, 36_500),
    default=30,
    help="Look back N days (UTC), today included. Default: 30.",
)
@click.option("--budgets", is_flag=True, help="Show how full the budgets of models are.")
@json_option("the sums")
@pass_state
def command(state: CommandState, by: By, days: int, *, budgets: bool) -> int:
    """Show what models used: requests, tokens, dollars.

    Costs are estimates; what has no known price is not counted as 0. An answer that never arrived counts as the most it
    could have used.
    """
    from remit.clock import DAY

    if budgets:
        state_rows = state.ask_here(lambda remit: remit.service.usage.budgets(), code="unused")
        return state.listing(state_rows, _print_budgets, "no budget of models is set: models.budgets")
    rows = state.ask_here(
        lambda remit: remit.service.usage.rows(by, since=(remit.clock.now() // DAY - days + 1) * DAY), code="unused"
    )
    return state.listing(rows, partial(_print, by), f"no model was used in the last {days} days")


def _print_budgets(state: CommandState, rows: list[BudgetRow]) -> None:
    from remit.cli.tables import table

    columns = ("BUDGET", "OF", "PERIOD", "%", "TAKEN")
    table(
        state.output.out, columns, [(row.budget, row.share, row.period, f"{row.percent:g}", row.words) for row in rows]
    )


def _print(by: By, state: CommandState, rows: list[UsageRow]) -> None:
    from remit.cli.tables import table
    from remit.record.usage import priced

    columns = (by.upper(), "REQUESTS", "TOKENS", "US$")
    lines = [(row.name, str(row.calls), str(row.tokens), priced(row.cost, row.unpriced)) for row in rows]
    table(state.output.out, columns, lines)
