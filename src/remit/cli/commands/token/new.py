"""`remit token new`: one more client."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.errors import UsageError

_BYTES: Final = 32
"""Random bytes of a token: more than anyone can guess."""
_SCOPES: Final = ("read", "call", "decide", "tickets", "work", "admin")


@click.command("new")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(_SCOPES),
    help="What it may do; repeatable. Default: read and call.",
)
@click.option(
    "--principal", default="", metavar="NAME", help="The name under which its calls are recorded. Default: NAME."
)
@click.option("--expires", metavar="TIME", help="When it expires: 30d, 8h, or 2027-01-31T12:00:00Z.")
@click.option("--tool", "tools", multiple=True, metavar="PATTERN", help="Only these tools; repeatable.")
@json_option("the client, with its token")
@pass_state
def command(
    state: State,
    name: str,
    scopes: tuple[str, ...],
    principal: str,
    expires: str | None,
    tools: tuple[str, ...],
) -> int:
    """Create a token for a client.

    Prints the token once, alone on stdout; remit.toml keeps its SHA-256. The client sends it as `Authorization: Bearer
    TOKEN`, or reads it from REMIT_TOKEN.
    """
    from remit.cli.servers import settings_file
    from remit.clock import SystemClock
    from remit.http.token import digest_of, token_of
    from remit.mcp_config.client_tables import numbers, with_client
    from remit.mcp_config.config_file import read_text, replace_text
    from remit.randomness import salt
    from remit.settings.client import read_client

    file = settings_file(state.settings())
    text = read_text(file)
    if numbers(text, name):
        raise UsageError(
            f"{file} already has a client {name!r}", remedy="Choose another name, or revoke this client first."
        )
    token = token_of(salt(_BYTES))
    table = {
        "name": name,
        "principal": principal or name,
        "sha256": digest_of(token).hex(),
        "scopes": list(scopes),
        "expires": _expires(expires, SystemClock().now()) if expires else None,
        "tools": list(tools),
    }
    written = {key: value for key, value in table.items() if value}
    client = read_client(written, f"remit token new {name}")
    replace_text(file, with_client(text, written), private=True)
    if state.as_json:
        state.output.json({"name": client.name, "principal": client.principal, "token": token, "file": str(file)})
    else:
        state.output.out.line(token)
        state.note(f"added {name} to {file}; the token is shown only this once")
    return exit_codes.OK


def _expires(text: str, now: int) -> datetime:
    """The moment that a time or a duration from now on names. Raises UsageError."""
    from datetime import UTC, timedelta

    from remit.cli.values import seconds

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        after = timedelta(microseconds=now) + timedelta(seconds=seconds(text, "--expires"))
        return (datetime(1970, 1, 1, tzinfo=UTC) + after).replace(microsecond=0)
    if moment.tzinfo is None:
        raise UsageError(f"--expires: {text} has no offset", remedy="End it with Z, or with an offset such as +02:00.")
    return moment
