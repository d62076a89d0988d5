"""`remit mcp restart`: start a server again that a running Remit uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.cli.servers import complete_servers

if TYPE_CHECKING:
    from remit.cli.opened import Opened
    from remit.tools.remote import RemoteStatus


@click.command("restart")
@click.argument("name", shell_complete=complete_servers)
@json_option("the server's answer")
@pass_state
def command(state: State, name: str) -> int:
    """Start a server again that a running Remit uses.

    Needs `remit serve`, named by --server or REMIT_SERVER. Calls under way end first, for up to 30 seconds; calls made
    meanwhile wait. A server that was given up is tried again at once.
    """
    from remit.cli.text import one_line
    from remit.errors import UsageError

    if not state.server:
        raise UsageError(
            "a server is restarted in the Remit that runs it", remedy="Name it: remit --server URL mcp restart NAME"
        )

    async def restart(remit: Opened) -> RemoteStatus:
        return await remit.service.servers.restart(name)

    status = state.ask(restart, code="unused", servers=True)
    if state.as_json:
        state.output.json(status)
    else:
        out = state.output.out
        out.line(f"{out.style('ok', 'ok')} restarted {name}: {one_line(f'{status.name} {status.version}'.strip())}")
    return exit_codes.OK
