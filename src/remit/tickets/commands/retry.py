"""`remit tickets retry`: make a failed or blocked ticket pending again."""

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


@click.command("retry")
@click.argument("ticket")
@json_option("the ticket")
@pass_state
def command(state: State, ticket: str) -> int:
    """Make a failed or blocked ticket pending again.

    Finished steps are kept; only the others run again.
    """

    async def retry(tickets: Tickets) -> Ticket:
        return await tickets.retry(ticket)

    show_ticket(state, session(state, retry))
    return exit_codes.OK
