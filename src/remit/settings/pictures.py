"""Settings as people may see them: the names within MCP's tables stay, their values do not.

What stands in env, headers, tokens and arguments is secret by its place, whatever it looks like. Only what is listed
here is shown; every other value of these settings is an ellipsis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from remit.redact import mask
from remit.settings.address import HIDDEN, address, program


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
