"""The text of a Word document: a walk over its XML, which holds no more memory than its text.

What a person does not see is left out: hidden text, what was deleted, instructions of fields, the second version of a
drawing. What Word writes beside the text is there: the numbers of lists, the cells that a merged one takes.

The numbers of lists in a Word document, which its text does not hold: contracts refer to them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from remit.files.parse_job import Parsed, ParseJob, Refused, joined
from remit.parts.documents.package import EnoughError, Package, XmlTarget, number_of, read_package
from remit.regex import regex

_LEVELS: Final = 9
_ROMAN: Final = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
                 (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


class ListPlace(NamedTuple):
    """A paragraph's place in a list."""

    list: str
    level: int


NO_PLACE: Final = ListPlace("0", 0)


class ListLevel(NamedTuple):
    """The numbering of one level of a list."""

    start: int = 1
    form: str = "bullet"
    text: str = ""
    """Such as `%1.%2.`, with the numbers of the levels."""


class Numbering(XmlTarget):
    """The lists of a document, and how far each is counted."""

    def __init__(self) -> None:
        super().__init__()
        self._abstract: dict[str, dict[int, ListLevel]] = {}
        self._lists: dict[str, str] = {}
        self._starts: dict[str, dict[int, int]] = {}
        """First numbers of levels that a list begins again, by list."""
        self._counts: dict[str, list[int]] = {}
        self._begun: set[str] = set()
        self._open = self._list = ""
        self._at = 0

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        value = values.get("val", "")
        match name:
            case "abstractNum":
                self._open, self._list = values.get("abstractNumId", ""), ""
            case "num":
                self._list, self._open = values.get("numId", ""), ""
            case "abstractNumId":
                self._lists[self._list] = value
            case "lvl" | "lvlOverride":
                self._at = level_of(values.get("ilvl", ""))
            case "startOverride":
                self._starts.setdefault(self._list, {})[self._at] = number_of(value)
            case "start" | "numFmt" | "lvlText" if self._open:
                levels = self._abstract.setdefault(self._open, {})
                known = levels.get(self._at, ListLevel())
                fields: dict[str, Any] = {"numFmt": {"form": value}, "lvlText": {"text": value}}
                levels[self._at] = known._replace(**fields.get(name, {"start": number_of(value)}))
            case _:
                pass

    def next(self, place: ListPlace) -> str:
        """Count one paragraph of a list on, and return its number; `-` of a bullet, empty of one without a sign."""
        abstract = self._lists.get(place.list)
        if place.list == "0":
            return ""
        levels = self._abstract.get(abstract or "", {})
        level = levels.get(place.level, ListLevel())
        if level.form in {"bullet", "none"}:
            return "-" if level.form == "bullet" else ""
        counts = self._counts.setdefault(abstract or "", [levels.get(n, ListLevel()).start - 1 for n in range(_LEVELS)])
        if place.list not in self._begun:
            self._begun.add(place.list)
            for at, start in self._starts.get(place.list, {}).items():
                counts[at] = start - 1
        counts[place.level] += 1
        for below in range(place.level + 1, _LEVELS):
            counts[below] = levels.get(below, ListLevel()).start - 1
        text = level.text
        for at in range(place.level + 1):
            shown = max(counts[at], levels.get(at, ListLevel()).start)
            text = text.replace(f"%{at + 1}", _shown(shown, levels.get(at, level).form))
        return text or _shown(counts[place.level], level.form)


def level_of(text: str) -> int:
    """Return the level of a list, counted from 0, that an attribute names."""
    return min(number_of(text), _LEVELS - 1)


