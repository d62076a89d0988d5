"""The text of slides (PPTX): each slide is a page, with its title, tables, diagrams and the speaker's notes.

What no one sees is left out: hidden slides keep their number and have no text, hidden shapes have none.
"""

from __future__ import annotations

from collections.abc import Mapping

from remit.files.parse_job import Parsed, ParseJob, Refused, joined
from remit.parts.documents.package import Package, XmlTarget, read_package

_MAIN = "ppt/presentation.xml"
_TITLES = frozenset({"title", "ctrTitle"})
_FURNITURE = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})
"""Placeholders that say the same on every slide."""


def read_pptx(job: ParseJob) -> Parsed | Refused:
    """Return the text of a presentation as Markdown."""
    return read_package(job, _read)


def _read(package: Package, job: ParseJob) -> Parsed:
    main = package.main(_MAIN, "presentation")
    order, parts = _Order(), package.relations(main)
    package.feed(main, order)
    texts = (_slide(package, parts[name].part) if name in parts else "" for name in order.slides)
    return joined(texts, job, title=package.title(), page_count=len(order.slides))


def _slide(package: Package, part: str) -> str:
    slide = _Shapes()
    package.feed(part, slide)
    if slide.hidden:
        return ""
    blocks = slide.blocks
    for relation in package.relations(part).values():
        if relation.kind in {"diagramData", "notesSlide"}:
            beside = _Shapes()
            package.feed(relation.part, beside)
            blocks += [f"Notes: {block}" for block in beside.blocks] if relation.kind == "notesSlide" else beside.blocks
    return "\n\n".join(blocks)


class _Order(XmlTarget):
    """The slides in the order in which they are shown, by the identifiers of their relations."""

    def __init__(self) -> None:
        super().__init__()
        self.slides: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        # `id` is here twice: the slide's own, and in the namespace of relations.
        super().start(tag, {name: value for name, value in attributes.items() if name.startswith("{") or name != "id"})

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        if name == "sldId":
            self.slides.append(values.get("id", ""))


class _Shapes(XmlTarget):
    """The text of one slide, shape by shape."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self.hidden = False
        self._lines: list[str] = []
        self._row: list[str] = []
        self._cell = 0
        self._in_text = self._in_cell = self._title = False
        self._unseen = 0
        """Depth of the shape that is left out; 0: none is."""
        self._again = 0

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        match name:
            case "sld":
                self.hidden = values.get("show") in {"0", "false"}
            case "cNvPr" if values.get("hidden") in {"1", "true"}:
                self._unseen = self._unseen or self._depth - 2  # the shape, above its properties
            case "ph":
                self._title = values.get("type") in _TITLES
                if values.get("type") in _FURNITURE:
                    self._unseen = self._unseen or self._depth - 3  # the same
            case "Fallback":
                self._again += 1
            case "p" | "tc":
                self._lines.append("") if name == "p" else self._begin_cell()
            case "br":
                self._say("\n")
            case "t":
                self._in_text = True
            case _:
                pass

    def closed(self, name: str) -> None:
        match name:
            case "t":
                self._in_text = False
            case "tc":
                self._row[self._cell] = " ".join(" ".join(self._lines).split())
                self._in_cell, self._lines = False, []
            case "tr":
                if any(self._row):
                    self.blocks.append("| " + " | ".join(self._row) + " |")
                self._row = []
            case "Fallback":
                self._again -= 1
            case "sp" | "txBody" | "pt" if not self._in_cell:
                self._end_shape()
            case _:
                pass
        if self._depth < self._unseen:
            self._unseen = 0

    def data(self, text: str) -> None:
        if self._in_text:
            self._say(text)

    def _begin_cell(self) -> None:
        self._cell, self._in_cell, self._lines = len(self._row), True, []
        self._row.append("")

    def _say(self, text: str) -> None:
        if self._lines and not self._unseen and not self._again:
            self._lines[-1] += text

    def _end_shape(self) -> None:
        lines, self._lines = [line.strip() for line in self._lines], []
        text = "\n".join(line for line in lines if line)
        if text:
            self.blocks.append("# " + " ".join(text.split()) if self._title else text)
        self._title = False
