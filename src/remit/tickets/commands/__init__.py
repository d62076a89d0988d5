"""`remit tickets`: work that comes in as messages, is done by tools, and ends in a reply."""

from __future__ import annotations

from typing import Final

import click

from remit.cli.group import Entry, LazyGroup, show_help

COMMANDS: Final[dict[str, Entry]] = {
    "create": Entry("Tickets", "Create a ticket."),
    "list": Entry("Tickets", "List tickets, newest first."),
    "show": Entry("Tickets", "Show a ticket, or the report of its run."),
    "lease": Entry("Work", "Lease tickets, so that no other worker takes them."),
    "fill": Entry("Work", "Complete a ticket with its outputs."),
    "block": Entry("Work", "Block a ticket, with a reason."),
    "release": Entry("Work", "Give a leased ticket back."),
    "retry": Entry("Work", "Make a failed or blocked ticket pending again."),
    "work": Entry("Work", "Lease TOOL tickets and run their steps."),
}


@click.group("tickets", cls=LazyGroup, package="remit.tickets.commands", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Work with tickets: messages that become tool runs and replies.

    TRIAGE decides what to do, TOOL does it through the gateway, REPLY answers.
    """
    show_help(context)
