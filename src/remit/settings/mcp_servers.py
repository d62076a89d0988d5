"""The MCP servers that the settings name: those of remit.toml first, then those of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from remit.errors import SettingsError
from remit.settings.base import Base
from remit.settings.mcp import McpServer
from remit.settings.mcp_environment import Candidate, candidates
from remit.settings.mcp_table import read_server
from remit.settings.model import Settings
from remit.settings.places import server_folder


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """The servers there are, in order, and what was wrong with others."""

    servers: tuple[McpServer, ...] = ()
    """Each name once; those that are disabled are among them."""
    origins: Mapping[str, str] = {}
    """Where each came from, by name: the path of a file, or an environment name."""
    warnings: tuple[str, ...] = ()
    """Why a server of the environment was left out, one sentence each, without secrets."""
    placed: frozenset[str] = frozenset()
    """The names of those that say which folder to start them in."""

    @property
    def enabled(self) -> tuple[McpServer, ...]:
        """Those to connect."""
        return tuple([server for server in self.servers if not server.disabled])


def mcp_servers(settings: Settings, env: Mapping[str, str]) -> Servers:
    """The servers to use: as `configured_servers`, and none if `tools.no_mcp` is set."""
    return Servers() if settings.tools.no_mcp else configured_servers(settings, env)


def configured_servers(settings: Settings, env: Mapping[str, str]) -> Servers:
    """As `written_servers`, each to be started in a folder of its own unless it names one. Raises SettingsError."""
    written = written_servers(settings, env)
    servers = [one if one.name in written.placed else _apart(one, settings, env) for one in written.servers]
    return msgspec.structs.replace(written, servers=tuple(servers))


def written_servers(settings: Settings, env: Mapping[str, str]) -> Servers:
    """Every MCP server, checked, references in it as written.

    `env` says what `~` stands for. Raises SettingsError for a bad `[[mcp.servers]]` table, which names file, server and
    key; what is wrong in the contract's environment names is a warning, and the rest still loads.
    """
    home = _home(env)
    found, placed = _of_file(settings, home)
    origins = dict.fromkeys(found, settings.sources["mcp.servers"])
    given, warnings = candidates(settings)
    base = Base(settings.working_folder, home)
    for candidate in given:
        try:
            server = _of_environment(candidate, base, settings, origins)
        except SettingsError as error:
            warnings.append(f"{error.message}; it is skipped")
        else:
            found[server.name] = server
            placed |= {server.name} if candidate.table.get("cwd") else set()
            origins[server.name] = candidate.source
    return Servers(servers=tuple(found.values()), origins=origins, warnings=tuple(warnings), placed=frozenset(placed))


def _of_file(settings: Settings, home: Path | None) -> tuple[dict[str, McpServer], set[str]]:
    source = settings.sources["mcp.servers"]
    folder = settings.folder if source == str(settings.file) else settings.working_folder
    found: dict[str, McpServer] = {}
    placed: set[str] = set()
    for number, table in enumerate(settings.mcp.servers, 1):
        where = f"{source}: mcp.servers number {number}"
        server = read_server(table, where, Base(folder, home), str(settings.folder))
        if server.name in found:
            raise SettingsError(f"{where} ({server.name}): the name is taken", remedy="Give each server its own name.")
        found[server.name] = server
        placed |= {server.name} if table.get("cwd") else set()
    return found, placed


def _of_environment(candidate: Candidate, base: Base, settings: Settings, origins: Mapping[str, str]) -> McpServer:
    server = read_server(candidate.table, candidate.where, base, str(settings.folder))
    taken = origins.get(server.name)
    if taken == candidate.source:
        raise SettingsError(f"{candidate.where}: an earlier server has the name {server.name}")
    if taken is not None:
        raise SettingsError(f"{candidate.where}: {taken} already defines the server {server.name}; this one is ignored")
    return server


def _apart(server: McpServer, settings: Settings, env: Mapping[str, str]) -> McpServer:
    """The server, started in a folder of its own and not in the project; what its command names there, it still finds.

    One in the sandbox sees what its terms say, wherever it is started.
    """
    if not server.command or server.isolation == "sandbox":
        return server
    command = tuple([_named(word, settings.folder) for word in server.command])
    return msgspec.structs.replace(server, command=command, cwd=str(server_folder(env, settings.folder, server.name)))


def _named(word: str, folder: Path) -> str:
    """The absolute path where a word of a command is the path of something in the folder, or the name of a file."""
    place = Path(os.path.normpath(folder / word))
    try:
        found = place.is_file() or (place.exists() and (os.sep in word or word in {".", ".."}))
    except (OSError, ValueError):  # too long for a name, or not one
        return word
    return str(place) if found else word


def _home(env: Mapping[str, str]) -> Path | None:
    return Path(env["HOME"]) if env.get("HOME") else None
