"""`remit mcp approve`: take the changes that were shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli.context import State
from remit.cli.options import Behind, json_option, pass_state
from remit.cli.servers import complete_servers
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.cli.opened import Opened
    from remit.tools.pins import Pin


@click.command("approve", cls=Behind)
@click.argument("name", shell_complete=complete_servers)
@click.argument("words", metavar="[-- COMMAND [ARG]...]", nargs=-1, type=click.UNPROCESSED)
@click.option("--digest", help="The digest that `remit mcp diff --json` printed, for use without a terminal.")
@json_option("the new pin")
@pass_state
def command(state: State, name: str, words: tuple[str, ...], digest: str | None) -> int:
    """Accept a server's changed tools, once you have seen the changes.

    At a terminal, shows the changes and asks you. Without a terminal, --digest names the changes you saw: if the server
    has changed again since, nothing is approved. Running processes use the approved tools at once. For a server that
    only `remit mcp wrap` knows, give its COMMAND as well.
    """
    from remit.cli.servers import pin_shown, show
    from remit.cli.wrapping import recorded, wrapped

    flags = recorded(state, wrapped(name, words)) if words else None

    async def approve(remit: Opened) -> Pin | None:
        servers = remit.service.servers
        seen = digest
        if seen is None:
            found = await servers.diff(name)
            if not found.changes:
                return None
            if state.as_json or not state.output.interactive:
                raise UsageError(
                    "there is no terminal on which to approve the changes",
                    remedy=f"Review `remit mcp diff {name}`, then pass --digest {found.digest}.",
                )
            show(state, found)
            click.confirm(f"Accept these tools of {name}?", err=True, abort=True)
            seen = found.digest
        return await servers.approve(name, seen)

    pin = state.ask(approve, code="unused", servers=True, creates=True, flags=flags)
    if pin is not None:
        return state.done(pin_shown(name, pin), f"accepted the tools of {name}")
    return state.show(None, lambda state, _: state.note(f"nothing has changed in {name} since it was pinned"))
