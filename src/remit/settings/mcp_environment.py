"""MCP servers from the environment (contract: tools, "MCP"): a JSON array, or else a single server name by name.

What is wrong here is a warning and never an error: the person who sets the environment is often not the one who reads
the output, and the other servers must still load.
"""

from __future__ import annotations

import re
import shlex
from typing import Any, Final, NamedTuple

import msgspec

from remit.redact import line
from remit.settings.model import Settings

_SHOWN: Final = 80
"""Characters of a raw text in a warning."""
_SECRETS: Final = re.compile(r"[\"']?(?:cmd|command|args|env|url|headers)\b.*", re.IGNORECASE | re.DOTALL)
"""From here on a text that cannot be taken apart may hold secrets of any look."""


class Candidate(NamedTuple):
    """A table that may be a server."""

    table: dict[str, Any]
    source: str
    """The environment name it came from."""
    where: str
    """The same, with its number where there are several."""


def candidates(settings: Settings) -> tuple[list[Candidate], list[str]]:
    """Return what the environment names, unchecked, and the warnings so far."""
    warnings: list[str] = []
    text = settings.mcp.servers_json
    if text:
        source = settings.sources["mcp.servers_json"]
        value = _array(text, source, warnings)
        if value is not None:
            return _many(value, source, warnings), warnings
    single = _single(settings, warnings)
    return ([single] if single else []), warnings


def _many(value: list[Any], source: str, warnings: list[str]) -> list[Candidate]:
    found = []
    for number, table in enumerate(value, 1):
        where = f"{source}: server number {number}"
        if isinstance(table, dict):
            found.append(Candidate(table, source, where))
        else:
            warnings.append(f"{where} is not an object; it is skipped")
    return found


def _single(settings: Settings, warnings: list[str]) -> Candidate | None:
    mcp, sources = settings.mcp, settings.sources
    given = [name for name in ("server_name", "server_cmd") if getattr(mcp, name)]
    if not given:
        return None
    if len(given) == 1:
        source = sources[f"mcp.{given[0]}"]
        other = "NAME" if given[0] == "server_cmd" else "CMD"
        beside = source.removesuffix("NAME").removesuffix("CMD") + other
        warnings.append(f"{source} is set without {beside}; it is skipped")
        return None
    args = _arguments(settings, warnings)
    if args is None:
        return None
    table = {"name": mcp.server_name, "cmd": mcp.server_cmd, "args": args, "cwd": mcp.server_cwd}
    source = sources[f"mcp.{given[0]}"]
    return Candidate(table, source, source)


def _arguments(settings: Settings, warnings: list[str]) -> list[Any] | None:
    """The arguments of the single server; None if they cannot be read: then nothing is started."""
    mcp, sources = settings.mcp, settings.sources
    if mcp.server_args_json:
        value = _array(mcp.server_args_json, sources["mcp.server_args_json"], warnings)
        if value is not None:
            return value
    try:
        return shlex.split(mcp.server_args)
    except ValueError as exc:
        source = sources["mcp.server_args"]
        warnings.append(f"{source} cannot be split as a shell would ({exc}); the server is skipped")
        return None


def _array(text: str, source: str, warnings: list[str]) -> list[Any] | None:
    """The JSON array; None, and a warning, for anything else."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        value = None
    if isinstance(value, list):
        return value
    shown = line(_SECRETS.sub("…", text, count=1), _SHOWN)
    warnings.append(f"{source} is not a JSON array: {shown}; it is ignored")
    return None
