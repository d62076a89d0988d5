"""`remit mcp logout`: forget a login."""

from __future__ import annotations

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.cli.servers import by_url, complete_servers, login_file, meant, server_of
from remit.settings.principal import principal


@click.command("logout")
@click.argument("name", required=False, shell_complete=complete_servers)
@by_url
@json_option("whether there was a login")
@pass_state
def command(state: State, name: str | None, url: str, given_name: str, issuers: tuple[str, ...]) -> int:
    """Forget the login at a server.

    Removes the tokens and the registration that this machine keeps; the server is not asked. To end what the tokens
    allow before they expire, take Remit's access back in your account at the server.
    """
    from remit.cli.running import run_to_end

    name, flags = meant(state, name, url, given_name, issuers)
    settings = state.settings(flags)
    there = run_to_end(login_file(server_of(settings, name), principal(settings)).remove())
    if not there:
        state.note(f"there is no login at {name}")
    if there or state.as_json:
        state.done({"name": name, "removed": there}, f"logged out of {name}")
    return exit_codes.OK
