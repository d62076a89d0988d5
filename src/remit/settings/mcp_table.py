"""From a table that someone wrote to a checked MCP server; its errors quote no value, for any may be a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from remit.errors import SettingsError
from remit.http.urls import is_issuer
from remit.nearest import did_you_mean
from remit.process.enclosure import SandboxTerms
from remit.settings.address import is_url
from remit.settings.base import Base
from remit.settings.expansion import is_sound
from remit.settings.mcp import McpServer

NAME: Final = re.compile("[a-z0-9]+(?:_[a-z0-9]+)*")
"""A server's name: a segment of a tool's name (remit.tools.naming).

The contract takes `[a-z0-9_]+`. Of these, names with `_` at an end or with `__` are refused: models see `__` between
the parts of a tool's name, so that `a_` with the tool `b` and `a` with the tool `_b` would be one name to them.
"""
_WIDE: Final = re.compile("[a-z0-9_]+")
_ALIASES: Final = ("cmd", "args")
_VARIABLE: Final = re.compile(r"[^=\0]+")
_HEADER: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_EXPECTED: Final = {
    "command": "a list of texts, the first of them not empty",
    "args": "a list of texts",
    "cwd": "text",
    "env": "a table of texts, named like variables",
    "url": "text that begins with https:// or http:// and a host",
    "headers": "a table of texts, named like headers",
    "oauth": "a table of texts, with any of client_id, client_secret, scope, issuer and client_metadata_url",
    "login": "shared or user",
    "timeout_ms": "an integer from 0 to 86400000",
    "grace_ms": "an integer from 0 to 600000",
    "era": "auto, legacy or modern",
    "level": "L0, L1 or L2",
    "tools": "a table of levels (L0, L1 or L2), by names or patterns of tools",
    "idempotent": "a list of texts",
    "strict": "true or false",
    "client_capabilities": "a table of tables, with any of elicitation, sampling, roots, extensions and experimental",
    "sandbox": "true, false, or a table with any of roots, writable, network (lists of texts) and limits (a table of "
    "whole numbers)",
    "disabled": "true or false",
}
_EXCHANGE: Final = ("identity_provider", "identity_client_id", "identity_client_secret")
"""Keys of an oauth table by which callers' own tokens are exchanged; all of them, or none."""
_OAUTH: Final = frozenset({"client_id", "client_secret", "scope", "issuer", "client_metadata_url", *_EXCHANGE})
_CAPABILITIES: Final = frozenset({"elicitation", "sampling", "roots", "extensions", "experimental"})
_MOST_MS: Final[Mapping[str, int]] = {"timeout_ms": 86_400_000, "grace_ms": 600_000}
_AT: Final = re.compile(r"at `\$\.(\w+)")


def read_server(table: Mapping[str, Any], where: str, base: Base, folder: str) -> McpServer:
    """The server that a table stands for; also `cmd`, or a `command` that is one text, with `args` beside it.

    A key that is null counts as absent. A relative `cwd` counts from `base`, without one the server is started in
    `folder`. Raises SettingsError that begins with `where` and names the server and the key.
    """
    table = {key: value for key, value in table.items() if value is not None}
    name = table.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise _misnamed(name, where)
    where = f"{where} ({name})"
    _known(table, where)
    server = _typed(_with_command(table, where), where)
    _consistent(server, where)
    if server.url:
        return server
    cwd = _folder("cwd", server.cwd, base, where) if server.cwd else folder
    return msgspec.structs.replace(server, cwd=cwd, sandbox=_terms(server.sandbox, base, where))


def _misnamed(name: object, where: str) -> SettingsError:
    if not isinstance(name, str) or not _WIDE.fullmatch(name):
        return SettingsError(
            f"{where}: name must be lower-case letters and digits, with single underscores inside",
            remedy="Give the server a name such as github or my_files.",
        )
    near = re.sub("_+", "_", name).strip("_")
    return SettingsError(
        f"{where}: name must have single underscores, and only inside: models see `__` between the parts of a tool's "
        "name",
        remedy=f"Call the server {near}." if near else "Give the server a name such as github or my_files.",
    )


def _known(table: Mapping[str, Any], where: str) -> None:
    known = (*McpServer.__struct_fields__, *_ALIASES)
    for key in table:
        if key not in known:
            remedy = did_you_mean(key, known) or f"Its keys are {', '.join(known)}."
            raise SettingsError(f"{where}: there is no key {key}", remedy=remedy)


