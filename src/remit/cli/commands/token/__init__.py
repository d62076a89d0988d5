"""`remit token`: the tokens of clients that connect over HTTP."""

from __future__ import annotations

from typing import Final

import click

from remit.cli.group import Entry, LazyGroup, show_help

COMMANDS: Final[dict[str, Entry]] = {
    "new": Entry("Commands", "Make a token and let its bearer in."),
    "list": Entry("Commands", "List the clients that may connect."),
    "revoke": Entry("Commands", "Let a client in no more."),
}


@click.group("token", cls=LazyGroup, package="remit.cli.commands.token", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Tokens of clients that connect over HTTP, to the API or to MCP.

    They stand in [[clients]] of remit.toml as their SHA-256: no file holds a token. A server that runs takes changes
    when it is started again.
    """
    show_help(context)
