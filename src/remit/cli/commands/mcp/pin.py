"""`remit mcp pin`: take a server's tools as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.cli.servers import complete_servers

if TYPE_CHECKING:
    from remit.cli.opened import Opened


@click.command("pin")
@click.argument("name", shell_complete=complete_servers)
@click.argument("words", metavar="[-- COMMAND [ARG]...]", nargs=-1, type=click.UNPROCESSED)
@json_option("the pin")
@pass_state
def command(state: State, name: str, words: tuple[str, ...]) -> int:
    """Accept a server's tools as they are now.

    After that, a tool that is new or changes in any word is withheld until someone has seen the change (`remit mcp
    diff`) and accepted it (`remit mcp approve`). Levels by pattern count from then on. The journal records the pin
    under your name. For a server that only `remit mcp wrap` knows, give its COMMAND as well.
    """
    from remit.cli.wrapping import recorded, wrapped

    async def pin(remit: Opened) -> dict[str, object]:
        pinned = await remit.service.servers.pin(name)
        return {"server": name, "by": pinned.by, "tools": pinned.tools, "names_hash": pinned.names_hash}

    flags = recorded(state, wrapped(name, words)) if words else None
    pinned = state.ask(pin, code="unused", servers=True, creates=True, flags=flags)
    if state.as_json:
        state.output.json(pinned)
    else:
        out = state.output.out
        tools = pinned["tools"]
        out.line(f"{out.style('ok', 'ok')} pinned {len(tools) if isinstance(tools, dict) else 0} tools of {name}")
    return exit_codes.OK
