"""`remit token revoke`: one client less."""

from __future__ import annotations

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.errors import UsageError


@click.command("revoke")
@click.argument("name")
@json_option("what was revoked")
@pass_state
def command(state: State, name: str) -> int:
    """Revoke a client's token.

    Removes its table from remit.toml, and keeps the comments between tables. A running server refuses the token after a
    restart.
    """
    from remit.cli.servers import settings_file
    from remit.mcp_config.client_tables import numbers, without_client
    from remit.mcp_config.config_file import read_text, replace_text
    from remit.settings.clients import clients

    file = settings_file(state.settings())
    text = read_text(file)
    found = numbers(text, name)
    if not found:
        raise UsageError(f"{file} has no client {name!r}", remedy="`remit token list` lists the clients.")
    if len(found) > 1:
        raise UsageError(f"{file} has {len(found)} clients {name!r}", remedy="Give each its own name there.")
    replace_text(file, without_client(text, found[0], name))
    if state.as_json:
        state.output.json({"name": name, "file": str(file)})
    else:
        out = state.output.out
        out.line(f"{out.style('ok', 'ok')} removed {name} from {file}")
        state.note("a running server refuses the token after a restart")
        if not clients(state.settings()).clients:
            state.note("no clients are left: programs on this machine can now connect without a token")
    return exit_codes.OK
