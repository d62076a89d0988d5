"""`remit tickets release`: give a leased ticket back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.tickets.commands.session import session, show_ticket

if TYPE_CHECKING:
    from remit.tickets.ticket import Ticket
    from remit.tickets.tickets import Tickets


@click.command("release")
@click.argument("ticket")
@click.option("--owner", required=True, metavar="NAME", help="Who holds the lease.")
@click.option("--token", required=True, metavar="TOKEN", help="The lease's token.")
@click.option("--reason", default="", metavar="TEXT", help="The reason; it is recorded.")
@json_option("the ticket")
@pass_state
def command(state: State, ticket: str, owner: str, token: str, reason: str) -> int:
    """Give a leased ticket back, so that another worker can take it at once."""
    from remit.journal.leases import LeaseProof

    async def release(tickets: Tickets) -> Ticket:
        return await tickets.release(ticket, LeaseProof(owner=owner, token=token), reason)

    show_ticket(state, session(state, release))
    return exit_codes.OK
