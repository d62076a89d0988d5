"""`remit mcp remove`: one server less."""

from __future__ import annotations

from pathlib import Path

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.cli.servers import complete_servers
from remit.errors import UsageError
from remit.nearest import did_you_mean
from remit.settings import Settings


@click.command("remove")
@click.argument("name", shell_complete=complete_servers)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option("what was removed")
@pass_state
def command(state: State, name: str, yes: bool) -> int:
    """Remove a server from remit.toml.

    At a terminal, asks first. Keeps the comments between tables, and everything recorded about the server.
    """
    from remit.cli.servers import settings_file
    from remit.cli.trusting import still_trusted
    from remit.mcp_config.config_file import read_text, replace_text
    from remit.mcp_config.server_tables import names, without_server

    settings = state.settings()
    file = settings_file(settings)
    text = read_text(file)
    if name not in names(text):
        raise _absent(settings, file, name, names(text))
    changed = without_server(text, name)
    if not yes and not state.as_json and state.output.interactive:
        click.confirm(f"Remove {name} from {file}?", err=True, abort=True)
    with still_trusted(state.settings, trusted=state.trust):
        replace_text(file, changed)
    if state.as_json:
        state.output.json({"name": name, "file": str(file)})
    else:
        out = state.output.out
        out.line(f"{out.style('ok', 'ok')} removed {name} from {file}")
    return exit_codes.OK


def _absent(settings: Settings, file: Path, name: str, names: list[str]) -> UsageError:
    from remit.cli.servers import all_servers

    origin = all_servers(settings).origins.get(name)
    if origin is not None:
        return UsageError(
            f"{name} comes from the environment ({origin}), not from {file}",
            remedy=f"Change {origin} in the environment.",
        )
    remedy = did_you_mean(name, names) or "`remit mcp list` lists the servers."
    return UsageError(f"{file} has no server {name!r}", remedy=remedy)
