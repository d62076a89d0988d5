"""The text of a book (EPUB): its chapters in the order in which they are read, each a page.

The text of a Jupyter notebook: its cells, with what they printed; each cell is a page.

A value that is odd costs its own place: what is not wanted is not looked at, and NaN is read, as Python writes it.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, Final

from remit.codes import Code
from remit.files.hypertext import TooDeepError, page_text
from remit.files.parse_job import Parsed, ParseJob, Refused, joined
from remit.files.text import decode
from remit.parts.documents.package import (
    EncryptedError,
    Package,
    UnreadableDocumentError,
    XmlTarget,
    part_of,
    read_package,
)
from remit.regex import regex

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"


def read_epub(job: ParseJob) -> Parsed | Refused:
    """Return the text of a book."""
    return read_package(job, _read)


def _read(package: Package, job: ParseJob) -> Parsed:
    container, encrypted = _Container(), _Encryption()
    package.feed(_CONTAINER, container)
    if container.root not in package.names:
        raise UnreadableDocumentError("it is a ZIP, but no book")
    package.feed(_ENCRYPTION, encrypted)
    book = _Book(posixpath.dirname(container.root))
    package.feed(container.root, book)
    chapters = [book.parts[name] for name in book.order if name in book.parts]
    if encrypted.parts & set(chapters):  # fonts alone may be, in books that anyone may read
        raise EncryptedError
    texts = (_chapter(package.data(part)) for part in chapters)
    return joined(texts, job, title=" ".join(book.title.split())[:500], page_count=len(chapters))


def _chapter(data: bytes) -> str:
    """Return the text of a chapter; none of one that cannot be read, which leaves the others readable."""
    try:
        return page_text(decode(data) or "").text
    except TooDeepError:
        return ""


class _Container(XmlTarget):
    """The part that describes the book."""

    def __init__(self) -> None:
        super().__init__()
        self.root = ""

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        if name == "rootfile" and not self.root:
            self.root = part_of("", values.get("full-path", ""))


class _Encryption(XmlTarget):
    """The parts that are encrypted."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: set[str] = set()

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        if name == "CipherReference":
            self.parts.add(part_of("", values.get("URI", "")))


class _Book(XmlTarget):
    """The book's title, its chapters, and their order."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.title = ""
        self.parts: dict[str, str] = {}
        self.order: list[str] = []
        self._folder = folder
        self._in_title = False

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        if name == "item" and values.get("media-type", "") in {"application/xhtml+xml", "text/html"}:
            self.parts[values.get("id", "")] = part_of(self._folder, values.get("href", ""))
        elif name == "itemref":
            self.order.append(values.get("idref", ""))
        self._in_title = name == "title" and not self.title

    def closed(self, name: str) -> None:  # noqa: ARG002 - the hook's
        self._in_title = False

    def data(self, text: str) -> None:
        if self._in_title:
            self.title += text


_WORD: Final = regex(r"[\w+#.-]{1,30}")


def read_notebook(job: ParseJob) -> Parsed | Refused:
    """Return the text of a notebook as Markdown."""
    try:
        notebook = json.loads(job.data.removeprefix(b"\xef\xbb\xbf"))
    except json.JSONDecodeError as error:
        reason = f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        return Refused(Code.DOCUMENT_UNREADABLE.name, reason)
    except UnicodeDecodeError:
        return Refused(Code.DOCUMENT_UNREADABLE.name, "it is not in UTF-8")
    except (RecursionError, ValueError):
        return Refused(Code.DOCUMENT_UNREADABLE.name, "its values are nested too deeply, or too long")
    cells = _member(notebook, "cells")
    if not isinstance(cells, list):
        return Refused(Code.DOCUMENT_UNREADABLE.name, _other(notebook))
    named = _WORD.fullmatch(_text(_member(_member(_member(notebook, "metadata"), "language_info"), "name")))
    language = named[0] if named else ""
    texts = ("\n\n".join(_parts(cell, language)).encode("utf-8", "replace").decode() for cell in cells)
    return joined(texts, job, title="", page_count=len(cells))


def _other(notebook: object) -> str:
    """Return why a JSON file is no notebook that is read."""
    form = _member(notebook, "nbformat")
    if isinstance(form, int) and _member(notebook, "worksheets") is not None:
        return f"it is a notebook of format {form}; format 4 is read, which `jupyter nbconvert --to notebook` writes"
    return "it is no notebook of format 4: it has no list of cells"


def _parts(cell: object, language: str) -> Iterator[str]:
    source = _text(_member(cell, "source"))
    yield f"```{language}\n{source}\n```" if _member(cell, "cell_type") == "code" else source
    outputs = _member(cell, "outputs")
    for output in outputs if isinstance(outputs, list) else ():
        printed = _text(_member(output, "text")) or _text(_member(_member(output, "data"), "text/plain"))
        printed = printed or f"{_text(_member(output, 'ename'))}: {_text(_member(output, 'evalue'))}".strip(": ")
        if printed.strip():
            yield f"```\n{printed.rstrip()}\n```"


def _member(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _text(lines: Any) -> str:
    if isinstance(lines, list):
        lines = "".join(line for line in lines if isinstance(line, str))
    return lines.replace("\0", "") if isinstance(lines, str) else ""
