"""`remit tickets`: work that comes in as messages, is done by tools, and ends in a reply."""

from __future__ import annotations

from typing import Final

import click

from remit.cli.group import Entry, LazyGroup, show_help

COMMANDS: Final[dict[str, Entry]] = {
    "create": Entry("Tickets", "Create a ticket."),
    "list": Entry("Tickets", "List tickets, newest first."),
    "show": Entry("Tickets", "Show one ticket, or the report of its run."),
    "lease": Entry("Work", "Lease tickets: no one else works on them meanwhile."),
    "fill": Entry("Work", "Complete a ticket with its outputs."),
    "block": Entry("Work", "Say why a ticket cannot go on."),
    "release": Entry("Work", "Give a leased ticket back."),
    "retry": Entry("Work", "Make a failed or blocked ticket pending again."),
    "work": Entry("Work", "Lease TOOL tickets and run their steps."),
}


@click.group("tickets", cls=LazyGroup, package="remit.cli.commands.tickets", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Tickets: messages that become tool runs and replies.

    TRIAGE decides what to do, TOOL does it through the gateway, REPLY answers.
    """
    show_help(context)
