"""`remit mcp approve`: take the changes that were shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import Behind, json_option, pass_state
from remit.cli.servers import complete_servers
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.cli.opened import Opened


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
    from remit.cli.pins import show
    from remit.cli.wrapping import recorded, wrapped

    flags = recorded(state, wrapped(name, words)) if words else None

    async def approve(remit: Opened) -> dict[str, object] | None:
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
        pin = await servers.approve(name, seen)
        return {"server": name, "by": pin.by, "tools": pin.tools, "names_hash": pin.names_hash}

    pinned = state.ask(approve, code="unused", servers=True, creates=True, flags=flags)
    if state.as_json:
        state.output.json(pinned)
    elif pinned is None:
        state.note(f"nothing has changed in {name} since it was pinned")
    else:
        out = state.output.out
        out.line(f"{out.style('ok', 'ok')} accepted the tools of {name}")
    return exit_codes.OK
