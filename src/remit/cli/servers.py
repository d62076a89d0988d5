"""The base of the commands about MCP servers: which there are, the file to change, names for shells.

Showing how a server's tools differ from their pin.

The files of MCP clients that are changed by command: which one, what differs, and whether it may be written.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import msgspec

from remit.cli.context import CommandState
from remit.cli.output import clean, one_line
from remit.cli.tables import moment
from remit.errors import RemitError, UsageError
from remit.redact import mask

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from remit.mcp_config.connection_record import ConnectionRecord
    from remit.mcp_config.places import Client
    from remit.service.mcp import ServerDiff, ToolDiff
    from remit.settings import Settings
    from remit.settings.file import Base
    from remit.settings.logins import LoginFile, LoginState
    from remit.settings.mcp import McpServer
    from remit.settings.mcp_servers import Servers
    from remit.tools.pins import Pin


F = TypeVar("F", bound=Callable[..., Any])


def known_servers(settings: Settings) -> Servers:
    """Every server of the file and the environment. Raises SettingsError."""
    from remit.settings.mcp_servers import mcp_servers

    return mcp_servers(settings, os.environ)


def all_servers(settings: Settings) -> Servers:
    """The same, also where `tools.no_mcp` leaves them unused."""
    from remit.settings.mcp_servers import configured_servers

    return configured_servers(settings, os.environ)


def settings_file(settings: Settings) -> Path:
    """The remit.toml to change; a new one in the working folder if there is none.

    Raises UsageError where what changes it is not installed.
    """
    from importlib.util import find_spec

    from remit.settings.file import FILE_NAME

    if find_spec("tomlkit") is None:
        raise UsageError("changing remit.toml needs the package tomlkit", remedy="pip install 'remit[mcp]'")
    return settings.file or settings.working_folder / FILE_NAME


def base_of(file: Path) -> Base:
    """Return what relative paths in that file count from."""
    from remit.settings.file import Base

    return Base(file.parent, Path(os.environ["HOME"]) if os.environ.get("HOME") else None)


def by_url(command: F) -> F:
    """The options of a command about a server that only `remit mcp wrap --url` knows."""
    options = (
        click.option("--url", default="", metavar="URL", help="The URL of a server that remit.toml does not name."),
        click.option("--name", "given_name", default="", metavar="NAME", help="With --url: its name, as for `wrap`."),
        click.option(
            "--issuer",
            "issuers",
            metavar="URL",
            multiple=True,
            help="With --url: where its login may lead, if elsewhere.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def meant(
    state: CommandState, name: str | None, url: str, given_name: str, issuers: tuple[str, ...]
) -> tuple[str, dict[str, Any]]:
    """The name of the server that is meant, and the flags under which it is known. Raises UsageError."""
    from remit.cli.wrap_server import alone, answering, name_at

    if bool(name) == bool(url):
        raise UsageError("either the name of a server or --url is needed", remedy="`remit mcp list` lists the servers.")
    if name:
        return name, {}
    state.search = False
    called = given_name or name_at(url)
    return called, alone(called, answering(called, url, issuers=issuers))


def server_of(settings: Settings, name: str) -> McpServer:
    """The server of this name. Raises UsageError."""
    server = next((entry for entry in all_servers(settings).servers if entry.name == name), None)
    if server is None:
        raise UsageError(f"there is no MCP server {name!r}", remedy="`remit mcp list` lists the servers.")
    return server


def login_file(server: McpServer, principal: str) -> LoginFile:
    """The file of a server's login, of a principal if each has one.

    Raises SettingsError for a variable that is not set.
    """
    import msgspec

    from remit.settings.expansion import expand
    from remit.settings.logins import LoginFile
    from remit.settings.places import login_folder

    url = expand(server.url, os.environ, f"MCP server {server.name}")
    return LoginFile(login_folder(os.environ), msgspec.structs.replace(server, url=url), principal)


def login_of(server: McpServer, principal: str) -> LoginState:
    """The state of a server's login, by its file alone; empty also if its URL is not known without a secret."""
    from remit.clock import SECOND, SystemClock

    if server.oauth is None or "${keyring:" in server.url:
        return ""  # a look opens no keyring
    try:
        return login_file(server, principal).state(server, SystemClock().now() / SECOND)
    except RemitError:
        return ""


def warn_of_rival(state: CommandState, settings: Settings, file: Path) -> None:
    """Say that the file's servers are not the ones in force, where that is so."""
    source = settings.sources["mcp.servers"]
    if source not in {"default", str(file)}:
        state.note(f"{source} is set: the servers in {file} are passed over")


