"""`remit conversation`: conversations of agents as data."""

from __future__ import annotations

from typing import Final

import click

from remit.cli.group import Entry, LazyGroup, show_help

COMMANDS: Final[dict[str, Entry]] = {
    "export": Entry("Commands", "Export an agent's conversation to a file."),
    "import": Entry("Commands", "Import a conversation, to continue it."),
}


@click.group("conversation", cls=LazyGroup, package="remit.cli.commands.conversation", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Export and import agents' conversations, in OpenAI's message format."""
    show_help(context)