def _shown(number: int, form: str) -> str:
    """Return a number as a list shows it."""
    if number < 1:
        return str(number)
    if form in {"lowerLetter", "upperLetter"}:
        letters = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 10)
        return letters if form == "lowerLetter" else letters.upper()
    if form in {"lowerRoman", "upperRoman"} and number < 4_000:  # noqa: PLR2004 - larger ones have no numeral
        numeral = ""
        for value, sign in _ROMAN:
            numeral += sign * (number // value)
            number %= value
        return numeral if form == "lowerRoman" else numeral.upper()
    return f"{number:02d}" if form == "decimalZero" else str(number)


_MAIN: Final = "word/document.xml"
_NOTES: Final = ("footnotes", "endnotes")
_HEADING: Final = regex(r"heading ?([1-6])|(title)", re.IGNORECASE)
_SIGNS: Final = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_OFF: Final = frozenset({"0", "false", "off"})
_WIDEST: Final = 100
"""Columns that a merged cell takes at most; Word has 63."""


def read_docx(job: ParseJob) -> Parsed | Refused:
    """Return the text of a Word document as Markdown: headings, lists, tables and notes."""
    return read_package(job, _read)


def _read(package: Package, job: ParseJob) -> Parsed:
    main = package.main(_MAIN, "Word document")
    parts = {it.kind: it.part for it in package.relations(main).values()}
    styles, numbering = _Styles(), Numbering()
    package.feed(parts.get("styles", "word/styles.xml"), styles)
    package.feed(parts.get("numbering", "word/numbering.xml"), numbering)
    walk = _Walk(styles, numbering, job.chars)
    cut = False
    try:
        for part in (main, *(parts.get(kind, f"word/{kind}.xml") for kind in _NOTES)):
            package.feed(part, walk)
    except EnoughError:
        cut = True
    title = package.title()
    parsed = joined(["\n".join(walk.blocks).strip()], job, title=title, page_count=0)
    return Parsed(text=parsed.text, title=title, truncated=cut or parsed.truncated)


class _Styles(XmlTarget):
    """The styles of paragraphs, by their identifiers, which Word translates."""

    def __init__(self) -> None:
        super().__init__()
        self.levels: dict[str, int] = {}
        """Levels of headings."""
        self.places: dict[str, ListPlace] = {}
        """Places in lists."""
        self._style = self._level = ""

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        value = values.get("val", "")
        if name == "style":
            self._style, self._level = values.get("styleId", ""), ""
        elif name == "name" and (match := _HEADING.fullmatch(value)):
            self.levels[self._style] = int(match[1] or 1)
        elif name == "ilvl":
            self._level = value
        elif name == "numId":
            self.places[self._style] = ListPlace(value, level_of(self._level))


class _Walk(XmlTarget):
    """The text, block by block."""

    def __init__(self, styles: _Styles, numbering: Numbering, chars: int) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self._styles = styles
        self._numbering = numbering
        self._room = chars
        self._paragraphs: list[list[str]] = []
        """Texts of the paragraphs that are open; one in a text box lies within another."""
        self._cells: list[list[str]] = []
        """Cells of the table rows that are open."""
        self._spans: list[int] = []
        """Columns of the cells that are open."""
        self._notes: dict[str, dict[str, int]] = {}
        """Numbers of notes, by their kind and identifier."""
        self._heading, self._place, self._level = "", NO_PLACE, ""
        self._in_run = self._in_text = self._hidden = False
        self._unread = 0
        """Open elements that say again what another has said."""

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        match name:
            case "p":
                self._paragraphs.append([])
                self._heading, self._place, self._level = "", NO_PLACE, ""
            case "pStyle" | "numPr" | "ilvl" | "numId":
                self._format(name, values.get("val", ""))
            case "r":
                self._in_run, self._hidden = True, False
            case "t":
                self._in_text = True
            case "tr" | "tc" | "gridSpan" | "gridBefore":
                self._tabulate(name, number_of(values.get("val", "")))
            case "Fallback":
                self._unread += 1
            case "footnote" | "endnote" if values.get("type", "normal") == "normal":  # others are lines between
                self._add(self._note(name, values.get("id", "")))
            case _:
                self._mark(name, values)

    def _format(self, name: str, value: str) -> None:
        """Note what a paragraph is: a heading, a place in a list."""
        if name == "pStyle":
            self._heading = "#" * self._styles.levels.get(value, 0)
            self._place = self._styles.places.get(value, NO_PLACE)
        elif name == "ilvl":
            self._level = value
        else:
            self._place = ListPlace(value, level_of(self._level))

    def _tabulate(self, name: str, columns: int) -> None:
        """Begin a row or a cell, or note how many columns one takes."""
        if name == "tr":
            self._cells.append([])
        elif not self._cells:
            return
        elif name == "tc":
            self._cells[-1].append("")
            self._spans.append(1)
        elif name == "gridBefore":
            self._cells[-1] += [""] * min(columns, _WIDEST)
        elif self._spans:
            self._spans[-1] = min(columns, _WIDEST)

    def closed(self, name: str) -> None:
        match name:
            case "p" if self._paragraphs:
                self._end_paragraph("".join(self._paragraphs.pop()).strip())
            case "r":
                self._in_run = False
            case "t":
                self._in_text = False
            case "tc" if self._spans:
                self._cells[-1] += [""] * (self._spans.pop() - 1)
            case "tr" if self._cells:
                row = self._cells.pop()
                if any(row):
                    self._add("| " + " | ".join(row) + " |")
            case "tbl":
                self._add("")
            case "Fallback":
                self._unread -= 1
            case _:
                pass

    def data(self, text: str) -> None:
        if self._in_text:
            self._say(text)

    def _mark(self, name: str, values: Mapping[str, str]) -> None:
        """Say what an element within a run stands for, or that the run is hidden."""
        if not self._in_run:
            return
        if name in _SIGNS:
            self._say(_SIGNS[name])
        elif name == "vanish":
            self._hidden = values.get("val", "1") not in _OFF
        elif name in {"footnoteReference", "endnoteReference"}:
            self._say(self._note(name.removesuffix("Reference"), values.get("id", "")))

    def _note(self, kind: str, identifier: str) -> str:
        """Return the mark of a note: they are counted as the text refers to them."""
        known = self._notes.setdefault(kind, {})
        return f"[{kind} {known.setdefault(identifier, len(known) + 1)}]"

    def _say(self, text: str) -> None:
        if self._paragraphs and not self._hidden and not self._unread:
            self._paragraphs[-1].append(text)

    def _end_paragraph(self, text: str) -> None:
        heading, self._heading = self._heading, ""
        number = self._numbering.next(self._place) if text or self._place != NO_PLACE else ""
        self._place = NO_PLACE
        if not text:
            return
        if number and not (heading and number == "-"):
            text = f"{number} {text}"
        if self._cells:
            cell = f"{self._cells[-1].pop()} {text}" if self._cells[-1] else text
            self._cells[-1].append(" ".join(cell.split()))
            return
        self._add(f"{heading} {text}".lstrip(" "))
        if heading or not number:
            self._add("")

    def _add(self, block: str) -> None:
        self.blocks.append(block)
        self._room -= len(block) + 1
        if self._room < 0:
            raise EnoughError
