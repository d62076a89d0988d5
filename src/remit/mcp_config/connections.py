"""Remit in the configuration of MCP clients: put in, and taken back byte for byte.

`serve` is one more server of the client's; `wrap` puts Remit before the command of one that it has, or in the place of
its URL. What a file said
before is kept with what was changed, so that it can be had again: all of it while the file is as we left it, else each
change by itself, if it still stands as it was made.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from remit.errors import SettingsError
from remit.mcp_config.json_members import JsonText
from remit.mcp_config.secrets import variable_name
from remit.regex import regex

CODEX_KEYS: Final[Mapping[str, Any]] = {"required": True, "default_tools_approval_mode": "approve"}
"""Has Codex wait for the server, and leave the question to Remit."""
_REMOTE_KEYS: Final = ("url", "headers", "http_headers", "env_http_headers", "bearer_token_env_var")
"""Keys of a server that answers at a URL, which one that is started does not have; in Codex's words, too."""
_NOT_CARRIED: Final = ("oauth", "headersHelper", "auth", "scopes", "oauth_resource")
"""Keys by which a client logs in to such a server in a way of its own."""
_HEADER: Final = regex(r"^[ \t]*\[[ \t]*[\"']?mcp_servers[\"']?[ \t]*[].]", re.MULTILINE)
"""The beginning of a table of servers, as against one that is written inline."""
_BARE_END: Final = regex(r"(?<!\r)\n")
_NOT_EDITABLE: Final = "is written in a way that Remit cannot edit"


class ServerChange(msgspec.Struct, frozen=True):
    """A change to one server of a client."""

    name: str
    entry: dict[str, Any]
    """It as it was written."""
    before: dict[str, str | None] | None = None
    """Text that it replaced, by the entry's key, null for a key that was not there; null: the server was not."""
    source: str | None = None
    """Text of the whole entry, if all of it was replaced."""


class FileConnection(msgspec.Struct, frozen=True):
    """The changes that were made to one file."""

    file: str
    client: str
    digest: str
    """Of the file as we left it."""
    changes: tuple[ServerChange, ...]
    original: str | None
    """The file before; null: there was none."""
    whole: bool = True
    """Whether the original is what the changes alone lead to: no one else changed the file between two of ours."""


