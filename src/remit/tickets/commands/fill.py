"""`remit tickets fill`: complete a ticket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.cli.values import json_value
from remit.tickets.commands.session import proof_of, proof_options, session, show_ticket

if TYPE_CHECKING:
    from remit.tickets.queue import Filled
    from remit.tickets.tickets import Tickets


@click.command("fill")
@click.argument("ticket")
@click.option("--outputs", required=True, metavar="JSON|@FILE", help="The ticket's outputs.")
@proof_options
@click.option("--by", metavar="WHO", default="", help="Without a lease: http_fill, system or manual.")
@json_option("the ticket and what was derived from it")
@pass_state
def command(state: State, ticket: str, outputs: str, owner: str | None, token: str | None, by: str) -> int:
    """Complete a ticket with its outputs; follow-up tickets are derived from them.

    A leased ticket needs the --owner and --token of its lease. A ticket that is already done is returned unchanged.
    """
    value, proof = json_value(outputs, "--outputs"), proof_of(owner, token)

    async def fill(tickets: Tickets) -> Filled:
        return await tickets.fill(ticket, value, proof=proof, by=by)

    filled = session(state, fill)
    if state.as_json:
        state.output.json(filled)
        return exit_codes.OK
    show_ticket(state, filled.ticket)
    if not filled.changed:
        state.note("unchanged: it was done before")
    if filled.derived is not None:
        state.note(f"derived: {filled.derived.ticket or 'nothing'} ({filled.derived.reason})")
    return exit_codes.OK
