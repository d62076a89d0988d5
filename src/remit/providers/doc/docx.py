"""The text of a Word document: a walk over its XML, which holds no more memory than its text.

A DOCX is a ZIP of XML files and may come from anyone. Its sizes are bounded as they are unpacked, whatever it declares;
a DTD, and with it every entity, is refused; elements and their nesting are bounded. What a person does not see is left
out: hidden text, what was deleted, instructions of fields, the second version of a drawing.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from typing import Final

from lxml.etree import XMLParser, XMLSyntaxError

from remit.codes import Code
from remit.files.parsed import Job, Parsed, Refused, joined

_MAIN: Final = "word/document.xml"
_PARTS: Final = (_MAIN, "word/footnotes.xml", "word/endnotes.xml")
_STYLES: Final = "word/styles.xml"
_CORE: Final = "docProps/core.xml"
_UNPACKED: Final = 64 * 1024 * 1024
"""Bytes of XML that are read of one document."""
_ENTRIES: Final = 10_000
_ELEMENTS: Final = 2_000_000
"""Of one document; a page has some hundreds."""
_DEEPEST: Final = 500
"""Elements within elements; Word writes some dozens."""
_PIECE: Final = 65_536
_HEADING: Final = re.compile(r"heading ?([1-6])|(title)", re.IGNORECASE)
_SIGNS: Final = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_OFF: Final = frozenset({"0", "false", "off"})


_DAMAGE: Final = (zipfile.BadZipFile, zlib.error, XMLSyntaxError, OSError, EOFError, ValueError, RuntimeError)
"""Exceptions of broken archives and broken XML; an encrypted one raises RuntimeError."""


class _TooMuchError(Exception):
    """The document goes beyond a limit, or holds what a document does not."""


class _EnoughError(Exception):
    """As many characters as may be returned are read."""


def read_docx(job: Job) -> Parsed | Refused:
    """Return the text of a Word document as Markdown: headings, lists, tables and notes."""
    try:
        with zipfile.ZipFile(BytesIO(job.data)) as archive:
            names = set(archive.namelist())
            if _MAIN not in names or len(names) > _ENTRIES:
                return Refused(Code.DOCUMENT_UNREADABLE.name, "it is a ZIP, but no Word document")
            return _Archive(archive, names, job).read()
    except _TooMuchError as error:
        return Refused(Code.DOCUMENT_UNREADABLE.name, str(error))
    except _DAMAGE as error:
        encrypted = isinstance(error, RuntimeError) and "encrypted" in str(error)
        code = Code.DOCUMENT_ENCRYPTED if encrypted else Code.DOCUMENT_UNREADABLE
        return Refused(code.name, "it is encrypted" if encrypted else "it is damaged")


class _Archive:
    """The files in a document, unpacked within one limit for all."""

    def __init__(self, archive: zipfile.ZipFile, names: set[str], job: Job) -> None:
        self._archive = archive
        self._names = names
        self._job = job
        self._room = _UNPACKED

    def read(self) -> Parsed:
        styles, core = _Styles(), _Title()
        self._feed(_STYLES, styles)
        self._feed(_CORE, core)
        walk = _Walk(styles.levels, self._job.chars)
        cut = False
        try:
            for name in _PARTS:
                self._feed(name, walk)
        except _EnoughError:
            cut = True
        parsed = joined(["\n".join(walk.blocks).strip()], self._job, title=core.title, page_count=0)
        return Parsed(text=parsed.text, title=core.title, truncated=cut or parsed.truncated)

    def _feed(self, name: str, target: _Target) -> None:
        if name not in self._names:
            return
        parser = XMLParser(target=target, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
        with self._archive.open(name) as file:
            while piece := file.read(_PIECE):
                self._room -= len(piece)
                if self._room < 0:
                    raise _TooMuchError(f"it unpacks to more than {_UNPACKED:,} bytes")
                parser.feed(piece)
        parser.close()


class _Target:
    """The methods that the parser calls; a subclass looks at elements by their local names."""

    def __init__(self) -> None:
        self._depth = self._elements = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._elements > _ELEMENTS:
            raise _TooMuchError(f"it has more than {_ELEMENTS:,} elements")
        if self._depth > _DEEPEST:
            raise _TooMuchError(f"its elements are nested more than {_DEEPEST} deep")
        values = {name.rpartition("}")[2]: value for name, value in attributes.items()}
        self.opened(tag.rpartition("}")[2], values)

    def end(self, tag: str) -> None:
        self._depth -= 1
        self.closed(tag.rpartition("}")[2])

    def data(self, text: str) -> None:
        """Text between tags."""

    def doctype(self, *_: object) -> None:
        raise _TooMuchError("it has a DTD, which no Word document has")

    def close(self) -> None:
        """End the file; the parser asks for it."""

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        """An element begins."""

    def closed(self, name: str) -> None:
        """An element ends."""


class _Styles(_Target):
    """The levels of the styles that are headings, by their identifiers, which Word translates."""

    def __init__(self) -> None:
        super().__init__()
        self.levels: dict[str, int] = {}
        self._style = ""

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        if name == "style":
            self._style = values.get("styleId", "")
        elif name == "name" and (found := _HEADING.fullmatch(values.get("val", ""))):
            self.levels[self._style] = int(found[1] or 1)


class _Title(_Target):
    """The title that the document gives itself."""

    def __init__(self) -> None:
        super().__init__()
        self.title = ""
        self._inside = False

    def opened(self, name: str, values: Mapping[str, str]) -> None:  # noqa: ARG002 - the hook's
        self._inside = name == "title"

    def closed(self, name: str) -> None:  # noqa: ARG002 - the hook's
        self._inside = False

    def data(self, text: str) -> None:
        if self._inside and len(self.title) < _PIECE:
            self.title = " ".join(f"{self.title}{text}".split())[:500]


class _Walk(_Target):
    """The text, block by block."""

    def __init__(self, levels: Mapping[str, int], chars: int) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self._levels = levels
        self._room = chars
        self._paragraphs: list[list[str]] = []
        """Texts of the paragraphs that are open; one in a text box lies within another."""
        self._cells: list[list[str]] = []
        """Cells of the table rows that are open."""
        self._prefix = ""
        self._in_run = self._in_text = self._hidden = False
        self._unread = 0
        """Open elements that say again what another has said."""

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        match name:
            case "p":
                self._paragraphs.append([])
                self._prefix = ""
            case "pStyle":
                self._prefix = "#" * self._levels.get(values.get("val", ""), 0)
            case "numPr" if not self._prefix:
                self._prefix = "-"
            case "r":
                self._in_run, self._hidden = True, False
            case "t":
                self._in_text = True
            case "tr":
                self._cells.append([])
            case "tc" if self._cells:
                self._cells[-1].append("")
            case "Fallback":
                self._unread += 1
            case "footnote" | "endnote":
                self._add(f"[{name} {values.get('id', '')}]")
            case _:
                self._mark(name, values)

    def closed(self, name: str) -> None:
        match name:
            case "p" if self._paragraphs:
                self._end_paragraph("".join(self._paragraphs.pop()).strip())
            case "r":
                self._in_run = False
            case "t":
                self._in_text = False
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
        prefix, self._prefix = self._prefix, ""
        if not text:
            return
        if self._cells:
            cell = f"{self._cells[-1].pop()} {text}" if self._cells[-1] else text
            self._cells[-1].append(" ".join(cell.split()))
            return
        self._add(f"{prefix} {text}".lstrip(" "))
        if prefix != "-":
            self._add("")

    def _add(self, block: str) -> None:
        self.blocks.append(block)
        self._room -= len(block) + 1
        if self._room < 0:
            raise _EnoughError