class ClientFile:
    """The text of a client's file."""

    def __init__(self, text: str, client: str, where: str) -> None:
        self.text = text
        self._client = client
        self._where = where
        self._key = {"codex": "mcp_servers", "vscode": "servers"}.get(client, "mcpServers")
        entries = self._entries()
        self.servers: dict[str, dict[str, Any]] = {
            name: entry for name, entry in entries.items() if isinstance(entry, dict)
        }
        self.odd = tuple(name for name in entries if name not in self.servers)
        """Entries of a form that no server has: they stay as they are."""

    def served(self, name: str, command: Sequence[str]) -> tuple[ClientFile, ServerChange]:
        """The same with one more server. Raises SettingsError."""
        if name in self.servers or name in self.odd:
            raise SettingsError(
                f"{self._where}: has a server {name} already", remedy="Choose another name (--name), or disconnect it."
            )
        entry = self._entry(command)
        return self._with(name, entry), ServerChange(name, entry)

    def wrapped(self, name: str, prefix: Sequence[str]) -> tuple[ClientFile, ServerChange]:
        """The same with a command before that of a server, or in the place of its URL. Raises SettingsError."""
        entry = self.servers[name]
        remote = "url" in entry and "command" not in entry
        try:
            table = _reached(name, entry) if remote else _started(entry)
        except ValueError as error:
            raise SettingsError(
                f"{self._where}: {name} {error}", remedy="Add it to remit.toml: remit mcp import."
            ) from error
        table |= {"command": prefix[0], "args": [*prefix[1:], *table["args"]]}
        if self._client == "codex":
            table |= {key: value for key, value in CODEX_KEYS.items() if key not in entry}
        gone = [key for key in _REMOTE_KEYS if remote and key in entry]
        after = {key: value for key, value in {**entry, **table}.items() if key not in gone}
        if remote and self._client != "codex":
            return self._put((self._key, name), after), ServerChange(name, after, source=self._source(name))
        before = {key: self._source(name, key) if key in entry else None for key in (*table, *gone)}
        changed = self
        for key, value in table.items():
            changed = changed._put((self._key, name, key), value)
        for key in gone:
            changed = changed._without((self._key, name, key))  # noqa: SLF001 - another of the same
        return changed, ServerChange(name, after, before)

    def undone(self, change: ServerChange) -> ClientFile:
        """The same without a change that still stands. Raises SettingsError if it is not as it was made."""
        entry = self.servers.get(change.name)
        if entry != change.entry:
            reason = "was changed since it was connected" if entry is not None else "is not there any more"
            raise SettingsError(f"{self._where}: {change.name} {reason}", remedy="Take it out there yourself.")
        if change.source is not None:
            return self._put((self._key, change.name), self._meant(change.source), change.source)
        if change.before is None:
            return self._without((self._key, change.name))
        changed = self
        for key, source in change.before.items():
            path = (self._key, change.name, key)
            changed = changed._without(path) if source is None else changed._put(path, self._meant(source), source)
        return changed

    # --- one format or the other

    def _entries(self) -> dict[str, Any]:
        data = self._toml() if self._client == "codex" else self._json().value
        entries = data.get(self._key, {})
        if not isinstance(entries, dict):
            raise SettingsError(f"{self._where}: {self._key} does not hold servers", remedy="Correct it there.")
        return entries

    def _entry(self, command: Sequence[str]) -> dict[str, Any]:
        entry: dict[str, Any] = {"command": command[0], "args": list(command[1:])}
        if self._client == "codex":
            return {**entry, **CODEX_KEYS}
        return {"type": "stdio", **entry} if self._client in {"vscode", "claude-code"} else entry

    def _toml(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self.text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise SettingsError(f"{self._where}: is not TOML", remedy="Correct the TOML there.") from error

    def _json(self) -> JsonText:
        return JsonText(self.text, self._where)

    def _with(self, name: str, entry: dict[str, Any]) -> ClientFile:
        if self._client != "codex":
            return self._put((self._key, name), entry)
        wanted = self._toml()
        inline = self._key in wanted and not _HEADER.search(self.text)
        if inline:
            return self._put((self._key, name), entry)
        wanted.setdefault(self._key, {})[name] = entry
        end = "\r\n" if "\r\n" in self.text else "\n"
        table = tomlkit.table()
        table.update(entry)
        header = ".".join(tomlkit.key(part).as_string() for part in (self._key, name))
        lines = [f"[{header}]", *table.as_string().strip("\n").split("\n"), ""]
        gap = "" if not self.text else end if self.text.endswith("\n") else end * 2
        return self._checked(self.text + gap + end.join(lines), wanted)

    def _put(self, path: Sequence[str], value: Any, source: str | None = None) -> ClientFile:
        if self._client != "codex":
            return self._same(self._json().with_value(path, value, source).text)
        wanted, document = self._toml(), self._document()
        _within(wanted, path[:-1])[path[-1]] = value
        item = tomlkit.value(source) if source is not None else value
        _within(document, path[:-1])[path[-1]] = item
        return self._checked(self._with_own_ends(tomlkit.dumps(document)), wanted)

    def _without(self, path: Sequence[str]) -> ClientFile:
        if self._client != "codex":
            return self._same(self._json().without(path).text)
        wanted, document = self._toml(), self._document()
        for data in (wanted, document):
            del _within(data, path[:-1])[path[-1]]
        return self._checked(tomlkit.dumps(document), wanted)

    def _with_own_ends(self, text: str) -> str:
        """A text with the line ends of this one, if it has CRLF alone: tomlkit writes others."""
        ends = self.text.count("\r\n")
        return _BARE_END.sub("\r\n", text) if ends and ends == self.text.count("\n") else text

    def _source(self, *names: str) -> str:
        path = (self._key, *names)
        if self._client != "codex":
            return self._json().source(path)
        item = _within(self._document(), path)
        if isinstance(item, Table):  # it goes back as a value
            inline = tomlkit.inline_table()
            inline.update(item.unwrap())
            item = inline
        source: str = item.as_string()
        return source

    def _meant(self, source: str) -> Any:
        if self._client == "codex":
            return tomllib.loads(f"it = {source}")["it"]
        return JsonText(f'{{"it": {source}}}', self._where).at(("it",))

    def _document(self) -> Any:
        try:
            document = tomlkit.parse(self.text)
            if tomlkit.dumps(document) == self.text:
                return document
        except (TOMLKitError, LookupError, TypeError) as error:
            raise SettingsError(f"{self._where}: {_NOT_EDITABLE}", remedy="Make the change there yourself.") from error
        raise SettingsError(f"{self._where}: {_NOT_EDITABLE}", remedy="Make the change there yourself.")

    def _checked(self, text: str, wanted: Mapping[str, Any]) -> ClientFile:
        try:
            right = tomllib.loads(text) == _without_empty(wanted, self._key)
        except tomllib.TOMLDecodeError:
            right = False
        if not right:
            raise SettingsError(f"{self._where}: {_NOT_EDITABLE}", remedy="Make the change there yourself.")
        return self._same(text)

    def _same(self, text: str) -> ClientFile:
        return ClientFile(text, self._client, self._where)


def _started(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `remit mcp wrap` is given for a server that is started. Raises ValueError."""
    program, args = entry.get("command"), entry.get("args", [])
    if (
        not isinstance(program, str)
        or not isinstance(args, list)
        or not all(isinstance(argument, str) for argument in args)
    ):
        raise ValueError("has no command that can be wrapped")
    return {"args": ["--", program, *args]}


def _reached(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what it is given for a server that answers at a URL, with the headers in its environment.

    There each client replaces what it replaces in headers, and no one reads it on a command line. Raises ValueError.
    """
    if login := next((key for key in _NOT_CARRIED if key in entry), ""):
        raise ValueError(f"has {login}, a login of its client's own")
    if entry.get("type") == "sse":
        raise ValueError("speaks SSE, which Remit does not")
    url = entry["url"]
    tables = [entry.get(key, {}) for key in ("headers", "http_headers", "env_http_headers")]
    if not isinstance(url, str) or "${" in url or not all(_holds_texts(table) for table in tables):
        raise ValueError("has no URL and headers that can be wrapped")
    variables = {header: variable_name(name, header) for table in tables[:2] for header in table}
    values = {variables[header]: value for table in tables[:2] for header, value in table.items()}
    passed = [*tables[2].values()]
    args = ["--url", url]
    for header, variable in (*variables.items(), *tables[2].items()):
        args += ["--header-env", f"{header}={variable}"]
    if bearer := entry.get("bearer_token_env_var"):
        args += ["--header", f"Authorization=Bearer ${{{bearer}}}"]
        passed.append(bearer)
    wrapped: dict[str, Any] = {"args": args}
    if "type" in entry:
        wrapped["type"] = "stdio"
    if values:
        wrapped["env"] = {**entry.get("env", {}), **values}
    if passed:
        wrapped["env_vars"] = [*entry.get("env_vars", []), *passed]
    return wrapped


def _holds_texts(table: Any) -> bool:
    return isinstance(table, dict) and all(isinstance(value, str) for value in table.values())


def _within(data: Any, path: Sequence[str]) -> Any:
    for name in path:
        data = data[name]
    return data


def _without_empty(wanted: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Tables that were written only by what they held are not there once it is gone."""
    data = copy.deepcopy(dict(wanted))
    if data.get(key) == {}:
        del data[key]
    return data
