"""`remit token`: the tokens of clients that connect over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.group import LazyCommand, LazyGroup, show_help
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.settings.clients import ClientTable


COMMANDS: Final[dict[str, LazyCommand]] = {
    "new": LazyCommand("Commands", "Create a token for a client."),
    "list": LazyCommand("Commands", "List the clients that may connect."),
    "revoke": LazyCommand("Commands", "Revoke a client's token."),
}


@click.group("token", cls=LazyGroup, package="remit.cli.commands.token", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Manage the tokens of clients that connect over HTTP.

    remit.toml holds only their SHA-256, in [[clients]]. Restart a running server to apply changes.
    """
    show_help(context)


_BYTES: Final = 32
"""Random bytes of a token: more than anyone can guess."""
_SCOPES: Final = ("read", "call", "decide", "tickets", "work", "admin")


@command.command("new")
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
def new_command(
    state: CommandState,
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
    from remit.http.guard import digest_of, token_of
    from remit.mcp_config.array_tables import client_numbers, with_client
    from remit.mcp_config.config_file import read_text, replace_text
    from remit.randomness import salt
    from remit.settings.clients import read_client

    file = settings_file(state.settings())
    text = read_text(file)
    if client_numbers(text, name):
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
    view = {"name": client.name, "principal": client.principal, "token": token, "file": str(file)}
    state.show(view, lambda state, _: state.output.out.line(token))
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


@command.command("list")
@json_option("the clients")
@pass_state
def list_command(state: CommandState) -> int:
    """List the clients that may connect.

    Lists the clients of remit.toml and of the environment, and what each may do; never their tokens.
    """
    from remit.clock import SystemClock
    from remit.settings.clients import clients

    known = clients(state.settings())
    for warning in known.warnings:
        state.note(warning)
    rows = [_row(client, SystemClock().now()) for client in known.clients]
    nothing = "no clients: programs on this machine can connect without a token; `remit token new` creates one"
    return state.listing(rows, _print_list, nothing)


def _print_list(state: CommandState, rows: list[dict[str, Any]]) -> None:
    from remit.cli.tables import TableColumn, table

    columns = ("CLIENT", "PRINCIPAL", "STATE", "SCOPES", "EXPIRES", TableColumn("TOOLS", whole=False))
    cells = [
        (
            one_line(row["name"]),
            one_line(row["principal"]),
            row["state"],
            " ".join(row["scopes"]),
            row["expires"] or "never",
            " ".join(row["tools"]) or "all",
        )
        for row in rows
    ]
    table(state.output.out, columns, cells)


def _row(client: ClientTable, now: int) -> dict[str, Any]:
    over = client.expires_at is not None and client.expires_at <= now
    return {
        "name": client.called,
        "principal": client.principal,
        "state": "expired" if over else "valid",
        "scopes": client.scopes,
        "expires": client.expires.isoformat() if client.expires else None,
        "tools": client.tools,
    }


@command.command("revoke")
@click.argument("name")
@json_option("what was revoked")
@pass_state
def revoke_command(state: CommandState, name: str) -> int:
    """Revoke a client's token.

    Removes its table from remit.toml, and keeps the comments between tables. A running server refuses the token after a
    restart.
    """
    from remit.cli.servers import settings_file
    from remit.mcp_config.array_tables import client_numbers, without_client
    from remit.mcp_config.config_file import read_text, replace_text
    from remit.settings.clients import clients

    file = settings_file(state.settings())
    text = read_text(file)
    token_numbers = client_numbers(text, name)
    if not token_numbers:
        raise UsageError(f"{file} has no client {name!r}", remedy="`remit token list` lists the clients.")
    if len(token_numbers) > 1:
        raise UsageError(f"{file} has {len(token_numbers)} clients {name!r}", remedy="Give each its own name there.")
    replace_text(file, without_client(text, token_numbers[0], name))
    state.done({"name": name, "file": str(file)}, f"removed {name} from {file}")
    state.note("a running server refuses the token after a restart")
    if not clients(state.settings()).clients:
        state.note("no clients are left: programs on this machine can now connect without a token")
    return exit_codes.OK
