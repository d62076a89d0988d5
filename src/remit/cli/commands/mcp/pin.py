"""`remit mcp pin`: take a server's tools as they are."""

from __future__ import annotations

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.cli.servers import complete_servers


@click.command("pin")
@click.argument("name", shell_complete=complete_servers)
@json_option("the pin")
@pass_state
def command(state: State, name: str) -> int:
    """Accept a server's tools as they are now.

    After that, a tool that is new or changes in any word is withheld until someone has seen the change (`remit mcp
    diff`) and accepted it (`remit mcp approve`). The journal records the pin under your name.
    """
    from remit.cli.running import run_to_end

    async def pin() -> dict[str, object]:
        async with state.open(code="unused", servers=True, creates=True) as remit:
            pinned = await remit.service.servers.pin(name)
            return {"server": name, "by": pinned.by, "tools": pinned.tools, "names_hash": pinned.names_hash}

    pinned = run_to_end(pin())
    if state.as_json:
        state.output.json(pinned)
    else:
        out = state.output.out
        tools = pinned["tools"]
        out.line(f"{out.style('ok', 'ok')} pinned {len(tools) if isinstance(tools, dict) else 0} tools of {name}")
    return exit_codes.OK
