"""`remit token list`: who may connect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.settings.client import Client


@click.command("list")
@json_option("the clients")
@pass_state
def command(state: State) -> int:
    """List the clients that may connect.

    Lists the clients of remit.toml and of the environment, and what each may do; never their tokens.
    """
    from remit.cli.tables import Column, table
    from remit.cli.text import one_line
    from remit.clock import SystemClock
    from remit.settings.clients import clients

    known = clients(state.settings())
    for warning in known.warnings:
        state.note(warning)
    rows = [_row(client, SystemClock().now()) for client in known.clients]
    if state.as_json:
        state.output.json(rows)
        return exit_codes.OK
    if not rows:
        state.note("no clients: programs on this machine can connect without a token; `remit token new` creates one")
        return exit_codes.OK
    columns = (
        Column("CLIENT"),
        Column("PRINCIPAL"),
        Column("STATE"),
        Column("SCOPES"),
        Column("EXPIRES"),
        Column("TOOLS", whole=False),
    )
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
    return exit_codes.OK


def _row(client: Client, now: int) -> dict[str, Any]:
    over = client.expires_at is not None and client.expires_at <= now
    return {
        "name": client.called,
        "principal": client.principal,
        "state": "expired" if over else "valid",
        "scopes": client.scopes,
        "expires": client.expires.isoformat() if client.expires else None,
        "tools": client.tools,
    }
