"""`remit tickets block`: say why a ticket cannot go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.tickets.commands.session import proof_of, proof_options, session, show_ticket

if TYPE_CHECKING:
    from remit.tickets.ticket import Ticket
    from remit.tickets.tickets import Tickets


@click.command("block")
@click.argument("ticket")
@click.option("--code", required=True, metavar="CODE", help="A stable code, such as MCP_REQUIRED_UNAVAILABLE.")
@click.option("--reason", required=True, metavar="TEXT", help="The reason, in words.")
@click.option("--source", default="manual", metavar="NAME", help="What blocks it. Default: manual.")
@proof_options
@json_option("the ticket")
@pass_state
def command(
    state: State, ticket: str, code: str, reason: str, source: str, owner: str | None, token: str | None
) -> int:
    """Block a pending ticket, or one that you have leased, until someone retries it."""
    proof = proof_of(owner, token)

    async def block(tickets: Tickets) -> Ticket:
        return await tickets.block(ticket, code=code, reason=reason, source=source, proof=proof)

    show_ticket(state, session(state, block))
    return exit_codes.OK
