"""Where the parts of a text begin: the headings of prose, the definitions of source code. Pure.

Every expression is written so that hostile text costs no more than its length: possessive repetition, bounded lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from remit.files.text import is_prose
from remit.regex import regex

_TITLE_LONGEST: Final = 120
_TITLE_WITHIN: Final = 4_000

# A leading line end instead of `^` lets the engine skip to the next line at once, which makes it eight times faster.
_DEFINITION: Final = regex(
    r"\n(?P<indent>[ \t]*+)"
    r"(?:(?:export|default|pub(?:\(\w+\))?|public|private|protected|static|async|abstract|final|inline|override"
    r"|unsafe)[ \t]++)*+"
    r"(?:def|class|function|func|fun|fn|struct|enum|interface|trait|impl|module|namespace)[ \t]++"
    r"(?P<name>[A-Za-z_$][\w$.]*+)"
    r"(?=[ \t]*+(?:[(:{<\[;\r\n]|(?:extends|implements|where|for|struct|interface)\b))",
)
_HEADING: Final = regex(
    r"\n(?:(?P<hashes>\#{1,6})[ \t]++(?P<atx>[^\n]{1,200})|(?P<sign>[=\-~^\"'`+*#])(?P=sign){2,}+[ \t\r]*+)$",
    re.MULTILINE,
)
"""A heading of its own line, or the line under one."""
_UNDERLINED: Final = regex(r"[^\s\n][^\n]{0,118}")
_UNDERLINES: Final = "#=-~^\"'`+*"
_DOCSTRING: Final = regex(r"\A(?:[ \t]*+(?:#[^\n]*+)?\n)*+[rRuU]?(?:\"\"\"|''')\s*([^\n]+)")
_LEADS: Final = ("@", "#", "//", "/*", "*")
"""The beginnings of decorators and comments: right above a definition they belong to it."""


class PartMark(NamedTuple):
    """A place where a new part of the text begins."""

    at: int
    depth: int
    """Comparable within one text: a part ends where another of the same depth or less begins."""
    name: str


def outline(path: str, text: str) -> list[PartMark]:
    """The parts of a file's text in order: headings if its name says it is prose, else definitions."""
    return list(_headings(text)) if is_prose(path) else _definitions(text)


def scopes(path: str, marks: list[PartMark]) -> list[str]:
    """For every mark the names that lead to it, its own last: `Task.cancel`, or `Install > On Linux`."""
    joint = " > " if is_prose(path) else "."
    stack: list[PartMark] = []
    names: list[str] = []
    for mark in marks:
        while stack and stack[-1].depth >= mark.depth:
            stack.pop()
        stack.append(mark)
        names.append(joint.join([each.name for each in stack]))
    return names


def title_of(path: str, text: str) -> str:
    """Say the title of a text: its first heading, or first line if it is prose; its docstring's; or the file's name."""
    if is_prose(path):
        first = next(_headings(text[:_TITLE_WITHIN]), None)
        title = first.name if first else text.lstrip()[: _TITLE_LONGEST + 1].partition("\n")[0]
    else:
        docstring = _DOCSTRING.match(text)
        title = docstring[1].strip("\"' ") if docstring else ""
    title = " ".join(title.split())
    return title if 0 < len(title) <= _TITLE_LONGEST else path.rpartition("/")[2]


def _headings(text: str) -> Iterator[PartMark]:
    taken = 0
    for heading in _HEADING.finditer("\n" + text):  # so a match starts where its line does in `text`
        at = heading.start()
        if heading["atx"]:
            yield PartMark(at, len(heading["hashes"]), heading["atx"].strip("# \t\r"))
            taken = heading.end()
            continue
        above = text.rfind("\n", 0, max(0, at - 1)) + 1
        if above >= taken and at > 0 and (title := _UNDERLINED.fullmatch(text, above, at - 1)):
            yield PartMark(above, 1 + _UNDERLINES.index(heading["sign"]), title[0].strip())
            taken = heading.end()


def _definitions(text: str) -> list[PartMark]:
    marks: list[PartMark] = []
    for match in _DEFINITION.finditer("\n" + text):  # so a match starts where its line does in `text`
        at = _with_lead(text, match.start(), marks[-1].at if marks else -1)
        marks.append(PartMark(at, len(match["indent"].expandtabs(4)), match["name"]))
    return marks


def _with_lead(text: str, at: int, after: int) -> int:
    """Return where the decorators and comments right above the line at `at` begin, later than `after`."""
    while at > 0:
        above = text.rfind("\n", 0, at - 1) + 1
        if above <= after or not text[above:at].lstrip().startswith(_LEADS):
            break
        at = above
    return at