def complete_servers(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of servers for a shell; none where the settings are wrong, for a prompt is no place for errors."""
    from click.shell_completion import CompletionItem

    state = CommandState()
    state.config = context.find_root().params.get("config")
    try:
        servers = all_servers(state.settings()).servers
    except RemitError:
        return []
    return [
        CompletionItem(server.name, help=server.transport) for server in servers if server.name.startswith(incomplete)
    ]


_STYLES: Final = {"+": "ok", "-": "failed"}
_AROUND: Final = 3
"""Lines of a definition that are shown around each change."""


def pin_shown(server: str, pin: Pin) -> dict[str, Any]:
    """Return a new pin as JSON."""
    return {"server": server, "by": pin.by, "tools": pin.tools, "names_hash": pin.names_hash}


def plain(diff: ServerDiff) -> dict[str, Any]:
    """The differences as JSON."""
    return {
        "server": diff.server,
        "pinned_at": diff.pin.at,
        "pinned_by": diff.pin.by,
        "digest": diff.digest,
        "changes": msgspec.to_builtins(diff.changes),
        "tools": msgspec.to_builtins(diff.tools),
    }


def show(state: CommandState, diff: ServerDiff) -> None:
    """The differences for people, every changed word of them."""
    out = state.output.out
    pin = diff.pin
    since = f"since {moment(pin.at)}, when {one_line(pin.by)} took them ({pin.how.replace('_', ' ')})"
    if not diff.changes:
        out.line(f"nothing has changed in {diff.server} {since}")
        return
    counts = [f"{len(names)} {how}" for how, names in msgspec.structs.asdict(diff.changes).items() if names]
    out.line(out.style(f"{diff.server}: {', '.join(counts)} {since}", "bold"))
    for tool in diff.tools:
        drift = f" ({tool.drift.replace('_', ' ')})" if tool.drift else ""
        out.line()
        out.line(f"{out.style(tool.how, 'warn')} {one_line(tool.name)}{drift}")
        for line in _near(tool):
            out.line("  " + out.style(clean(line), _STYLES.get(line[0], "dim")))


def _near(tool: ToolDiff) -> list[str]:
    """The lines that differ, and a few around each."""
    differs = [number for number, line in enumerate(tool.lines) if line[0] != " "]
    near = {number + offset for number in differs for offset in range(-_AROUND, _AROUND + 1)}
    shown: list[str] = []
    for number, line in enumerate(tool.lines):
        if number in near:
            shown.append(line)
        elif not shown or shown[-1] != "  …":
            shown.append("  …")
    return shown


def place(state: CommandState, client: Client, *, project: bool, other: Path | None) -> tuple[Path, ConnectionRecord]:
    """Return a client's file, and the record of what was done to it. Raises UsageError."""
    from remit.mcp_config.connection_record import ConnectionRecord
    from remit.mcp_config.places import file_of
    from remit.settings.places import data_folder

    settings = state.settings()
    settings_file(settings)  # says what is not installed
    folder = settings.folder if project else None
    file = (
        other.expanduser() if other is not None else file_of(client, os.environ, folder, mac=sys.platform == "darwin")
    )
    if file is None:
        where = "for projects" if project else "without HOME"
        raise UsageError(f"{client} has no file {where}", remedy="Name its file: --file FILE.")
    return file, ConnectionRecord(data_folder(os.environ) / "connections", file)


def shown_difference(file: Path, before: str, after: str) -> str:
    """Return a unified diff, its secrets masked; empty if nothing differs."""
    from remit.files.edits import whole_diff

    return mask(whole_diff(str(file).removeprefix("/"), before, after)) if before != after else ""


def agreed(state: CommandState, difference: str, question: str, *, yes: bool) -> bool:
    """Show what would be different, and ask whether to write it. Raises UsageError where no one can be asked."""
    from remit.redact.visible import visible

    if state.as_json:
        return yes
    out = state.output.out
    for line in difference.splitlines():
        out.line(out.style(visible(line), {"+": "ok", "-": "failed"}.get(line[:1], "dim")))
    if yes:
        return True
    if not state.output.interactive:
        raise UsageError("nothing was written: no one is here to agree", remedy="Say that you do: --yes.")
    return click.confirm(question, err=True)


def report(state: CommandState, notes: list[str], done: str) -> None:
    """Say what was left aside, and what was done."""
    out = state.output.out
    for note in notes:
        out.line(one_line(note))
    if done:
        out.line(f"{out.style('ok', 'ok')} {done}")
    else:
        state.note("nothing was written")
