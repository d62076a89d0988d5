"""Servers as other clients' files have them, taken out but not yet understood."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from remit.errors import SettingsError
from remit.mcp_config.places import Client, client_of
from remit.regex import regex
from remit.settings.file import text_of


class Foreign(NamedTuple):
    """One entry of a client's file."""

    name: str
    entry: Mapping[str, Any]
    client: Client
    file: Path
    inputs: Mapping[str, Mapping[str, Any]] = {}
    """The inputs that VS Code asks its user for, by id."""
    project: Path | None = None
    """The folder of the project whose server it is: its relative paths count from there."""
    disabled: bool = False
    """Whether its client does not start it."""


class FileContent(NamedTuple):
    """The content of a file."""

    servers: list[Foreign]
    notes: list[str]
    """The notes on parts left aside, one sentence each."""
    off: frozenset[str] = frozenset()
    """Servers of the project's `.mcp.json` that its person disabled in Claude Code's own file."""


def read_foreign(file: Path, client: Client | None, projects: Collection[Path]) -> FileContent:
    """The servers in a client's file; without `client`, the file's name or its contents say whose it is.

    Of Claude Code's own file, the user's servers and those of `projects`. Raises SettingsError for any other file.
    """
    twice: list[str] = []
    value = _codex(read_toml(file)) if file.suffix == ".toml" else read_json(file, twice)
    if not isinstance(value, dict):
        raise SettingsError(f"{file}: is not a JSON object", remedy="Name the configuration file of an MCP client.")
    client = client or client_of(file) or ("vscode" if "servers" in value else "claude-code")
    key = "servers" if client == "vscode" else "mcpServers"
    if key not in value and "projects" not in value:
        name = "mcp_servers" if file.suffix == ".toml" else key
        return FileContent([], [f"{file}: names no servers (it has no {name})"])
    inputs = _inputs(value.get("inputs"))
    foreign = _entries(value.get(key, {}), Foreign("", {}, client, file, inputs, _project(file)))
    foreign.notes.extend(f"{file}: {name} is there twice in one object; only the last one counts" for name in twice)
    off: set[str] = set()
    for path, settings in _projects(value).items():
        entries = settings.get("mcpServers") or {}
        here = Path(path) in projects
        if entries and here:
            more = _entries(entries, Foreign("", {}, client, file, inputs, Path(path)))
            foreign.servers.extend(more.servers)
            foreign.notes.extend(more.notes)
        elif entries:
            foreign.notes.append(f"{file}: left out {len(entries)} servers of the project {path}; import them there")
        if here:
            disabled = _texts(settings.get("disabledMcpServers"))
            foreign.servers[:] = [without(server, disabled) for server in foreign.servers]
            off |= disabled | _texts(settings.get("disabledMcpjsonServers"))
    return foreign._replace(off=frozenset(off))


def without(foreign: Foreign, names: Collection[str]) -> Foreign:
    """The same server, disabled if it has one of these names."""
    return foreign._replace(disabled=True) if foreign.name in names else foreign


def _project(file: Path) -> Path | None:
    """The folder that a file of a project lies in; None for a file of its user."""
    folder = file.absolute().parent
    if folder.name in {".cursor", ".vscode"}:
        return folder.parent
    return folder if file.name == ".mcp.json" else None


def _entries(value: Any, empty: Foreign) -> FileContent:
    file = empty.file
    if not isinstance(value, dict):
        raise SettingsError(f"{file}: its servers are not a JSON object", remedy="Name the file of an MCP client.")
    entries = FileContent([], [])
    for name, entry in value.items():
        if isinstance(entry, dict):
            entries.servers.append(empty._replace(name=name, entry=entry))
        else:
            entries.notes.append(f"{file}: {name} is not a JSON object; it is skipped")
    return entries


def _inputs(value: Any) -> dict[str, Mapping[str, Any]]:
    items = value if isinstance(value, list) else []
    return {item["id"]: item for item in items if isinstance(item, dict) and isinstance(item.get("id"), str)}


