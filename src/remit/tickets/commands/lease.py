"""`remit tickets lease`: lease tickets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.tickets.commands.session import KINDS, LEASE, session

if TYPE_CHECKING:
    from remit.tickets.ticket import Leased
    from remit.tickets.tickets import Tickets


@click.command("lease")
@click.argument("ticket", required=False)
@click.option("--type", "kind", type=KINDS, default="TRIAGE", help="The kind, without TICKET. Default: TRIAGE.")
@click.option("--owner", required=True, metavar="NAME", help="The worker that leases them.")
@click.option("--limit", metavar="N", default=1, type=click.IntRange(1, 100), help="Lease at most N. Default: 1.")
@click.option("--lease-sec", metavar="S", default=300, type=LEASE, help="Seconds for which it is leased. Default: 300.")
@json_option("the leases, each with its ticket and token")
@pass_state
def command(state: State, ticket: str | None, kind: str, owner: str, limit: int, lease_sec: int) -> int:
    """Lease one ticket, or the oldest of a kind.

    The printed token proves the lease: `fill`, `block` and `release` need it, together with the owner.
    """

    async def lease(tickets: Tickets) -> list[Leased]:
        if ticket is not None:
            return [await tickets.lease_by_id(ticket, owner=owner, lease_sec=lease_sec)]
        return await tickets.lease(kind, owner=owner, limit=limit, lease_sec=lease_sec)  # type: ignore[arg-type] # click has checked it

    found = session(state, lease)
    if state.as_json:
        state.output.json(found)
    elif not found:
        state.note(f"no {kind} ticket is free")
    for one in () if state.as_json else found:
        state.output.out.line(f"{one.ticket.id}  token {one.lease_token}  until {one.lease_expires}")
    return exit_codes.OK
