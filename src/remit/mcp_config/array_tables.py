"""Arrays of tables in a remit.toml, such as `[[mcp.servers]]`, changed as text: all else stays byte for byte.

A table is added at the end, or if the tables are an array on one line, into that. Whatever was made is read again and
must say what was wanted and nothing else; if that cannot be had, the person is told what to write.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from remit.errors import UsageError
from remit.regex import regex
from remit.settings.clients import ClientTable
from remit.settings.mcp import McpServer

_ANY_HEADER: Final = regex(r"[ \t]*\[")
_ASIDE: Final = regex(r"[ \t]*(?:#|\r?$)")


class ArrayTables:
    """The tables of one array, wherever it is written."""

    def __init__(self, path: tuple[str, ...], keys: Iterable[str]) -> None:
        self._path = path
        self._keys = tuple(keys)
        dotted = r"[ \t]*\.[ \t]*".join(map(re.escape, path))
        self._header = re.compile(rf"[ \t]*\[\[[ \t]*{dotted}[ \t]*\]\]")
        self._inside = re.compile(rf"[ \t]*\[{{1,2}}[ \t]*{dotted}[ \t]*\.")

    def read(self, text: str) -> list[dict[str, Any]]:
        """The tables in a remit.toml that can be read, in order."""
        return self._of(tomllib.loads(text))

    def added(self, text: str, table: Mapping[str, Any]) -> str:
        """A remit.toml with one more table, the last of them. Raises UsageError if it cannot be written in there."""
        wanted = tomllib.loads(text)
        self._of(wanted).append(dict(table))

        def at_the_end() -> str:
            end = "\r\n" if "\r\n" in text else "\n"
            gap = "" if not text else end if text.endswith("\n") else end * 2
            return text + gap + end.join(self.block(table).split("\n"))

        remedy = "Write this yourself:\n" + self.block(table)
        return self._first_right((at_the_end, lambda: self._into_array(text, table)), wanted, remedy)

    def removed(self, text: str, number: int, name: str) -> str:
        """A remit.toml without one table, whose comments between tables stay. Raises UsageError, which says `name`."""
        wanted = tomllib.loads(text)
        tables = self._of(wanted)
        del tables[number]
        makers = (
            lambda: self._without_lines(text, number, len(tables) + 1),
            lambda: self._out_of_array(text, number),
        )
        return self._first_right(makers, wanted, f"Remove the table of {name} yourself.")

    def block(self, table: Mapping[str, Any]) -> str:
        """The table as TOML, its keys in the order of the documentation."""
        lines = [f"{key} = {_inline(table[key]).as_string()}" for key in self._keys if key in table]
        return "\n".join([f"[[{'.'.join(self._path)}]]", *lines, ""])

    def _of(self, data: Any) -> list[dict[str, Any]]:
        for name in self._path[:-1]:
            data = data.setdefault(name, {})
        tables: list[dict[str, Any]] = data.setdefault(self._path[-1], [])
        return tables

    def _first_right(self, makers: tuple[Callable[[], str], ...], wanted: dict[str, Any], remedy: str) -> str:
        self._of(wanted)
        for make in makers:
            try:
                text = make()
                document = tomllib.loads(text)
            except (tomllib.TOMLDecodeError, TOMLKitError, LookupError, TypeError):
                continue  # not written in this way: the next one
            self._of(document)
            if document == wanted:
                return text
        what = f"The {self._path[-1]} in remit.toml are written in a way that Remit cannot edit"
        raise UsageError(what, remedy=remedy)

    def _array(self, document: Any) -> Any:
        for name in self._path:
            document = document[name]
        return document

    def _into_array(self, text: str, table: Mapping[str, Any]) -> str:
        document: Any = tomlkit.parse(text)
        self._array(document).append(_inline(table))
        return tomlkit.dumps(document)

    def _out_of_array(self, text: str, number: int) -> str:
        document: Any = tomlkit.parse(text)
        del self._array(document)[number]
        return tomlkit.dumps(document)

    def _without_lines(self, text: str, number: int, count: int) -> str:
        """Without the lines from its header to the next that is not of it; comments just before that one stay."""
        lines = text.splitlines(keepends=True)
        starts = [index for index, line in enumerate(lines) if self._header.match(line)]
        if len(starts) != count:
            raise LookupError(number)
        start = starts[number]
        end = start + 1
        while end < len(lines) and (not _ANY_HEADER.match(lines[end]) or self._inside.match(lines[end])):
            end += 1
        if end < len(lines):
            while _ASIDE.match(lines[end - 1]):
                end -= 1
            while end < len(lines) and not lines[end].strip():
                end += 1  # one gap is left: the one before the removed table
        return "".join(lines[:start] + lines[end:])


def _inline(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return tomlkit.item(value)
    table = tomlkit.inline_table()
    table.update(value)
    return table


_CLIENTS: Final = ArrayTables(("clients",), ClientTable.__struct_fields__)


def with_client(text: str, table: Mapping[str, Any]) -> str:
    """A remit.toml with one more client, the last of them. Raises UsageError if it cannot be written in there."""
    return _CLIENTS.added(text, table)


def client_numbers(text: str, name: str) -> list[int]:
    """The places of the clients that go by a name: their `name`, or without one their principal."""
    return [
        number
        for number, table in enumerate(_CLIENTS.read(text))
        if (table.get("name") or table.get("principal")) == name
    ]


def without_client(text: str, number: int, name: str) -> str:
    """A remit.toml without one client, whose comments between tables stay. Raises UsageError."""
    return _CLIENTS.removed(text, number, name)


_SERVERS: Final = ArrayTables(("mcp", "servers"), McpServer.__struct_fields__)


def with_server(text: str, table: Mapping[str, Any]) -> str:
    """A remit.toml with one more server, the last of them. Raises UsageError if it cannot be written in there."""
    return _SERVERS.added(text, table)


def server_names(text: str) -> list[str]:
    """The names of the servers in a remit.toml that can be read, in order."""
    return [table["name"] for table in _SERVERS.read(text) if isinstance(table.get("name"), str)]


def without_server(text: str, name: str) -> str:
    """A remit.toml without the server of this name, whose comments between tables stay. Raises UsageError."""
    number = next(index for index, table in enumerate(_SERVERS.read(text)) if table.get("name") == name)
    return _SERVERS.removed(text, number, name)


def server_block(table: Mapping[str, Any]) -> str:
    """The table as TOML, its keys in the order of the documentation."""
    return _SERVERS.block(table)
