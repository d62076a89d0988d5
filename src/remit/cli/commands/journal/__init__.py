"""`remit journal`: the journal as a whole."""

from __future__ import annotations

from typing import Final

import click

from remit.cli.group import Entry, LazyGroup, show_help

COMMANDS: Final[dict[str, Entry]] = {
    "activate": Entry("Commands", "Let a backup, or a journal that moved, run jobs from now on."),
    "copy": Entry("Commands", "Move a journal to another place, and prove that nothing was lost."),
    "erase": Entry("Commands", "Erase every value that was recorded about a subject."),
    "seal": Entry("Commands", "Seal the journal under a key that is kept elsewhere."),
}


@click.group("journal", cls=LazyGroup, package="remit.cli.commands.journal", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Move the journal to another place or back it up, erase values, or seal it."""
    show_help(context)
