"""Settings as people may see them: the names within MCP's tables stay, their values do not.

What stands in env, headers, tokens and arguments is secret by its place, whatever it looks like. Only what is listed
here is shown; every other value of these settings is an ellipsis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from remit.redact import MASK, mask
from remit.settings.address import HIDDEN, address, program


def shown(key: str, value: Any) -> Any:
    """The value of a setting without secrets."""
    picture = PICTURES.get(key)
    if picture is not None:
        return picture(value)
    return mask(value) if isinstance(value, str) else value


def _server(table: Any) -> Any:
    return _table(table, _SERVER)


def _client(table: Any) -> Any:
    return _table(table, {"principal": _plain})


def _table(table: Any, fields: Mapping[str, Callable[[Any], Any]]) -> Any:
    if not isinstance(table, dict):
        return HIDDEN
    return {mask(key): picture(value) for key, value in table.items() for picture in [fields.get(key, _hidden)]}


def _plain(value: Any) -> Any:
    """Values that hold no secrets, where they are what they should be."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {mask(key): _plain(item) for key, item in value.items()}
    return value if isinstance(value, bool | int) else HIDDEN


def _names(value: Any) -> Any:
    return {mask(key): HIDDEN for key in value} if isinstance(value, dict) else HIDDEN


def _command(value: Any) -> Any:
    """What is started; what it is given may be secret."""
    if isinstance(value, str):
        return program(value)
    if isinstance(value, list | tuple) and value and isinstance(value[0], str):
        return [program(value[0]), *_each(value[1:])]
    return _each(value)


def _each(value: Any) -> Any:
    return [HIDDEN for _ in value] if isinstance(value, list | tuple) else HIDDEN


def _hidden(value: Any) -> Any:
    return HIDDEN if value != "" else ""


def _journal(url: Any) -> Any:
    """A path as it is; of a URL nothing up to the last @, for what is no proper URL is read in many ways."""
    if not isinstance(url, str):
        return HIDDEN
    scheme, separator, rest = mask(url).partition("://")
    _user, at, place = rest.rpartition("@") if separator else ("", "", "")
    return f"{scheme}://{MASK}@{place}" if at else mask(url)


def _servers_json(text: str) -> str:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return HIDDEN if text else ""
    return str(msgspec.json.encode(_tables(_server)(value)), "utf-8")


def _tables(picture: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def of_all(value: Any) -> Any:
        return [picture(table) for table in value] if isinstance(value, list | tuple) else HIDDEN

    return of_all


_SERVER: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("name", "cwd", "timeout_ms", "era", "level", "tools", "idempotent", "disabled"), _plain),
    **dict.fromkeys(("command", "cmd"), _command),
    **dict.fromkeys(("env", "headers", "oauth"), _names),
    "args": _each,
    "url": lambda value: address(value) if isinstance(value, str) else HIDDEN,
}

PICTURES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "journal.url": _journal,
    "mcp.servers": _tables(_server),
    "mcp.clients": _tables(_client),
    "mcp.servers_json": _servers_json,
    "mcp.server_cmd": _command,
    "mcp.server_args_json": _hidden,
    "mcp.server_args": _hidden,
}
"""How to show the settings that may hold secrets; an error does not quote their values."""
