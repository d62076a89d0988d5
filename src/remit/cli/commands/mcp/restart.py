"""`remit mcp restart`: start a server again in every process that uses it."""

from __future__ import annotations

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line
from remit.cli.servers import all_servers, complete_servers
from remit.codes import Code
from remit.errors import NotFoundError


@click.command("restart")
@click.argument("name", shell_complete=complete_servers)
@json_option("the server's answer, or that it was asked for")
@pass_state
def command(state: State, name: str) -> int:
    """Start a server again in every process that uses it.

    Reaches `serve`, `worker`, `mcp serve` and `mcp wrap` on the same journal. Calls under way end first, for up to 30
    seconds; calls made meanwhile wait. A server that was given up is tried again at once. With --server, waits for the
    server of that process and says who answers.
    """
    from remit.cli.running import run_to_end

    if not state.server:
        run_to_end(_ask(state, name))
        words = f"every process of this journal that uses {name} starts it again"
        return state.done({"server": name, "asked": True}, words)
    status = state.ask(lambda remit: remit.service.servers.restart(name), code="unused", servers=True)
    return state.done(status, f"restarted {name}: {one_line(f'{status.name} {status.version}'.strip())}")


async def _ask(state: State, name: str) -> None:
    """Ask the processes that are up. Raises NotFoundError for a server that neither settings nor journal know."""
    from remit.settings.principal import principal

    async with state.remit(code="unused", writes=True) as remit:
        servers = remit.service.servers
        settings = state.settings()
        if name not in {server.name for server in all_servers(settings).servers} and not await servers.pin_of(name):
            remedy = "`remit mcp list` lists them."
            raise NotFoundError(f"there is no MCP server {name!r}", code=Code.UNKNOWN_TOOL, remedy=remedy)
        await servers.restarts.ask(name, principal(settings), here=False)
