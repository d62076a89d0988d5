"""`remit mcp serve`: the governed catalog, to any MCP client."""

from __future__ import annotations

import click

from remit.cli.context import State
from remit.cli.listening import PORT, Listening, listening_options
from remit.cli.options import pass_state


@click.command("serve")
@click.option("--http", "over_http", is_flag=True, help="Serve many clients over streamable HTTP, not stdio.")
@listening_options(PORT, "With --http: ")
@click.option("--no-work", is_flag=True, help="Leave jobs that clients start to `remit worker`.")
@pass_state
def command(
    state: State,
    over_http: bool,
    listening: Listening,
    no_work: bool,
) -> int:
    """Serve the tools of this project to MCP clients.

    Every call passes the same policy, confirmations and journal as any other; each client's session is a stream of the
    journal. Without --http one client is served on stdin and stdout. Over HTTP it answers at /mcp, on 127.0.0.1 port
    8321 unless told otherwise; [[clients]] names who may connect; without it only this machine may.
    """
    from remit.cli.serving import Offer, serve
    from remit.mcp_server.names import WireNames

    offer = Offer(WireNames(), {}, work=not no_work)
    return serve(state, offer, listening if over_http else None)
