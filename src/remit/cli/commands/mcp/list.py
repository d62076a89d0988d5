"""`remit mcp list`: which servers there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.settings.mcp_servers import Servers


@click.command("list")
@json_option("servers and warnings")
@pass_state
def command(state: State) -> int:
    """List the servers and where each is defined.

    Those of remit.toml come first and win over servers of the same name in the environment. None is connected.
    """
    from remit.cli.servers import known_servers

    settings = state.settings()
    found = known_servers(settings)
    if state.as_json:
        state.output.json({"servers": _rows(found), "warnings": found.warnings})
        return exit_codes.OK
    _print(state, found)
    if settings.tools.no_mcp:
        state.note(f"MCP servers are not used: {settings.sources['tools.no_mcp']} sets tools.no_mcp")
    elif not found.servers:
        state.note(f"there are no servers: {state.command('mcp', 'add')} or {state.command('mcp', 'import')}")
    return exit_codes.OK


def _rows(found: Servers) -> list[dict[str, object]]:
    return [
        {
            "name": server.name,
            "transport": server.transport,
            "where": server.where,
            "isolation": server.isolation,
            "origin": found.origins[server.name],
            "disabled": server.disabled,
        }
        for server in found.servers
    ]


def _print(state: State, found: Servers) -> None:
    from remit.cli.tables import Column, table
    from remit.cli.text import one_line

    columns = (
        Column("SERVER"), Column("TRANSPORT"), Column("STATE"), Column("ISOLATION"), Column("WHERE", whole=False),
        Column("FROM", whole=False, style="dim"),
    )  # fmt: skip
    rows = [
        (
            one.name,
            one.transport,
            "disabled" if one.disabled else "used",
            one.isolation,
            one.where,
            found.origins[one.name],
        )
        for one in found.servers
    ]
    table(state.output.out, columns, rows)
    for warning in found.warnings:
        state.note(f"{state.output.err.style('warning:', 'warn')} {one_line(warning)}")
