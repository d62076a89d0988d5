"""`remit mcp list`: which servers there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state


@click.command("list")
@json_option("servers and warnings")
@pass_state
def command(state: State) -> int:
    """List the servers and where each is defined.

    Servers of remit.toml come first, and win over servers of the same name from the environment. Connects to none of
    them. With --server, lists the servers that the remote server uses.
    """
    rows, warnings, nothing = _there(state) if state.server else _here(state)
    if state.as_json:
        state.output.json({"servers": rows, "warnings": warnings})
        return exit_codes.OK
    _print(state, rows, warnings)
    if nothing:
        state.note(nothing)
    return exit_codes.OK


def _here(state: State) -> tuple[list[dict[str, Any]], Sequence[str], str]:
    """Servers and warnings of the settings, and what to say of there being none in use."""
    from remit.cli.servers import known_servers

    settings = state.settings()
    found = known_servers(settings)
    nothing = ""
    if settings.tools.no_mcp:
        nothing = f"MCP servers are not used: {settings.sources['tools.no_mcp']} sets tools.no_mcp"
    elif not found.servers:
        nothing = f"there are no servers: {state.command('mcp', 'add')} or {state.command('mcp', 'import')}"
    rows = [
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
    return rows, found.warnings, nothing


def _there(state: State) -> tuple[list[dict[str, Any]], Sequence[str], str]:
    """The same of a server: the MCP servers that it uses, and why one of them is down."""
    found = state.ask(lambda remit: remit.service.servers.entries())
    rows = [
        {
            "name": server.name,
            "transport": server.transport,
            "where": server.where,
            "isolation": server.isolation,
            "origin": state.server,
            "disabled": False,
        }
        for server in found
    ]
    warnings = [f"{server.name}: {server.outage}" for server in found if server.outage]
    return rows, warnings, "" if found else f"{state.server} uses no MCP servers"


def _print(state: State, rows: list[dict[str, Any]], warnings: Sequence[str]) -> None:
    from remit.cli.tables import Column, table
    from remit.cli.text import one_line

    columns = (
        Column("SERVER"), Column("TRANSPORT"), Column("STATE"), Column("ISOLATION"), Column("WHERE", whole=False),
        Column("FROM", whole=False, style="dim"),
    )  # fmt: skip
    shown = [
        (
            row["name"],
            row["transport"],
            "disabled" if row["disabled"] else "used",
            row["isolation"],
            row["where"],
            row["origin"],
        )
        for row in rows
    ]
    table(state.output.out, columns, shown)
    for warning in warnings:
        state.note(f"{state.output.err.style('warning:', 'warn')} {one_line(warning)}")
