"""`remit sandbox`: what this machine can do to run code safely."""

from __future__ import annotations

from typing import Final

import click

from remit.cli.group import Entry, LazyGroup, show_help

COMMANDS: Final[dict[str, Entry]] = {
    "probe": Entry("Commands", "Show what each driver can do on this machine."),
    "workspaces": Entry("Commands", "List the workspaces of jobs and sessions."),
    "clean": Entry("Commands", "Delete workspaces that are no longer needed."),
}


@click.group("sandbox", cls=LazyGroup, package="remit.cli.commands.sandbox", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Check the sandbox, and manage its workspaces.

    The settings choose the driver and its limits; docs/sandbox.md says what each driver blocks.
    """
    show_help(context)
