"""`remit token`: the tokens of clients that connect over HTTP."""

from __future__ import annotations

from typing import Final

import click

from remit.cli.group import Entry, LazyGroup, show_help

COMMANDS: Final[dict[str, Entry]] = {
    "new": Entry("Commands", "Create a token for a client."),
    "list": Entry("Commands", "List the clients that may connect."),
    "revoke": Entry("Commands", "Revoke a client's token."),
}


@click.group("token", cls=LazyGroup, package="remit.cli.commands.token", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Manage the tokens of clients that connect over HTTP.

    remit.toml holds only their SHA-256, in [[clients]]. Restart a running server to apply changes.
    """
    show_help(context)
