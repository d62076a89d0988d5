"""`remit mcp login`: a person logs in to a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.cli.servers import complete_servers

if TYPE_CHECKING:
    from remit.tools.remote import RemoteStatus


@click.command("login")
@click.argument("name", shell_complete=complete_servers)
@json_option("who answered")
@pass_state
def command(state: State, name: str) -> int:
    """Log in to a server that uses OAuth.

    The server's entry in remit.toml needs an `oauth` table. Your browser opens the server's login page and returns to
    this machine; you have two minutes. Tokens are kept in a folder that only you can read, and are refreshed
    automatically.
    """
    from remit.cli.running import run_to_end

    status = run_to_end(_log_in(state, name))
    if state.as_json:
        state.output.json(status)
    else:
        out = state.output.out
        out.line(f"{out.style('ok', 'ok')} logged in: {status.name} {status.version}, {status.tools} tools")
    return exit_codes.OK


async def _log_in(state: State, name: str) -> RemoteStatus:
    from remit.cli.browser import Browser
    from remit.cli.logs import log_to_stderr
    from remit.wiring.runtime import open_runtime

    log_to_stderr(state.verbose)
    runtime = open_runtime(state.trusted({"journal.url": ":memory:"}), authorizer=Browser(state))
    try:
        return await runtime.service.servers.status(name)
    finally:
        await runtime.close()
