"""Members of objects in JSON that may have comments, changed as text: all else stays byte for byte.

Whatever was made is read again, and has to say what was wanted and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from remit.errors import SettingsError
from remit.mcp_config.foreign import parse, plain
from remit.regex import regex

_SPACE: Final = regex(r"[ \t\r\n]*")
_INDENT: Final = regex(r"\n([ \t]+)\S")
_DECODER: Final = json.JSONDecoder()


class Member(NamedTuple):
    """Where a member of an object stands."""

    name: str
    start: int
    """Of its name."""
    value: int
    end: int


class JsonText:
    """The text of one file."""

    def __init__(self, text: str, where: str) -> None:
        self.where = where
        self.text = text or "{}\n"
        twice: list[str] = []
        self.value = parse(self.text.removeprefix("\ufeff"), where, twice)
        if twice:
            raise SettingsError(f"{where}: {twice[0]} is there twice in one object", remedy="Remove one of them.")
        if not isinstance(self.value, dict):
            remedy = "Name the configuration file of an MCP client."
            raise SettingsError(f"{where}: is not a JSON object", remedy=remedy)
        self._plain = plain(self.text.replace("\ufeff", " ", 1) if self.text.startswith("\ufeff") else self.text)
        self._line = "\r\n" if "\r\n" in self.text else "\n"
        indent = _INDENT.search(self._plain)
        self._indent = indent[1] if indent else "  "

    def at(self, path: Sequence[str]) -> Any:
        """Return the value there, or None. Raise SettingsError if a part of the path is not an object."""
        value: Any = self.value
        for number, name in enumerate(path):
            if not isinstance(value, dict):
                shown = ".".join(path[:number])
                raise SettingsError(f"{self.where}: {shown} is not a JSON object", remedy="Correct it there.")
            if name not in value:
                return None
            value = value[name]
        return value

    def source(self, path: Sequence[str]) -> str:
        """The text of a value that there is."""
        member = self._member(path)
        return self.text[member.value : member.end]

    def with_value(self, path: Sequence[str], value: Any, source: str | None = None) -> JsonText:
        """The same with a value there, in the place of another or as the last member; objects on the way are made.

        `source` is how it is written, if that matters.
        """
        wanted = _with(self.value, path, value)
        if self.at(path) is not None:
            member = self._member(path)
            written = self._written(value, len(path)) if source is None else source
            return self._made(self.text[: member.value] + written + self.text[member.end :], wanted)
        parent, name = path[:-1], path[-1]
        if self.at(parent) is None:
            return self.with_value(parent, {name: value})
        written = self._written(value, len(path)) if source is None else source
        written = f"{json.dumps(name, ensure_ascii=False)}: {written}"
        return self._made(self._with_member(parent, written), wanted)

    def without(self, path: Sequence[str]) -> JsonText:
        """The same without a member that there is."""
        members = self._members(path[:-1])
        number = next(index for index, each in enumerate(members) if each.name == path[-1])
        member = members[number]
        if number:  # from the end of the one before: what was put in as the last one goes as it came
            start, end = members[number - 1].end, member.end
        elif len(members) > 1:
            start, end = member.start, members[1].start
        else:
            opening = self._start_of(path[:-1])
            start, end = opening + 1, member.end
            closing = _SPACE.match(self._plain, end)
            if closing and self._plain[closing.end()] == "}" and not self.text[start : member.start].strip():
                end = closing.end()
        return self._made(self.text[:start] + self.text[end:], _without(self.value, path))

    # --- where things stand

    def _start_of(self, path: Sequence[str]) -> int:
        """Return where the value begins."""
        if not path:
            blank = _SPACE.match(self._plain)
            return blank.end() if blank else 0
        return self._member(path).value

    def _member(self, path: Sequence[str]) -> Member:
        return next(each for each in reversed(self._members(path[:-1])) if each.name == path[-1])

    def _members(self, path: Sequence[str]) -> list[Member]:
        """The members of the object there, in order."""
        members, at = [], self._skipped(self._start_of(path) + 1)
        while self._plain[at] != "}":
            at = self._skipped(at + 1) if self._plain[at] == "," else at
            start = at
            name, at = _DECODER.raw_decode(self._plain, at)
            value = self._skipped(self._skipped(at) + 1)
            _, end = _DECODER.raw_decode(self._plain, value)
            members.append(Member(name, start, value, end))
            at = self._skipped(end)
        return members

    def _skipped(self, at: int) -> int:
        blank = _SPACE.match(self._plain, at)
        return blank.end() if blank else at

    # --- making text

    def _with_member(self, path: Sequence[str], written: str) -> str:
        """The text with one more member of the object there."""
        members, inner = self._members(path), self._line + self._indent * (len(path) + 1)
        if members:
            end = members[-1].end
            return f"{self.text[:end]},{inner}{written}{self.text[end:]}"
        start = self._start_of(path) + 1
        rest = self.text[start:]
        closes = "" if "\n" in rest[: self._skipped(start) - start] else self._line + self._indent * len(path)
        return f"{self.text[:start]}{inner}{written}{closes}{rest}"

    def _written(self, value: Any, depth: int) -> str:
        """A value as text, its further lines as deep as its place."""
        lines = json.dumps(value, indent=self._indent, ensure_ascii=False).split("\n")
        return (self._line + self._indent * depth).join(lines)

    def _made(self, text: str, wanted: Any) -> JsonText:
        changed = JsonText(text, self.where)
        if changed.value != wanted:
            raise SettingsError(
                f"{self.where}: is written in a way that Remit cannot edit", remedy="Make the change there yourself."
            )
        return changed


def _with(value: dict[str, Any], path: Sequence[str], item: Any) -> dict[str, Any]:
    inner = item if len(path) == 1 else _with(value.get(path[0]) or {}, path[1:], item)
    return {**value, path[0]: inner}


def _without(value: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    if len(path) == 1:
        return {name: item for name, item in value.items() if name != path[0]}
    return {**value, path[0]: _without(value[path[0]], path[1:])}
