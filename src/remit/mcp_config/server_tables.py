"""The `[[mcp.servers]]` tables of a remit.toml, changed as text: everything else in it stays byte for byte.

A table is added at the end, or where the servers are an array on one line, into that. Whatever was made is read again
and must say what was wanted and nothing else; where that cannot be had, the person is told what to write.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from remit.errors import UsageError
from remit.settings.mcp import McpServer

_HEADER: Final = re.compile(r"[ \t]*\[\[[ \t]*mcp[ \t]*\.[ \t]*servers[ \t]*\]\]")
_INSIDE: Final = re.compile(r"[ \t]*\[{1,2}[ \t]*mcp[ \t]*\.[ \t]*servers[ \t]*\.")
_ANY_HEADER: Final = re.compile(r"[ \t]*\[")
_ASIDE: Final = re.compile(r"[ \t]*(?:#|\r?$)")


def with_server(text: str, table: Mapping[str, Any]) -> str:
    """A remit.toml with one more server, the last of them. Raises UsageError where it cannot be written in there."""
    wanted = tomllib.loads(text)
    _servers(wanted).append(dict(table))

    def at_the_end() -> str:
        end = "\r\n" if "\r\n" in text else "\n"
        gap = "" if not text else end if text.endswith("\n") else end * 2
        return text + gap + end.join(block(table).split("\n"))

    return _first_right((at_the_end, lambda: _into_array(text, table)), wanted, "Write this yourself:\n" + block(table))


def names(text: str) -> list[str]:
    """The names of the servers in a remit.toml that can be read, in order."""
    servers = tomllib.loads(text).get("mcp", {}).get("servers", [])
    return [table["name"] for table in servers if isinstance(table.get("name"), str)]


def without_server(text: str, name: str) -> str:
    """A remit.toml without the server of this name, whose comments between tables stay. Raises UsageError."""
    wanted = tomllib.loads(text)
    servers = _servers(wanted)
    number = next(index for index, table in enumerate(servers) if table.get("name") == name)
    del servers[number]
    makers = (lambda: _without_lines(text, number, len(servers) + 1), lambda: _out_of_array(text, number))
    return _first_right(makers, wanted, f"Remove the table of {name} yourself.")


def block(table: Mapping[str, Any]) -> str:
    """The table as TOML, its keys in the order of the documentation."""
    lines = [f"{key} = {_inline(table[key]).as_string()}" for key in McpServer.__struct_fields__ if key in table]
    return "\n".join(["[[mcp.servers]]", *lines, ""])


def _inline(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return tomlkit.item(value)
    made = tomlkit.inline_table()
    made.update(value)
    return made


def _servers(data: dict[str, Any]) -> list[dict[str, Any]]:
    servers: list[dict[str, Any]] = data.setdefault("mcp", {}).setdefault("servers", [])
    return servers


def _first_right(makers: tuple[Callable[[], str], ...], wanted: dict[str, Any], remedy: str) -> str:
    _servers(wanted)
    for make in makers:
        try:
            made = make()
            found = tomllib.loads(made)
        except (tomllib.TOMLDecodeError, TOMLKitError, LookupError, TypeError):
            continue  # not written in this way: the next one
        _servers(found)
        if found == wanted:
            return made
    raise UsageError("The servers in remit.toml are written in a way that cannot be changed here", remedy=remedy)


def _into_array(text: str, table: Mapping[str, Any]) -> str:
    document: Any = tomlkit.parse(text)
    document["mcp"]["servers"].append(_inline(table))
    return tomlkit.dumps(document)


def _out_of_array(text: str, number: int) -> str:
    document: Any = tomlkit.parse(text)
    del document["mcp"]["servers"][number]
    return tomlkit.dumps(document)


def _without_lines(text: str, number: int, count: int) -> str:
    """Without the lines from its header to the next that is not of it; comments just before that one stay."""
    lines = text.splitlines(keepends=True)
    starts = [index for index, line in enumerate(lines) if _HEADER.match(line)]
    if len(starts) != count:
        raise LookupError(number)
    start = starts[number]
    end = start + 1
    while end < len(lines) and (not _ANY_HEADER.match(lines[end]) or _INSIDE.match(lines[end])):
        end += 1
    if end < len(lines):
        while _ASIDE.match(lines[end - 1]):
            end -= 1
        while end < len(lines) and not lines[end].strip():
            end += 1  # one gap is left: the one before the removed table
    return "".join(lines[:start] + lines[end:])
