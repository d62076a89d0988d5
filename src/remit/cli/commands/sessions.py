"""`remit sessions`: who called from outside any job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.record.views import SessionRow


@click.command("sessions")
@click.option("--limit", metavar="N", default=20, type=click.IntRange(1, 10_000), help="Show at most N. Default: 20.")
@json_option("the sessions")
@pass_state
def command(state: CommandState, limit: int) -> int:
    """List sessions: calls that no job made.

    Each connection of an MCP client is a session, and so is each program that calls tools itself. Newest first; `remit
    trace SESSION` shows what one of them did.
    """
    rows = state.ask(lambda remit: remit.service.sessions.rows(limit=limit), code="unused")
    return state.listing(rows, _print, "no sessions yet")


def _print(state: CommandState, rows: list[SessionRow]) -> None:
    from remit.cli.tables import TableColumn, moment, table

    columns = (
        "SESSION",
        TableColumn("BEGAN", style="dim"),
        TableColumn("LAST", style="dim"),
        TableColumn("WHO", whole=False),
    )
    lines = [(row.session, moment(row.created_at), moment(row.updated_at), row.title) for row in rows]
    table(state.output.out, columns, lines)
