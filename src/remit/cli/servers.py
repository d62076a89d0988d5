"""The base of the commands about MCP servers: which there are, the file to change, names for shells."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from remit.cli.context import State
from remit.errors import RemitError, UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from remit.settings import Settings
    from remit.settings.base import Base
    from remit.settings.logins import LoginFile, LoginState
    from remit.settings.mcp import McpServer
    from remit.settings.mcp_servers import Servers

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
    from remit.settings.base import Base

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
    state: State, name: str | None, url: str, given_name: str, issuers: tuple[str, ...]
) -> tuple[str, dict[str, Any]]:
    """The name of the server that is meant, and the flags under which it is known. Raises UsageError."""
    from remit.cli.wrapping import alone, answering, name_at

    if bool(name) == bool(url):
        raise UsageError("either the name of a server or --url is needed", remedy="`remit mcp list` lists the servers.")
    if name:
        return name, {}
    state.search = False
    called = given_name or name_at(url)
    return called, alone(called, answering(called, url, issuers=issuers))


def server_of(settings: Settings, name: str) -> McpServer:
    """The server of this name. Raises UsageError."""
    server = next((one for one in all_servers(settings).servers if one.name == name), None)
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


def warn_of_rival(state: State, settings: Settings, file: Path) -> None:
    """Say that the file's servers are not the ones in force, where that is so."""
    source = settings.sources["mcp.servers"]
    if source not in {"default", str(file)}:
        state.note(f"{source} is set: the servers in {file} are passed over")


def complete_servers(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of servers for a shell; none where the settings are wrong, for a prompt is no place for errors."""
    from click.shell_completion import CompletionItem

    state = State()
    state.config = context.find_root().params.get("config")
    try:
        servers = all_servers(state.settings()).servers
    except RemitError:
        return []
    return [CompletionItem(one.name, help=one.transport) for one in servers if one.name.startswith(incomplete)]
