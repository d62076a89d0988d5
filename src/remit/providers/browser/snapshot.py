"""A page as its accessibility tree: refs that name their page, values of password fields masked, cut at a line's end.

The lines are Playwright's (`aria_snapshot(mode="ai")`): indentation, `- `, a role, a name in JSON, attributes in
brackets, and a value after a colon; a key that YAML would misread stands in single quotes. Names and values are the
page's words: only a `[ref=…]` among the attributes is a ref, and what looks like one elsewhere is spelt differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

MASK: Final = "***"
_QUOTED: Final = re.compile(r" *- '((?:[^']|'')*)'(:.*)?", re.DOTALL)
_KEY: Final = re.compile(r'(?P<role>[a-z]+)(?P<name> "(?:[^"\\]|\\.)*")?(?P<attributes>(?: \[[^\[\]"]*\])*)')
_REF: Final = re.compile(r" \[ref=((?:f\d+)?e\d+)\]")


class Line(NamedTuple):
    """One line of a snapshot."""

    indent: int
    role: str
    name: str
    """In JSON, with a blank before it; empty: none."""
    attributes: str
    ref: str
    """Empty: none."""
    value: str
    """With the colon before it; empty: none."""


class Shown(NamedTuple):
    """A snapshot as it is handed out."""

    text: str
    refs: frozenset[str]
    """The refs in the text, as Playwright knows them."""
    missing: int
    """Characters that were cut off."""


def lines_of(snapshot: str) -> Iterator[Line]:
    """Return the lines of a snapshot; one that is of another form has a value alone."""
    for text in snapshot.split("\n"):
        yield _line(text)


def shown(lines: list[Line], page: str, most: int, *, secret: Callable[[str], bool]) -> Shown:
    """Return the first `most` characters of a snapshot of a page; `secret` says whether a ref's value is hidden."""
    kept: list[str] = []
    refs: set[str] = set()
    total, length, hidden_below = 0, 0, -1
    for line in lines:
        if line.indent <= hidden_below:
            hidden_below = -1
        hides = hidden_below >= 0 and line.role == "text"
        if line.ref and secret(line.ref):
            hidden_below, hides = line.indent, len(line.value) > 1
        text = _text(line, page, hides=hides)
        total += len(text) + 1
        if total <= most:
            kept.append(text)
            length = total
            refs.update(filter(None, (line.ref,)))
    return Shown("\n".join(kept), frozenset(refs), total - length)


def _line(text: str) -> Line:
    indent = len(text) - len(text.lstrip(" "))
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        key, value = _KEY.fullmatch(quoted[1].replace("''", "'")), quoted[2] or ""
    else:
        key = _KEY.match(text, indent + 2) if text.startswith("- ", indent) else None
        value = text[key.end() :] if key is not None else ""
    if key is None or not (value == "" or value.startswith(":")):
        return Line(indent, "", "", "", "", text[indent:])
    ref = _REF.search(key["attributes"])
    return Line(indent, key["role"], key["name"] or "", key["attributes"], ref[1] if ref else "", value)


def _text(line: Line, page: str, *, hides: bool) -> str:
    """Return a line as it is handed out: its key is never quoted, since a name in JSON needs no more."""
    value = f": {MASK}" if hides else _harmless(line.value)
    if not line.role:
        return " " * line.indent + value
    attributes = _REF.sub(rf" [ref={page}:\1]", line.attributes)
    return f"{' ' * line.indent}- {line.role}{_harmless(line.name)}{attributes}{value}"


def _harmless(words: str) -> str:
    return words.replace("[ref=", "[ref =")