def _with_command(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The table with its command as one list."""
    rest = {key: value for key, value in table.items() if key not in {"cmd", "args", "command"}}
    given = [table[key] for key in ("command", "cmd") if key in table]
    if len(given) > 1:
        raise SettingsError(f"{where}: both command and cmd are given", remedy="Leave one of them out.")
    args = table.get("args", [])
    if not isinstance(args, list | tuple):
        raise _misfit(where, "args")
    if not given:
        if args:
            raise SettingsError(f"{where}: args are given without a command", remedy="Name the client that takes them.")
        return rest
    command = [given[0]] if isinstance(given[0], str) else given[0]
    if (
        not isinstance(command, list | tuple)
        or not command
        or not isinstance(command[0], str)
        or not command[0].strip()
    ):
        raise _misfit(where, "command")
    return {**rest, "command": [*command, *args]}


def _typed(table: dict[str, Any], where: str) -> McpServer:
    try:
        return msgspec.convert(table, McpServer)
    except msgspec.ValidationError as exc:
        at = _AT.search(str(exc))
        raise _misfit(where, at[1] if at else "name") from exc


def _referring(server: McpServer, where: str) -> None:
    """Raise SettingsError for a `${` that refers to nothing: the server could never be connected."""
    tables = {"env": server.env, "headers": server.headers, "oauth": server.oauth or {}}
    texts = {"command": server.command, "url": (server.url,)} | {key: table.values() for key, table in tables.items()}
    for key in (key for key, values in texts.items() if not all(map(is_sound, values))):
        remedy = "Write ${NAME} or ${keyring:NAME}, or $${ for a plain ${."
        raise SettingsError(f"{where}: a `${{` in its {key} names nothing", remedy=remedy)


def _consistent(server: McpServer, where: str) -> None:
    if bool(server.command) == bool(server.url):
        both = "both command and url are" if server.url else "neither command nor url is"
        raise SettingsError(
            f"{where}: {both} given", remedy="Give command for a server that is started here, url for one that answers."
        )
    owners = {
        "env": "command",
        "cwd": "command",
        "sandbox": "command",
        "headers": "url",
        "oauth": "url",
        "grace_ms": "command",
    }
    if server.login == "user" and server.oauth is None:
        raise SettingsError(f"{where}: each user logs in, and there is no oauth table", remedy="Write oauth = {}.")
    _exchanging(server, where)
    _referring(server, where)
    for key, owner in owners.items():
        if getattr(server, key) not in ({}, "", None, False, 0) and not getattr(server, owner):
            raise SettingsError(f"{where}: {key} belongs to a server with {owner}", remedy=f"Leave {key} out.")
    if server.url and not server.url.startswith("${") and not is_url(server.url):
        raise _misfit(where, "url")
    _bounded(server, where)


def _exchanging(server: McpServer, where: str) -> None:
    """Check the keys by which callers' own tokens are exchanged."""
    table = server.oauth or {}
    if not any(key in table for key in _EXCHANGE):
        return
    wanted = (*_EXCHANGE, "client_id", "client_secret", "issuer")
    missing = [key for key in wanted if not table.get(key, "").strip()]
    if missing or server.login != "user":
        what = f"oauth lacks {', '.join(missing)}" if missing else 'login is not "user"'
        raise SettingsError(
            f"{where}: tokens of callers are to be exchanged, and {what}", remedy=f"It takes {', '.join(wanted)}."
        )
    if len(table["issuer"].split()) != 1 or not is_issuer(table["identity_provider"]):
        raise SettingsError(
            f"{where}: oauth has to name one issuer and one identity_provider, by https URLs",
            remedy="Name the server's authorization server, and the issuer of [[clients]].",
        )


def _bounded(server: McpServer, where: str) -> None:
    for key, known in (("oauth", _OAUTH), ("client_capabilities", _CAPABILITIES)):
        if not set(getattr(server, key) or ()) <= known:
            raise _misfit(where, key)
    for key, most in _MOST_MS.items():
        if not 0 <= getattr(server, key) <= most:
            raise _misfit(where, key)
    for key, pattern in (("env", _VARIABLE), ("headers", _HEADER)):
        if not all(pattern.fullmatch(name) for name in getattr(server, key)):
            raise _misfit(where, key)


def _terms(given: bool | SandboxTerms, base: Base, where: str) -> bool | SandboxTerms:
    if not isinstance(given, SandboxTerms):
        return given
    roots, writable = (
        tuple([_folder("sandbox", path, base, where) for path in paths]) for paths in (given.roots, given.writable)
    )
    return msgspec.structs.replace(given, roots=roots, writable=writable)


def _folder(key: str, cwd: str, base: Base, where: str) -> str:
    if "${" in cwd:
        raise SettingsError(
            f"{where}: {key} cannot contain ${{NAME}}", remedy="Write the folder itself; ~/ is your home."
        )
    try:
        return str(base.path(cwd))
    except (OSError, RuntimeError, ValueError) as exc:
        raise SettingsError(f"{where}: {key} has no usable path", remedy="Name a folder.") from exc


def _misfit(where: str, key: str) -> SettingsError:
    expected = _EXPECTED.get(key, "as docs/configuration.md says")
    return SettingsError(f"{where}: {key} must be {expected}", remedy=f"Correct {key} or leave it out.")
