"""`remit notify`: who is told of questions and of jobs that cannot go on."""

from __future__ import annotations

from typing import Final

import click

from remit.cli.group import Entry, LazyGroup, show_help

COMMANDS: Final[dict[str, Entry]] = {
    "list": Entry("Commands", "List the targets and the state of their last messages."),
    "test": Entry("Commands", "Send a test message, and show what came back."),
}


@click.group("notify", cls=LazyGroup, package="remit.notify.commands", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """See who is told what waits or failed, and test it.

    The targets are the [[notify]] tables of remit.toml. `remit worker` and `remit serve` send the messages.
    """
    show_help(context)
