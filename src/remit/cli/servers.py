"""The base of the commands about MCP servers: which there are, the file to change, names for shells."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from remit.cli.context import State
from remit.errors import UsageError

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from remit.settings import Settings
    from remit.settings.base import Base
    from remit.settings.mcp_servers import Servers


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


def warn_of_rival(state: State, settings: Settings, file: Path) -> None:
    """Say that the file's servers are not the ones in force, where that is so."""
    source = settings.sources["mcp.servers"]
    if source not in {"default", str(file)}:
        state.note(f"{source} is set: the servers in {file} are passed over")


def complete_servers(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of servers for a shell; none where the settings are wrong, for a prompt is no place for errors."""
    from click.shell_completion import CompletionItem

    from remit.errors import RemitError

    state = State()
    state.config = context.find_root().params.get("config")
    try:
        servers = all_servers(state.settings()).servers
    except RemitError:
        return []
    return [CompletionItem(one.name, help=one.transport) for one in servers if one.name.startswith(incomplete)]
