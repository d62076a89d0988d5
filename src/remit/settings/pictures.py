"""Settings as people may see them: the names within MCP's tables stay, their values do not.

What stands in env, headers, tokens and arguments is secret by its place, whatever it looks like. Only what is listed
here is shown; every other value of these settings is an ellipsis.

Where a server is reached, as people may see it: a URL or a program, without what may be secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from remit.redact import mask
from remit.regex import regex
from remit.settings.file import Base

HIDDEN: Final = "…"
"""Stands for what is not shown."""
_REFERENCE: Final = regex(r"\$\{\w+\}", re.ASCII)
_RUN: Final = regex(r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16,}")
_UUID: Final = regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def address(url: str) -> str:
    """The URL without user, password, query and fragment; a part of its path that looks like a token is hidden."""
    if _REFERENCE.fullmatch(url):
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        return HIDDEN
    path = "/".join(HIDDEN if is_opaque(part) else part for part in parts.path.split("/"))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}"


def is_url(text: str) -> bool:
    """Say whether a text is a URL of HTTP with a host."""
    try:
        return text.startswith(("https://", "http://")) and bool(urlsplit(text).hostname)
    except ValueError:
        return False


def url_or_empty(text: str, _base: Base) -> str:
    """Return the URL that a setting names, or nothing. Raise ValueError, which does not quote it."""
    if text and not is_url(text):
        raise ValueError("it begins with neither https:// nor http:// and a host")
    return text


def program(word: str) -> str:
    """The first word of a command; nothing of a line that was written in its place, or of an assignment's value."""
    first, *rest = word.split() or [""]
    name, assigned, _ = first.partition("=")
    return mask(name) + (f"={HIDDEN}" if assigned else "") + (f" {HIDDEN}" if rest else "")


def is_opaque(word: str) -> bool:
    """Return whether a word looks like a token: a long run of letters and digits, a UUID, or of a known shape."""
    return any(pattern.search(word) for pattern in (_RUN, _UUID)) or mask(word) != word


def servers(value: Any) -> Any:
    """MCP servers: programs, addresses and names."""
    return tables(value, _SERVER)


def clients(value: Any) -> Any:
    """Clients over HTTP: whose calls theirs are, and what they may do."""
    shown = ("name", "principal", "scopes", "tools", "expires", "issuer", "audience")
    return tables(value, dict.fromkeys(shown, plain))


def runners(value: Any) -> Any:
    """Runners of tools: their addresses, and what they serve."""
    return tables(value, {"name": plain, "url": address, "serves": plain})


def servers_json(text: str) -> str:
    """MCP servers as JSON text."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return HIDDEN if text else ""
    return str(msgspec.json.encode(servers(value)), "utf-8")


def command(value: Any) -> Any:
    """Return what is started; what it is given may be secret."""
    if isinstance(value, str):
        return program(value)
    if isinstance(value, list | tuple) and value and isinstance(value[0], str):
        return [program(value[0]), *_each(value[1:])]
    return _each(value)


def url(value: Any) -> Any:
    """Return where a server is, or nothing where none is named."""
    return (address(value) if value else "") if isinstance(value, str) else HIDDEN


def hidden(value: Any) -> Any:
    """Only whether there is a value."""
    return HIDDEN if value != "" else ""


def tables(value: Any, fields: Mapping[str, Callable[[Any], Any]]) -> Any:
    """Tables, each of these fields by its own picture, any other hidden."""
    return [_table(table, fields) for table in value] if isinstance(value, list | tuple) else HIDDEN


def _table(table: Any, fields: Mapping[str, Callable[[Any], Any]]) -> Any:
    if not isinstance(table, dict):
        return HIDDEN
    return {mask(key): picture(value) for key, value in table.items() for picture in [fields.get(key, hidden)]}


def plain(value: Any) -> Any:
    """Values that hold no secrets, where they are what they should be."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {mask(key): plain(item) for key, item in value.items()}
    return value if isinstance(value, bool | int) else HIDDEN


def names(value: Any) -> Any:
    """Return the keys of a table, whose values are secret."""
    return {mask(key): HIDDEN for key in value} if isinstance(value, dict) else HIDDEN


def _each(value: Any) -> Any:
    return [HIDDEN for _ in value] if isinstance(value, list | tuple) else HIDDEN


_SERVER: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(
        (
            "name",
            "login",
            "cwd",
            "timeout_ms",
            "grace_ms",
            "era",
            "level",
            "tools",
            "idempotent",
            "strict",
            "client_capabilities",
            "disabled",
            "sandbox",
        ),
        plain,
    ),
    **dict.fromkeys(("command", "cmd"), command),
    **dict.fromkeys(("env", "headers", "oauth"), names),
    "args": _each,
    "url": lambda value: address(value) if isinstance(value, str) else HIDDEN,
}
