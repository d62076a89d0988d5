"""`remit mcp`: the MCP servers whose tools are used."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.group import LazyCommand, LazyGroup, show_help
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line
from remit.cli.servers import complete_servers
from remit.codes import Code
from remit.errors import RemitError, UsageError
from remit.nearest import did_you_mean
from remit.settings import Settings

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.cli.access import Opened
    from remit.record.views import ToolView
    from remit.service.mcp import ServerEntry
    from remit.settings.mcp import McpServer
    from remit.tools.pins import Pin
    from remit.tools.remote import RemoteStatus


_HERE: Final = "remit.cli.commands.mcp"
COMMANDS: Final[dict[str, LazyCommand]] = {
    "serve": LazyCommand("Clients", "Serve the tools of this project to MCP clients.", f"{_HERE}.wrap:serve_catalog"),
    "wrap": LazyCommand("Clients", "Start an MCP server, and govern the calls to it."),
    "connect": LazyCommand("Clients", "Put Remit into another MCP client's configuration.", f"{_HERE}.connect:connect"),
    "disconnect": LazyCommand(
        "Clients", "Take Remit out of another MCP client's configuration.", f"{_HERE}.connect:disconnect"
    ),
    "add": LazyCommand("Servers", "Add a server to remit.toml."),
    "test": LazyCommand("Servers", "Connect to servers and show what they answer."),
    "show": LazyCommand("Servers", "Show a server, its tools and what is pinned."),
    "call": LazyCommand("Servers", "Call a tool of a server."),
    "logs": LazyCommand(
        "Servers", "Show what a server wrote to stderr, and when it was connected and lost.", f"{_HERE}.logs:logs"
    ),
    "restart": LazyCommand("Servers", "Start a server again in every process that uses it.", f"{_HERE}.logs:restart"),
    "login": LazyCommand("Servers", "Log in to a server that uses OAuth.", f"{_HERE}.login:login"),
    "logout": LazyCommand("Servers", "Forget the login at a server.", f"{_HERE}.login:logout"),
    "list": LazyCommand("Servers", "List the servers and where each is defined."),
    "remove": LazyCommand("Servers", "Remove a server from remit.toml."),
    "import": LazyCommand("Servers", "Import servers from other MCP clients."),
    "pin": LazyCommand("Pins", "Accept a server's tools as they are now.", f"{_HERE}.pin:pin"),
    "diff": LazyCommand("Pins", "Show what changed in a server's tools since they were pinned.", f"{_HERE}.pin:diff"),
    "approve": LazyCommand(
        "Pins", "Accept a server's changed tools, once you have seen the changes.", f"{_HERE}.pin:approve"
    ),
}


@click.group("mcp", cls=LazyGroup, package="remit.cli.commands.mcp", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Use MCP servers, and serve tools to MCP clients.

    Servers are tables in remit.toml; see docs/configuration.md.
    """
    show_help(context)


@command.command("list")
@json_option("servers and warnings")
@pass_state
def list_command(state: CommandState) -> int:
    """List the servers and where each is defined.

    Servers of remit.toml come first, and win over servers of the same name from the environment. Connects to none of
    them. With --server, lists the servers that the remote server uses.
    """
    rows, warnings, nothing = _there(state) if state.server else _here(state)
    state.show({"servers": rows, "warnings": warnings}, lambda state, _: _print_list(state, rows, warnings))
    if nothing:
        state.note(nothing)
    return exit_codes.OK


def _here(state: CommandState) -> tuple[list[dict[str, Any]], Sequence[str], str]:
    """Servers and warnings of the settings, and what to say of there being none in use."""
    from remit.cli.servers import known_servers, login_of
    from remit.settings.principal import principal

    settings = state.settings()
    servers = known_servers(settings)
    nothing = ""
    if settings.tools.no_mcp:
        nothing = f"MCP servers are not used: {settings.sources['tools.no_mcp']} sets tools.no_mcp"
    elif not servers.servers:
        nothing = f"there are no servers: {state.command('mcp', 'add')} or {state.command('mcp', 'import')}"
    own = principal(settings)
    rows = [
        _row(server, login_of(server, own), servers.origins[server.name], disabled=server.disabled)
        for server in servers.servers
    ]
    return rows, servers.warnings, nothing


def _there(state: CommandState) -> tuple[list[dict[str, Any]], Sequence[str], str]:
    """The same of a server: the MCP servers that it uses, and why one of them is down."""
    entries = state.ask(lambda remit: remit.service.servers.entries())
    rows = [_row(server, "", state.server, disabled=False) for server in entries]
    warnings = [f"{server.name}: {server.outage}" for server in entries if server.outage]
    return rows, warnings, "" if entries else f"{state.server} uses no MCP servers"


def _row(server: McpServer | ServerEntry, login: str, origin: str, *, disabled: bool) -> dict[str, Any]:
    shown = {name: getattr(server, name) for name in ("name", "transport", "where", "isolation")}
    return {**shown, "login": login, "origin": origin, "disabled": disabled}


def _print_list(state: CommandState, rows: list[dict[str, Any]], warnings: Sequence[str]) -> None:
    from remit.cli.tables import TableColumn, table

    where, origin = TableColumn("WHERE", whole=False), TableColumn("FROM", whole=False, style="dim")
    columns = ("SERVER", "TRANSPORT", "STATE", "ISOLATION", "LOGIN", where, origin)
    names = ("name", "transport", "state", "isolation", "login", "where", "origin")
    shown = [{**row, "state": "disabled" if row["disabled"] else "used"} for row in rows]
    table(state.output.out, columns, [[row[name] for name in names] for row in shown])
    for warning in warnings:
        state.note(f"{state.output.err.style('warning:', 'warn')} {one_line(warning)}")


