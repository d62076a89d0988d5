"""Servers as other clients' files have them, taken out but not yet understood."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from remit.errors import SettingsError
from remit.mcp_config.jsonc import read_json
from remit.mcp_config.places import Client, client_of


class Foreign(NamedTuple):
    """One entry of a client's file."""

    name: str
    entry: Mapping[str, Any]
    client: Client
    file: Path
    inputs: Mapping[str, Mapping[str, Any]] = {}
    """What VS Code asks its user for, by id."""


class Found(NamedTuple):
    """What a file holds."""

    servers: list[Foreign]
    notes: list[str]
    """What was left aside, one sentence each."""


def read_foreign(file: Path, client: Client | None, projects: Collection[Path]) -> Found:
    """The servers in a client's file; without `client`, the file's name or its contents say whose it is.

    Of Claude Code's own file, the user's servers and those of `projects`. Raises SettingsError for any other file.
    """
    value = read_json(file)
    if not isinstance(value, dict):
        raise SettingsError(f"{file}: is not a JSON object", remedy="Name the configuration file of an MCP client.")
    client = client or client_of(file) or ("vscode" if "servers" in value else "claude-code")
    key = "servers" if client == "vscode" else "mcpServers"
    if key not in value and "projects" not in value:
        return Found([], [f"{file}: names no servers (it has no {key})"])
    inputs = _inputs(value.get("inputs"))
    found = _entries(value.get(key, {}), client, file, inputs)
    for path, settings in _projects(value).items():
        entries = settings.get("mcpServers") or {}
        if entries and Path(path) in projects:
            more = _entries(entries, client, file, inputs)
            found.servers.extend(more.servers)
            found.notes.extend(more.notes)
        elif entries:
            found.notes.append(f"{file}: left out {len(entries)} servers of the project {path}; import them there")
    return found


def _entries(value: Any, client: Client, file: Path, inputs: Mapping[str, Mapping[str, Any]]) -> Found:
    if not isinstance(value, dict):
        raise SettingsError(f"{file}: its servers are not a JSON object", remedy="Name the file of an MCP client.")
    found = Found([], [])
    for name, entry in value.items():
        if isinstance(entry, dict):
            found.servers.append(Foreign(name, entry, client, file, inputs))
        else:
            found.notes.append(f"{file}: {name} is not a JSON object; it is skipped")
    return found


def _inputs(value: Any) -> dict[str, Mapping[str, Any]]:
    items = value if isinstance(value, list) else []
    return {item["id"]: item for item in items if isinstance(item, dict) and isinstance(item.get("id"), str)}


def _projects(value: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    projects = value.get("projects")
    items = projects.items() if isinstance(projects, dict) else ()
    return {path: one for path, one in items if isinstance(one, dict) and isinstance(one.get("mcpServers"), dict)}
