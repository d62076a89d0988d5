"""A server of another client as a table of ours: what it becomes, what it needs, and what cannot come along."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from remit.mcp_config.foreign import Foreign
from remit.mcp_config.translation import Translation

_STDIO: Final = "stdio"
_HTTP: Final = frozenset({"http", "streamable-http", "streamablehttp", "streamable_http"})


class Carried(NamedTuple):
    """What happened to an entry."""

    table: dict[str, Any]
    """Keys of a `[[mcp.servers]]` table without its name, secrets still in it; empty where it was skipped."""
    skipped: str
    """Why it cannot be used; empty where it can."""
    notes: tuple[str, ...]
    variables: dict[str, str]
    """Environment variables it needs, with what they stand for."""


def carry(foreign: Foreign, folder: Path | None = None) -> Carried:
    """Turn an entry into a table of the remit.toml in `folder`. What does not fit is said, never dropped in silence."""
    translation = Translation(foreign)
    entry = foreign.entry
    if "url" not in entry and isinstance(entry.get("httpUrl"), str):  # Gemini's word for streamable HTTP
        entry = {"url" if key == "httpUrl" else key: value for key, value in entry.items()}
    kind = _kind(entry)
    if kind not in {_STDIO, "http"}:
        return Carried({}, kind, (), {})
    keys = ("command", "args", "env", "cwd") if kind == _STDIO else ("url", "headers")
    table: dict[str, Any] = {}
    for key in keys:
        if entry.get(key) not in (None, "", [], {}):
            problem = _take(table, key, entry[key], translation)
            if problem:
                return Carried({}, problem, (), {})
    if kind == _STDIO:
        table["command"] = [table["command"], *table.pop("args", [])]
        if foreign.project is not None and foreign.project != folder:
            _place(table, foreign.project, translation)
    if foreign.disabled or entry.get("disabled") is True or entry.get("enabled") is False:
        table["disabled"] = True
    if foreign.disabled:
        translation.notes["it is disabled there, so it is imported as disabled"] = None
    others = [key for key in entry if key not in keys and entry[key] not in (None, "", [], {})]
    left = [key for key in others if key not in {"type", "transport", "disabled", "enabled"}]
    notes = [*translation.notes, *([f"not carried over: {', '.join(left)}"] if left else [])]
    return Carried(table, "", tuple(notes), translation.variables)


def _kind(entry: Mapping[str, Any]) -> str:
    """`stdio`, `http`, or why it is neither."""
    said = entry.get("type", entry.get("transport"))
    kind = said.lower() if isinstance(said, str) else ""
    if kind in _HTTP or (not kind and "command" not in entry):
        if isinstance(entry.get("url"), str) and entry["url"]:
            return "http"
        fields = ", ".join(key for key in entry if key not in {"type", "transport"})
        return "it has no command and no url" + (f", only {fields}" if fields else "")
    if kind in {_STDIO, ""}:
        return _STDIO if isinstance(entry.get("command"), str) and entry["command"].strip() else "it has no command"
    if kind == "sse":
        return "its transport is sse, which is not supported; ask whether the server also speaks streamable HTTP"
    return f"its type {kind} is not supported"


def _place(table: dict[str, Any], project: Path, translation: Translation) -> None:
    """Let the relative paths of a server count from the project that it was written for."""
    words = [*table["command"], *table.get("env", {}).values()]
    if "cwd" in table:
        if not table["cwd"].startswith(("/", "~", "$")):
            table["cwd"] = str(project / table["cwd"])
    elif any(word in {".", ".."} or word.startswith(("./", "../")) for word in words) or any(
        "/" in word and not word.startswith("/") and (project / word).exists() for word in words
    ):
        table["cwd"] = str(project)
        translation.notes[f"it runs in {project}, where its relative paths are"] = None


def _take(table: dict[str, Any], key: str, value: Any, translation: Translation) -> str:
    """Put a value into the table; why that is not possible, or nothing."""
    if key in {"env", "headers"}:
        if not isinstance(value, dict):
            return f"its {key} is not an object"
        table[key] = {
            name: _text(one, translation) for name, one in value.items() if isinstance(one, str | int | float)
        }
        for name in [name for name in value if name not in table[key]]:
            translation.notes[f"not carried over: {key} {name}, which is not text"] = None
    elif key == "args":
        if not isinstance(value, list) or not all(isinstance(one, str | int | float) for one in value):
            return "its args are not a list of texts"
        table[key] = [_text(one, translation) for one in value]
    elif isinstance(value, str):
        text = _text(value, translation)
        table[key] = text.replace("${HOME}", "~", 1) if key == "cwd" else text
    else:
        return f"its {key} is not text"
    return ""


def _text(value: str | float, translation: Translation) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return translation.text(value) if isinstance(value, str) else str(value)