@command.command("show")
@click.argument("name", shell_complete=complete_servers)
@json_option("the server, its tools and its pin")
@pass_state
def show_command(state: CommandState, name: str) -> int:
    """Show a server, its tools and what is pinned.

    Levels are those you set in remit.toml, made stricter by what the server says about a tool.
    """

    async def look(remit: Opened) -> tuple[RemoteStatus, list[ToolView], Pin | None, str]:
        servers = remit.service.servers
        status = await servers.status(name)
        tools = [tool for tool in await remit.service.tools.views() if tool.provider_id == f"mcp_{name}"]
        isolation = next((entry.isolation for entry in await servers.entries() if entry.name == name), "")
        return status, tools, await servers.pin_of(name), isolation or "none"

    status, tools, pin, isolation = state.ask(look, code="unused", servers=True, blank=True)
    return state.show(
        {**_plain(name, status, tools, pin), "isolation": isolation},
        lambda state, _: _print_show(state, name, status, tools, pin, isolation),
    )


def _plain(name: str, status: RemoteStatus, tools: list[ToolView], pin: Pin | None) -> dict[str, Any]:
    import msgspec

    pinned = None if pin is None else {"at": pin.at, "by": pin.by, "how": pin.how, "tools": pin.tools}
    return {"server": name, **msgspec.to_builtins(status), "pin": pinned, "offered": msgspec.to_builtins(tools)}


def _print_show(
    state: CommandState, name: str, status: RemoteStatus, tools: list[ToolView], pin: Pin | None, isolation: str
) -> None:
    from remit.cli.tables import TableColumn, fields, moment, table

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
    columns = ("TOOL", "LEVEL", "STATE", TableColumn("WHAT IT DOES", whole=False))
    standings = ("withheld" if tool.quarantined else "used" for tool in tools)
    rows = [
        (tool.name, tool.capability_level, standing, tool.quarantined or tool.description)
        for tool, standing in zip(tools, standings, strict=True)
    ]
    table(out, columns, rows, indent=2)
    for tool in tools:
        for place in tool.unchecked:
            out.line(f"  {tool.name}: the pattern at {one_line(place)} cannot be run here; the server checks it")


@command.command("remove")
@click.argument("name", shell_complete=complete_servers)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option("what was removed")
@pass_state
def remove_command(state: CommandState, name: str, yes: bool) -> int:
    """Remove a server from remit.toml.

    At a terminal, asks first. Keeps the comments between tables, and everything recorded about the server.
    """
    from remit.cli.servers import settings_file
    from remit.cli.trust_question import still_trusted
    from remit.mcp_config.array_tables import server_names, without_server
    from remit.mcp_config.config_file import read_text, replace_text

    settings = state.settings()
    file = settings_file(settings)
    text = read_text(file)
    if name not in server_names(text):
        raise _absent(settings, file, name, server_names(text))
    changed = without_server(text, name)
    if not yes and not state.as_json and state.output.interactive:
        click.confirm(f"Remove {name} from {file}?", err=True, abort=True)
    with still_trusted(state.settings, trusted=state.trust):
        replace_text(file, changed)
    return state.done({"name": name, "file": str(file)}, f"removed {name} from {file}")


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


@command.command("test")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_servers)
@json_option("each server's answer")
@pass_state
def test_command(state: CommandState, names: tuple[str, ...]) -> int:
    """Connect to servers and show what they answer.

    Without NAME, tries every enabled server, all at once. For a server that does not answer, shows the last lines it
    wrote to stderr and exits with an error status.
    """
    tests = state.ask_here(partial(_try_all, state, names), code="unused", servers=True, blank=True)
    state.show(tests, _print_test)
    if any(test.get("code") == Code.UNKNOWN_TOOL.name for test in tests.values()):
        return exit_codes.USAGE  # a name that no server has
    return exit_codes.OK if all(test["ok"] for test in tests.values()) else exit_codes.FAILED


async def _try_all(state: CommandState, names: tuple[str, ...], remit: Remit) -> dict[str, dict[str, Any]]:
    from remit.cli.servers import known_servers

    wanted = names or tuple(server.name for server in known_servers(state.settings()).enabled)
    return dict(zip(wanted, await asyncio.gather(*(_try(remit, name) for name in wanted)), strict=True))


async def _try(remit: Remit, name: str) -> dict[str, Any]:
    import msgspec

    began = time.perf_counter()
    try:
        status = msgspec.to_builtins(await remit.service.servers.status(name))
    except RemitError as error:
        return {"ok": False, "code": error.code.name, "reason": error.message, "remedy": error.remedy}
    return {"ok": True, "seconds": round(time.perf_counter() - began, 3), **status}


def _print_test(state: CommandState, tests: dict[str, dict[str, Any]]) -> None:

    out = state.output.out
    width = max(map(len, tests), default=0)
    for name, test in tests.items():
        if test["ok"]:
            who = f"{test['name']} {test['version']}".strip() or "a server that does not say its name"
            summary = f"{one_line(who)}, protocol {test['protocol']}, {test['tools']} tools, {test['seconds']:.1f} s"
            out.line(f"{out.style('ok', 'ok')}      {name.ljust(width)}  {summary}")
        else:
            out.line(f"{out.style('failed', 'failed')}  {name.ljust(width)}  {one_line(test['reason'])}")
    if not tests:
        state.note(f"there are no servers: {state.command('mcp', 'add')}")
