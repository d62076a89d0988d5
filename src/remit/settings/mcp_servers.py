"""The MCP servers that the settings name: those of remit.toml first, then those of the environment.

MCP servers from the environment (contract: tools, "MCP"): a JSON array, or else a single server name by name.

What is wrong here is a warning and never an error: the person who sets the environment is often not the one who reads
the output, and the other servers must still load.

From a table that someone wrote to a checked MCP server; its errors quote no value, for any may be a secret.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from remit.errors import SettingsError
from remit.http.urls import is_issuer
from remit.nearest import did_you_mean
from remit.process.enclosure import SandboxTerms
from remit.redact import line
from remit.regex import regex
from remit.settings.expansion import is_sound
from remit.settings.file import Base
from remit.settings.mcp import McpServer
from remit.settings.model import Settings
from remit.settings.pictures import is_url
from remit.settings.places import server_folder

_SHOWN: Final = 80
"""Characters of a raw text in a warning."""
_SECRETS: Final = regex(r"[\"']?(?:cmd|command|args|env|url|headers)\b.*", re.IGNORECASE | re.DOTALL)
"""From here on a text that cannot be taken apart may hold secrets of any look."""


class Candidate(msgspec.Struct, frozen=True):
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
    many = []
    for number, table in enumerate(value, 1):
        where = f"{source}: server number {number}"
        if isinstance(table, dict):
            many.append(Candidate(table, source, where))
        else:
            warnings.append(f"{where} is not an object; it is skipped")
    return many


def _single(settings: Settings, warnings: list[str]) -> Candidate | None:
    mcp, sources = settings.mcp, settings.sources
    names = [name for name in ("server_name", "server_cmd") if getattr(mcp, name)]
    if not names:
        return None
    if len(names) == 1:
        source = sources[f"mcp.{names[0]}"]
        other = "NAME" if names[0] == "server_cmd" else "CMD"
        beside = source.removesuffix("NAME").removesuffix("CMD") + other
        warnings.append(f"{source} is set without {beside}; it is skipped")
        return None
    args = _arguments(settings, warnings)
    if args is None:
        return None
    table = {"name": mcp.server_name, "cmd": mcp.server_cmd, "args": args, "cwd": mcp.server_cwd}
    source = sources[f"mcp.{names[0]}"]
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


NAME: Final = regex("[a-z0-9]+(?:_[a-z0-9]+)*")
"""A server's name: a segment of a tool's name (remit.tools.names).

The contract takes `[a-z0-9_]+`. Of these, names with `_` at an end or with `__` are refused: models see `__` between
the parts of a tool's name, so that `a_` with the tool `b` and `a` with the tool `_b` would be one name to them.
"""
_WIDE: Final = regex("[a-z0-9_]+")
_ALIASES: Final = ("cmd", "args")
_VARIABLE: Final = regex(r"[^=\0]+")
_HEADER: Final = regex(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
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
_AT: Final = regex(r"at `\$\.(\w+)")


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
    commands = [table[key] for key in ("command", "cmd") if key in table]
    if len(commands) > 1:
        raise SettingsError(f"{where}: both command and cmd are given", remedy="Leave one of them out.")
    args = table.get("args", [])
    if not isinstance(args, list | tuple):
        raise _misfit(where, "args")
    if not commands:
        if args:
            raise SettingsError(f"{where}: args are given without a command", remedy="Name the client that takes them.")
        return rest
    command = [commands[0]] if isinstance(commands[0], str) else commands[0]
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


def _terms(option: bool | SandboxTerms, base: Base, where: str) -> bool | SandboxTerms:
    if not isinstance(option, SandboxTerms):
        return option
    roots, writable = (
        tuple([_folder("sandbox", path, base, where) for path in paths]) for paths in (option.roots, option.writable)
    )
    return msgspec.structs.replace(option, roots=roots, writable=writable)


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
    servers = [server if server.name in written.placed else _apart(server, settings, env) for server in written.servers]
    return msgspec.structs.replace(written, servers=tuple(servers))


def written_servers(settings: Settings, env: Mapping[str, str]) -> Servers:
    """Every MCP server, checked, references in it as written.

    `env` says what `~` stands for. Raises SettingsError for a bad `[[mcp.servers]]` table, which names file, server and
    key; what is wrong in the contract's environment names is a warning, and the rest still loads.
    """
    home = _home(env)
    servers_found, placed = _of_file(settings, home)
    origins = dict.fromkeys(servers_found, settings.sources["mcp.servers"])
    listed, warnings = candidates(settings)
    base = Base(settings.working_folder, home)
    for candidate in listed:
        try:
            server = _of_environment(candidate, base, settings, origins)
        except SettingsError as error:
            warnings.append(f"{error.message}; it is skipped")
        else:
            servers_found[server.name] = server
            placed |= {server.name} if candidate.table.get("cwd") else set()
            origins[server.name] = candidate.source
    return Servers(
        servers=tuple(servers_found.values()), origins=origins, warnings=tuple(warnings), placed=frozenset(placed)
    )


def _of_file(settings: Settings, home: Path | None) -> tuple[dict[str, McpServer], set[str]]:
    source = settings.sources["mcp.servers"]
    folder = settings.folder if source == str(settings.file) else settings.working_folder
    servers_found: dict[str, McpServer] = {}
    placed: set[str] = set()
    for number, table in enumerate(settings.mcp.servers, 1):
        where = f"{source}: mcp.servers number {number}"
        server = read_server(table, where, Base(folder, home), str(settings.folder))
        if server.name in servers_found:
            raise SettingsError(f"{where} ({server.name}): the name is taken", remedy="Give each server its own name.")
        servers_found[server.name] = server
        placed |= {server.name} if table.get("cwd") else set()
    return servers_found, placed


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
        is_program = place.is_file() or (place.exists() and (os.sep in word or word in {".", ".."}))
    except (OSError, ValueError):  # too long for a name, or not one
        return word
    return str(place) if is_program else word


def _home(env: Mapping[str, str]) -> Path | None:
    return Path(env["HOME"]) if env.get("HOME") else None
