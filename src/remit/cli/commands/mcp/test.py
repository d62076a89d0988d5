"""`remit mcp test`: do the servers answer?"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.cli.servers import complete_servers
from remit.errors import RemitError

if TYPE_CHECKING:
    from remit.app import Remit


@click.command("test")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_servers)
@json_option("each server's answer")
@pass_state
def command(state: State, names: tuple[str, ...]) -> int:
    """Connect to servers and show what they answer.

    Without NAME, tries every enabled server, all at once. For a server that does not answer, shows the last lines it
    wrote to stderr and exits with an error status.
    """
    from remit.cli.running import run_to_end
    from remit.codes import Code

    found = run_to_end(_try_all(state, names))
    if state.as_json:
        state.output.json(found)
    else:
        _print(state, found)
    if any(one.get("code") == Code.UNKNOWN_TOOL.name for one in found.values()):
        return exit_codes.USAGE  # a name that no server has
    return exit_codes.OK if all(one["ok"] for one in found.values()) else exit_codes.FAILED


async def _try_all(state: State, names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    from remit.cli.servers import known_servers

    wanted = names or tuple(server.name for server in known_servers(state.settings()).enabled)
    async with state.remit(code="unused", servers=True, blank=True) as remit:
        return dict(zip(wanted, await asyncio.gather(*(_try(remit, name) for name in wanted)), strict=True))


async def _try(remit: Remit, name: str) -> dict[str, Any]:
    import msgspec

    began = time.perf_counter()
    try:
        status = msgspec.to_builtins(await remit.service.servers.status(name))
    except RemitError as error:
        return {"ok": False, "code": error.code.name, "reason": error.message, "remedy": error.remedy}
    return {"ok": True, "seconds": round(time.perf_counter() - began, 3), **status}


def _print(state: State, found: dict[str, dict[str, Any]]) -> None:
    from remit.cli.text import one_line

    out = state.output.out
    width = max(map(len, found), default=0)
    for name, one in found.items():
        if one["ok"]:
            who = f"{one['name']} {one['version']}".strip() or "a server that does not say its name"
            told = f"{one_line(who)}, protocol {one['protocol']}, {one['tools']} tools, {one['seconds']:.1f} s"
            out.line(f"{out.style('ok', 'ok')}      {name.ljust(width)}  {told}")
        else:
            out.line(f"{out.style('failed', 'failed')}  {name.ljust(width)}  {one_line(one['reason'])}")
    if not found:
        state.note(f"there are no servers: {state.command('mcp', 'add')}")
