"""`remit tickets create`: create a ticket."""

from __future__ import annotations

from typing import Any

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.cli.values import json_value
from remit.tickets.commands.session import KINDS, session, show_ticket


@click.command("create")
@click.argument("document", required=False, metavar="[JSON|@FILE]")
@click.option("--type", "kind", type=KINDS, default="TRIAGE", help="The ticket's kind. Default: TRIAGE.")
@click.option("--thread", metavar="ID", help="The thread that the message belongs to.")
@click.option("--content", metavar="TEXT", help="The message.")
@click.option("--actor", metavar="NAME", help="Who wrote the message. Default: you.")
@click.option("--steps", metavar="JSON|@FILE", help="The steps of a TOOL ticket: [{tool_name, args}].")
@json_option("the ticket")
@pass_state
@click.pass_context
def command(
    context: click.Context,
    state: State,
    document: str | None,
    kind: str,
    thread: str | None,
    content: str | None,
    actor: str | None,
    steps: str | None,
) -> int:
    """Create a ticket, from a message or from a whole document.

    \b
    remit tickets create --thread t1 --content "the build is red"
    remit tickets create --type TOOL --thread t1 --content "…" --steps '[{"tool_name": "fs_read", "args": {…}}]'
    remit tickets create @ticket.json
    """  # noqa: D301 - click reads the backspace: these lines stay as they are
    if (document is None) == (thread is None or content is None):
        raise click.UsageError("Give a document, or --thread and --content.", context)
    if document is not None:
        given = json_value(document, "DOCUMENT")
    else:
        message = {"type": "message", "thread_id": thread, "content": content, "actor": actor or ""}
        given = {"type": kind, "event": message}
        if steps is not None:
            given["tool_input"] = {"event": message, "tool_steps": json_value(steps, "--steps")}

    async def create(tickets: Any) -> Any:
        return await tickets.create(given)

    show_ticket(state, session(state, create, creates=True))
    return exit_codes.OK
