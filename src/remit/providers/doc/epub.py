"""The text of a book (EPUB): its chapters in the order in which they are read, each a page."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from remit.files.hypertext import TooDeepError, page_text
from remit.files.parsed import Job, Parsed, Refused, joined
from remit.files.text import decode
from remit.providers.doc.package import EncryptedError, Package, Target, UnreadableError, part_of, read_package

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"


def read_epub(job: Job) -> Parsed | Refused:
    """Return the text of a book."""
    return read_package(job, _read)


def _read(package: Package, job: Job) -> Parsed:
    container, encrypted = _Container(), _Encryption()
    package.feed(_CONTAINER, container)
    if container.root not in package.names:
        raise UnreadableError("it is a ZIP, but no book")
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


class _Container(Target):
    """The part that describes the book."""

    def __init__(self) -> None:
        super().__init__()
        self.root = ""

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        if name == "rootfile" and not self.root:
            self.root = part_of("", values.get("full-path", ""))


class _Encryption(Target):
    """The parts that are encrypted."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: set[str] = set()

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        if name == "CipherReference":
            self.parts.add(part_of("", values.get("URI", "")))


class _Book(Target):
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
