"""The text of a Word document: a walk over its XML, which holds no more memory than its text.

What a person does not see is left out: hidden text, what was deleted, instructions of fields, the second version of a
drawing. What Word writes beside the text is there: the numbers of lists, the cells that a merged one takes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from remit.files.parsed import Job, Parsed, Refused, joined
from remit.providers.doc.numbering import NO_PLACE, Numbering, Place, level_of
from remit.providers.doc.package import EnoughError, Package, Target, number_of, read_package

_MAIN: Final = "word/document.xml"
_NOTES: Final = ("footnotes", "endnotes")
_HEADING: Final = re.compile(r"heading ?([1-6])|(title)", re.IGNORECASE)
_SIGNS: Final = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_OFF: Final = frozenset({"0", "false", "off"})
_WIDEST: Final = 100
"""Columns that a merged cell takes at most; Word has 63."""


def read_docx(job: Job) -> Parsed | Refused:
    """Return the text of a Word document as Markdown: headings, lists, tables and notes."""
    return read_package(job, _read)


def _read(package: Package, job: Job) -> Parsed:
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


class _Styles(Target):
    """The styles of paragraphs, by their identifiers, which Word translates."""

    def __init__(self) -> None:
        super().__init__()
        self.levels: dict[str, int] = {}
        """Levels of headings."""
        self.places: dict[str, Place] = {}
        """Places in lists."""
        self._style = self._level = ""

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        value = values.get("val", "")
        if name == "style":
            self._style, self._level = values.get("styleId", ""), ""
        elif name == "name" and (found := _HEADING.fullmatch(value)):
            self.levels[self._style] = int(found[1] or 1)
        elif name == "ilvl":
            self._level = value
        elif name == "numId":
            self.places[self._style] = Place(value, level_of(self._level))


class _Walk(Target):
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
            case "footnote" | "endnote":
                self._add(f"[{name} {values.get('id', '')}]")
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
            self._place = Place(value, level_of(self._level))

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
            self._say(f"[{name.removesuffix('Reference')} {values.get('id', '')}]")

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
