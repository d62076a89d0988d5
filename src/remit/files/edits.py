"""Edits of a text, forwards, backwards, and as a diff. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import unified_diff
from typing import Annotated, Final, NamedTuple

import msgspec

from remit.codes import Code
from remit.errors import ProviderError

_DIFF_CHARS: Final = 20_000
_DIFF_LINES: Final = 2_000
"""Lines between the first and the last change that are compared; difflib's time grows with their square."""
_CONTEXT: Final = 3


class Replacement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One change of an edit."""

    search: Annotated[
        str, msgspec.Meta(min_length=1, description="Text that occurs exactly once, blanks and line ends included.")
    ]
    replace: Annotated[str, msgspec.Meta(description="What stands there afterwards.")]


class Diff(NamedTuple):
    """A unified diff, perhaps cut."""

    text: str
    truncated: bool


def applied(text: str, edits: Sequence[Replacement]) -> str:
    """The text after the edits. Raises ProviderError (EDIT_NO_MATCH) unless each one's text occurs exactly once."""
    for number, edit in enumerate(edits, 1):
        count = _occurrences(text, edit.search)
        if count != 1:
            raise ProviderError(_mismatch(text, edit.search, number, count), code=Code.EDIT_NO_MATCH)
        text = text.replace(edit.search, edit.replace)
    return text


def undone(text: str, edits: Sequence[Replacement]) -> str | None:
    """The only text from which the edits lead to this one, or None if there is none, or more than one could be."""
    before = text
    for edit in reversed(edits):
        if not edit.replace or _occurrences(before, edit.replace) != 1:
            return None
        before = before.replace(edit.replace, edit.search)
    try:
        return before if applied(before, edits) == text else None
    except ProviderError:
        return None


def diff(path: str, before: str, after: str) -> Diff:
    """The unified diff from one text to another, cut where it is long."""
    text = whole_diff(path, before, after)
    return Diff(text[:_DIFF_CHARS], len(text) > _DIFF_CHARS)


def whole_diff(path: str, before: str, after: str) -> str:
    """The unified diff from one text to another."""
    old, new = lines_of(before), lines_of(after)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    changed = max(len(old), len(new)) - head - tail
    if changed > _DIFF_LINES:
        lines = _replaced(old[head : len(old) - tail], new[head : len(new) - tail], head)
    else:
        first = max(0, head - _CONTEXT)
        last = max(0, tail - _CONTEXT)
        lines = _hunks(old[first : len(old) - last], new[first : len(new) - last], first)
    shown = path if path.isprintable() else repr(path)  # a name with a line end must not pass for part of the diff
    return f"--- a/{shown}\n+++ b/{shown}\n" + "".join(_ended(line) for line in lines)


def lines_of(text: str) -> list[str]:
    """Its lines with their ends; unlike in `str.splitlines`, only a line feed ends one."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def line_count(text: str) -> str:
    """The number of its lines, in words."""
    count = len(lines_of(text))
    return f"{count:,} line{'' if count == 1 else 's'}"


def _occurrences(text: str, what: str) -> int:
    """Return how often `what` occurs, overlapping ones counted, up to two."""
    first = text.find(what)
    if first < 0:
        return 0
    return 1 if text.find(what, first + 1) < 0 else 2


def _mismatch(text: str, search: str, number: int, count: int) -> str:
    if count:
        return f"The text of edit {number} occurs more than once: take in more of what stands around it."
    if "\r\n" in text and "\r\n" not in search and search.replace("\n", "\r\n") in text:
        return f"The text of edit {number} does not occur: lines of this file end in CR LF, those of the edit in LF."
    return f"The text of edit {number} does not occur: read the file again and copy the text exactly."


def _common(lines: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(lines, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _hunks(old: Sequence[str], new: Sequence[str], skipped: int) -> list[str]:
    lines = list(unified_diff(old, new, n=_CONTEXT))[2:]
    return [_shifted(line, skipped) if line.startswith("@@") else line for line in lines]


def _shifted(header: str, skipped: int) -> str:
    """A hunk's header with line numbers of the whole file."""
    _, old, new, _ = header.split(" ", 3)
    return f"@@ -{_moved(old, skipped)} +{_moved(new, skipped)} @@\n"


def _moved(place: str, skipped: int) -> str:
    start, comma, count = place[1:].partition(",")
    return f"{int(start) + skipped}{comma}{count}"


def _replaced(old: Sequence[str], new: Sequence[str], skipped: int) -> list[str]:
    header = f"@@ -{skipped + 1},{len(old)} +{skipped + 1},{len(new)} @@\n"
    return [header, *("-" + line for line in old), *("+" + line for line in new)]


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
