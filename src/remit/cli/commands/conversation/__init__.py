"""`remit conversation`: conversations of agents as data."""

from __future__ import annotations

from typing import Final

import click

from remit.cli.group import Entry, LazyGroup, show_help

COMMANDS: Final[dict[str, Entry]] = {
    "export": Entry("Commands", "Write an agent's conversation into a file."),
    "import": Entry("Commands", "Keep a conversation from elsewhere, to go on with it."),
}


@click.group("conversation", cls=LazyGroup, package="remit.cli.commands.conversation", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Take conversations of agents in and out, in OpenAI's message format."""
    show_help(context)
