"""`remit mcp show`: one server, its tools, and what is pinned of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.cli.servers import complete_servers

if TYPE_CHECKING:
    from remit.record.views import ToolView
    from remit.tools.pins import Pin
    from remit.tools.remote import RemoteStatus


@click.command("show")
@click.argument("name", shell_complete=complete_servers)
@json_option("the server, its tools and its pin")
@pass_state
def command(state: State, name: str) -> int:
    """Show a server, its tools and what is pinned.

    Levels are those you set in remit.toml, made stricter by what the server says about a tool.
    """
    from remit.cli.running import run_async

    status, tools, pin, isolation = run_async(lambda _stop: _look(state, name))
    if state.as_json:
        state.output.json({**_plain(name, status, tools, pin), "isolation": isolation})
    else:
        _print(state, name, status, tools, pin, isolation)
    return exit_codes.OK


async def _look(state: State, name: str) -> tuple[RemoteStatus, list[ToolView], Pin | None, str]:
    async with state.open(code="unused", servers=True, creates=True) as remit:
        servers = remit.service.servers
        status = await servers.status(name)
        tools = [tool for tool in await remit.service.tools.views() if tool.provider_id == f"mcp_{name}"]
        isolation = next((one.isolation for one in await servers.entries() if one.name == name), "")
        return status, tools, await servers.pin_of(name), isolation or "none"


def _plain(name: str, status: RemoteStatus, tools: list[ToolView], pin: Pin | None) -> dict[str, Any]:
    import msgspec

    pinned = None if pin is None else {"at": pin.at, "by": pin.by, "how": pin.how, "tools": pin.tools}
    return {"server": name, **msgspec.to_builtins(status), "pin": pinned, "offered": msgspec.to_builtins(tools)}


def _print(
    state: State, name: str, status: RemoteStatus, tools: list[ToolView], pin: Pin | None, isolation: str
) -> None:
    from remit.cli.tables import Column, fields, moment, table
    from remit.cli.text import one_line

    out = state.output.out
    out.line(out.style(name, "bold"))
    pinned = f"{len(pin.tools)} tools, {pin.how.replace('_', ' ')} by {pin.by}, {moment(pin.at)}" if pin else "never"
    fields(
        out,
        [
            ("answers as", one_line(f"{status.name} {status.version}".strip())),
            ("protocol", f"{status.protocol} ({status.era})"),
            ("tells models", one_line(status.instructions)),
            ("isolation", isolation),
            ("pinned", one_line(pinned)),
        ],
    )
    out.line()
    columns = (Column("TOOL"), Column("LEVEL"), Column("STATE"), Column("WHAT IT DOES", whole=False))
    rows = [
        (
            tool.name,
            tool.capability_level,
            "withheld" if tool.quarantined else "used",
            tool.quarantined or tool.description,
        )
        for tool in tools
    ]
    table(out, columns, rows, indent=2)
    for tool in tools:
        for place in tool.unchecked:
            out.line(f"  {tool.name}: the pattern at {one_line(place)} cannot be run here; the server checks it")