def _projects(value: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    projects = value.get("projects")
    items = projects.items() if isinstance(projects, dict) else ()
    settings = {path: project for path, project in items if isinstance(project, dict)}
    return {
        path: {**project, "mcpServers": entries if isinstance(entries := project.get("mcpServers"), dict) else {}}
        for path, project in settings.items()
    }


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> set[str]:
    return {item for item in value if isinstance(item, str)} if isinstance(value, list) else set()


def _codex(value: Mapping[str, Any]) -> dict[str, Any]:
    """The servers of Codex's config.toml in the words of the others."""
    servers = value.get("mcp_servers")
    if not isinstance(servers, dict):
        return {}
    return {
        "mcpServers": {name: _of_codex(entry) if isinstance(entry, dict) else entry for name, entry in servers.items()}
    }


def _of_codex(entry: Mapping[str, Any]) -> dict[str, Any]:
    taken = {"enabled", "http_headers", "env_http_headers", "bearer_token_env_var", "env_vars"}
    carried = {key: value for key, value in entry.items() if key not in taken}
    headers = dict(_table(entry.get("http_headers")))
    headers |= {name: f"${{{variable}}}" for name, variable in _table(entry.get("env_http_headers")).items()}
    if entry.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{entry['bearer_token_env_var']}}}"
    env = {**{name: f"${{{name}}}" for name in _texts(entry.get("env_vars"))}, **_table(entry.get("env"))}
    disabled = {"disabled": True} if entry.get("enabled") is False else {}
    return {**carried, "headers": headers, "env": env, **disabled}


MAX_BYTES: Final = 64 * 1024 * 1024
"""A larger file is not read; Claude Code keeps its history beside its servers."""
MAX_DEPTH: Final = 64
"""A value nested more deeply is refused."""

_STRING: Final = r'"(?:[^"\\\n]|\\.)*+"'
_COMMENT: Final = regex(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMA: Final = regex(rf"{_STRING}|,(?=\s*[}}\]])")
_REMEDY: Final = "Correct the JSON there."


def read_json(file: Path, twice: list[str] | None = None) -> Any:
    """The value in a file; keys that an object has twice, the last of which counts, are added to `twice`.

    Raises SettingsError with file, line and column, and quotes nothing of the file.
    """
    text = text_of(file, MAX_BYTES, "configuration file").removeprefix("\ufeff")
    return parse(text, str(file), twice)


def read_toml(file: Path) -> dict[str, Any]:
    """The tables in a file. Raises SettingsError."""
    try:
        return tomllib.loads(text_of(file, MAX_BYTES, "configuration file"))
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        raise SettingsError(f"{file}: is not TOML", remedy="Correct the TOML there.") from exc


def parse(text: str, where: str, twice: list[str] | None = None) -> Any:
    """The value of a text; `where` begins its errors. Raises SettingsError."""
    try:
        value = _parsed(text, [] if twice is None else twice)
    except json.JSONDecodeError as exc:
        raise SettingsError(f"{where}:{exc.lineno}:{exc.colno}: {exc.msg}", remedy=_REMEDY) from exc
    except (RecursionError, ValueError) as exc:
        raise SettingsError(f"{where}: is nested too deeply or contains too long a number", remedy=_REMEDY) from exc
    if _is_deeper(value, MAX_DEPTH):
        raise SettingsError(f"{where}: is nested more than {MAX_DEPTH} deep", remedy=_REMEDY)
    if "\\ud" in text.lower() and not _is_unicode(value):
        raise SettingsError(f"{where}: contains a lone surrogate (half a character)", remedy=_REMEDY)
    return value


def _parsed(text: str, twice: list[str]) -> Any:
    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            names = [name for name, _ in pairs]
            twice.extend(name for name in value if names.count(name) > 1)
        return value

    try:
        return json.loads(text, object_pairs_hook=members)
    except json.JSONDecodeError:
        twice.clear()
        return json.loads(plain(text), object_pairs_hook=members)


def plain(text: str) -> str:
    """Strict JSON: blanks in the place of comments and commas too many, so that every line and column stays."""
    return _COMMA.sub(_blank, _COMMENT.sub(_blank, text))


def _blank(match: re.Match[str]) -> str:
    piece = match[0]
    return piece if piece.startswith('"') else re.sub(r"[^\n]", " ", piece)


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [item for each in level if isinstance(each, dict | list) for item in _items(each)]
    return any(isinstance(each, dict | list) for each in level)


def _items(container: dict[str, Any] | list[Any]) -> list[Any]:
    return list(container.values()) if isinstance(container, dict) else container


def _is_unicode(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
