"""`remit mcp diff`: what happened to a server's tools since they were pinned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import Behind, json_option, pass_state
from remit.cli.servers import complete_servers

if TYPE_CHECKING:
    from remit.cli.opened import Opened


@click.command("diff", cls=Behind)
@click.argument("name", shell_complete=complete_servers)
@click.argument("words", metavar="[-- COMMAND [ARG]...]", nargs=-1, type=click.UNPROCESSED)
@json_option("the differences")
@pass_state
def command(state: State, name: str, words: tuple[str, ...]) -> int:
    """Show what changed in a server's tools since they were pinned.

    Shows every word that a model would read. Changed and new tools stay withheld until `remit mcp approve`; the exit
    status says whether there are any. For a server that only `remit mcp wrap` knows, give its COMMAND as well.
    """
    from remit.cli.servers import plain, show
    from remit.cli.wrapping import recorded, wrapped

    flags = recorded(state, wrapped(name, words)) if words else None

    async def look(remit: Opened) -> object:
        found = await remit.service.servers.diff(name)
        state.show(plain(found), lambda state, _: show(state, found))
        return found.changes

    return exit_codes.FAILED if state.ask(look, code="unused", servers=True, flags=flags) else exit_codes.OK
