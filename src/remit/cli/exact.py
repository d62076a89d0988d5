r"""Values as a person reads them who decides by them: whole and exact, with real line breaks, behind a margin.

No row is wrapped by the terminal and each begins with a mark, so that nothing in a value can look like anything else:

    |   a line of JSON, in which a text of several lines stands as how long it is
    "   a line of such a text, as it is
    \   a line of such a text with escapes: what cannot be seen is one, and a backslash is doubled
    >   the row before goes on
    =   how long it was

A diff has `@`, `-`, `+` or a blank in place of the first two marks, then `\` where the line has escapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from remit.cli.text import cells, clean, fitting

_INDENT: Final = "  "
_NO_END: Final = "no line break at the end"
LEGEND: Final = '" text as it is · \\ with escapes · > goes on · = its length'


class Row(NamedTuple):
    """A row of the screen."""

    mark: str
    text: str


def value_rows(value: Any, width: int | None) -> list[Row]:
    """A JSON value as rows of at most `width` columns."""
    return [row for line in _lines(value, "", "", "") for row in _wrapped(line, width)]


def diff_rows(diff: str, width: int | None) -> list[Row]:
    """A unified diff, without its two header lines, as rows of at most `width` columns."""
    lines = diff.removesuffix("\n").split("\n")[2:]
    rows = (
        Row("@ ", line.strip("@ ")) if line.startswith("@") else _marked(line[:1] or " ", line[1:]) for line in lines
    )
    return [part for row in rows for part in _wrapped(row, width)]


def _lines(value: Any, indent: str, before: str, after: str) -> Iterator[Row]:
    if isinstance(value, str) and "\n" in value:
        yield Row("|", f"{indent}{before}({_size(value)}){after}")
        for line in value.removesuffix("\n").split("\n"):
            yield _marked('"', line)
    elif isinstance(value, dict) and value:
        yield Row("|", indent + before + "{")
        for left, (key, item) in zip(range(len(value) - 1, -1, -1), value.items(), strict=True):
            yield from _lines(item, indent + _INDENT, f"{_json(key)}: ", "," if left else "")
        yield Row("|", indent + "}" + after)
    elif isinstance(value, list) and value:
        yield Row("|", indent + before + "[")
        for left, item in zip(range(len(value) - 1, -1, -1), value, strict=True):
            yield from _lines(item, indent + _INDENT, "", "," if left else "")
        yield Row("|", indent + "]" + after)
    else:
        yield Row("|", indent + before + _json(value) + after)


def _size(text: str) -> str:
    lines = text.removesuffix("\n").count("\n") + 1
    end = "" if text.endswith("\n") else f", {_NO_END}"
    return f"{lines:,} line{'' if lines == 1 else 's'}, {len(text):,} characters{end}"


def _marked(mark: str, line: str) -> Row:
    """A line of text behind its mark: as it is, or with escapes, of which the margin then tells."""
    if clean(line) == line and not line.endswith(" "):
        return Row(mark if mark == '"' else f"{mark} ", line)
    seen = line.rstrip(" ")
    escaped = clean(seen.replace("\\", "\\\\")) + "\\x20" * (len(line) - len(seen))
    return Row("\\" if mark == '"' else f"{mark}\\", escaped)


def _json(value: Any) -> str:
    return clean(msgspec.json.encode(value).decode())


def _wrapped(row: Row, width: int | None) -> Iterator[Row]:
    mark, left = row
    room = None if width is None else width - len(mark) - 1
    while room is not None and cells(left) > room:
        count = fitting(left, room)
        yield Row(mark, left[:count])
        mark, left = ">" + row.mark[1:], left[count:]
    yield Row(mark, left)
    if mark != row.mark:
        yield Row("=" + row.mark[1:], f"{len(row.text):,} characters")
