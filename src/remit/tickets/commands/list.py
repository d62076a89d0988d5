"""`remit tickets list`: list tickets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.tickets.commands.session import KINDS, STATES, session

if TYPE_CHECKING:
    from remit.tickets.ticket import Ticket
    from remit.tickets.tickets import Tickets


@click.command("list")
@click.option("--type", "kind", type=KINDS, help="Only tickets of this kind.")
@click.option("--state", "states", type=STATES, multiple=True, help="Only tickets in this state; repeatable.")
@click.option("--thread", metavar="ID", default="", help="Only tickets of this thread.")
@click.option("--before", metavar="TICKET", default="", help="Continue after this ticket of an earlier page.")
@click.option("--limit", metavar="N", default=20, type=click.IntRange(1, 1_000), help="Show at most N. Default: 20.")
@json_option("the tickets")
@pass_state
def command(state: State, kind: str | None, states: tuple[str, ...], thread: str, before: str, limit: int) -> int:
    """List tickets, newest first."""

    async def look(tickets: Tickets) -> list[Ticket]:
        return await tickets.page(kind=kind, states=states, thread=thread, before=before, limit=limit)  # type: ignore[arg-type] # click has checked both

    found = session(state, look, writes=False)
    return state.listing(found, _print, "no tickets")


def _print(state: State, tickets: list[Ticket]) -> None:
    from remit.cli.tables import Column, table

    columns = (
        Column("TICKET"),
        Column("TYPE"),
        Column("STATE", states=True),
        Column("CREATED", style="dim"),
        Column("HOLDER", style="dim"),
        Column("MESSAGE", whole=False),
    )
    rows = [
        (
            ticket.id,
            ticket.type,
            ticket.status,
            ticket.metadata.created_at,
            ticket.metadata.lease_owner,
            str(ticket.event.get("content", "")) if isinstance(ticket.event, dict) else "",
        )
        for ticket in tickets
    ]
    table(state.output.out, columns, rows)
