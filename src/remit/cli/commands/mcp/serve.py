"""`remit mcp serve`: the governed catalog, to any MCP client."""

from __future__ import annotations

import click

from remit.cli.context import CommandState
from remit.cli.listen_options import PORT, ListenOptions, listening_options
from remit.cli.options import pass_state


@click.command("serve")
@click.option("--http", "over_http", is_flag=True, help="Serve many clients over streamable HTTP instead of stdio.")
@listening_options(PORT, "With --http: ")
@click.option("--no-work", is_flag=True, help="Leave the jobs that clients start to `remit worker`.")
@pass_state
def command(
    state: CommandState,
    over_http: bool,
    listening: ListenOptions,
    no_work: bool,
) -> int:
    """Serve the tools of this project to MCP clients.

    Every call passes the same policy, approvals and journal as any other; each client's session is recorded as a
    stream. By default it serves one client on stdin and stdout. With --http it listens on 127.0.0.1:8321 and answers at
    /mcp; [[clients]] names who may connect; without [[clients]] only programs on this machine may.
    """
    from remit.cli.offer import ServedOffer, serve
    from remit.mcp_server.offer import WireNames

    offer = ServedOffer(WireNames(), {}, work=not no_work)
    return serve(state, offer, listening if over_http else None)
