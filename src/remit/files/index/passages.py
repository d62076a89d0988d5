"""Cutting a text into passages: pieces a person can read alone, that a search can rank and a citation can point into.

Pure. A passage ends where the text does so by itself: before a heading or a definition, else after a paragraph, else
after a line, and in the middle of one only where a single line is longer than a passage may be.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from remit.files.outline import Mark, outline, scopes

LONGEST: Final = 1_500
"""Characters of a passage at most."""
_SHORTEST: Final = 350
"""A heading or definition does not end a passage that is shorter: two small ones are read together."""
_PARAGRAPH_FROM: Final = 700
_PARAGRAPH: Final = re.compile(r"\n(?:[ \t\r]*+\n|(?=(?:[-*+•]|\d{1,3}[.)])[ \t]))")
"""The end of a paragraph: an empty line, or the line before an item of a list."""


class Passage(NamedTuple):
    """A piece of a text."""

    start: int
    end: int
    heading: str
    """Titles above it: section titles, or the qualified name of a definition; may be empty."""
    names: str
    """Every name it defines or begins in, for the index."""


class _Text(NamedTuple):
    """A text with the places where a passage may end."""

    text: str
    marks: list[Mark]
    scopes: list[str]
    breaks: list[int]
    paragraphs: list[int]


def cut(path: str, text: str, pages: Sequence[int] = ()) -> list[Passage]:
    """The passages of a file's text in order, without the blanks around them; none is on two `pages`."""
    marks = outline(path, text)
    paragraphs = [found.end() for found in _PARAGRAPH.finditer(text)]
    whole = _Text(text, marks, scopes(path, marks), [mark.at for mark in marks], paragraphs)
    passages: list[Passage] = []
    start = 0
    while start < len(text):
        following = bisect_right(pages, start)
        end = min(_end(whole, start), pages[following] if following < len(pages) else len(text))
        passage = _passage(whole, start, end)
        if passage is not None:
            passages.append(passage)
        start = end
    return passages


def _end(whole: _Text, start: int) -> int:
    """Return where the passage that begins at `start` ends."""
    text, limit = whole.text, start + LONGEST
    following = bisect_left(whole.breaks, start + _SHORTEST)
    if following < len(whole.breaks) and whole.breaks[following] <= limit:
        return whole.breaks[following]
    if len(text) <= limit:
        return len(text)
    last = bisect_right(whole.paragraphs, limit) - 1
    if last >= 0 and whole.paragraphs[last] >= start + _PARAGRAPH_FROM:
        return whole.paragraphs[last]
    for stop in ("\n", " "):
        found = text.rfind(stop, start + _SHORTEST, limit)
        if found >= 0:
            return found + 1
    return limit


def _passage(whole: _Text, start: int, end: int) -> Passage | None:
    piece = whole.text[start:end]
    body = piece.strip()
    if not body:
        return None
    first = start + len(piece) - len(piece.lstrip())
    above = bisect_right(whole.breaks, first) - 1
    heading = whole.scopes[above] if above >= 0 else ""
    inside = range(bisect_left(whole.breaks, start), bisect_left(whole.breaks, end))
    names = dict.fromkeys([heading, *[whole.marks[i].name for i in inside]])
    return Passage(first, first + len(body), heading, " ".join(names))
