"""The ZIP behind an Office document or a book: its parts, how they refer to one another, and what bounds them.

It may come from anyone. Its sizes are bounded as they are unpacked, whatever it declares; a DTD, and with it every
entity, is refused; elements and their nesting are bounded. Which part is which, its relations say, and not its name.
"""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Final, NamedTuple
from urllib.parse import unquote

from lxml.etree import XMLParser, XMLSyntaxError

from remit.codes import Code
from remit.files.parse_job import Parsed, ParseJob, Refused

_UNPACKED: Final = 64 * 1024 * 1024
"""Bytes that are read of one document."""
_ENTRIES: Final = 10_000
_ELEMENTS: Final = 2_000_000
"""Elements of one part; a page has some hundreds."""
_DEEPEST: Final = 500
"""Elements within elements; Word writes some dozens."""
_PIECE: Final = 65_536
_DAMAGE: Final = (zipfile.BadZipFile, zlib.error, XMLSyntaxError, OSError, EOFError, ValueError, RuntimeError)
"""Exceptions of broken archives and broken XML; an encrypted one raises RuntimeError."""


class UnreadableDocumentError(Exception):
    """The document goes beyond a limit, or is not what it seems to be; its text says why."""


class EncryptedError(Exception):
    """The document needs a key."""


class EnoughError(Exception):
    """As many characters as may be returned are read."""


class Relation(NamedTuple):
    """A reference to another part."""

    kind: str
    """The last word of its type, such as `styles`."""
    part: str


class Package:
    """The parts of a document, unpacked within one limit for all."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.names = {name.replace("\\", "/"): name for name in archive.namelist()}
        """The names of the parts, with slashes; some programs write the other one."""
        if len(self.names) > _ENTRIES:
            raise UnreadableDocumentError(f"it has more than {_ENTRIES:,} parts")
        self._room = _UNPACKED

    def feed(self, name: str, target: XmlTarget) -> None:
        """Read a part into a target; one that is not there has nothing in it."""
        if name not in self.names:
            return
        parser = XMLParser(target=target, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
        with self._archive.open(self.names[name]) as file:
            while piece := file.read(_PIECE):
                self._take(len(piece))
                parser.feed(piece)
        parser.close()

    def data(self, name: str) -> bytes:
        """Return the bytes of a part; none of one that is not there."""
        if name not in self.names:
            return b""
        with self._archive.open(self.names[name]) as file:
            pieces = []
            while piece := file.read(_PIECE):
                self._take(len(piece))
                pieces.append(piece)
        return b"".join(pieces)

    def relations(self, part: str = "") -> dict[str, Relation]:
        """Return what a part, or the package itself, refers to within the package, by identifier."""
        folder, name = posixpath.split(part)
        relations = _Relations(folder)
        self.feed(posixpath.join(folder, "_rels", f"{name}.rels"), relations)
        return relations.targets

    def main(self, usual: str, form: str) -> str:
        """Return the part that the package is about, by its relations, or by its usual name. Raises UnreadableError."""
        part = next((it.part for it in self.relations().values() if it.kind == "officeDocument"), usual)
        if part not in self.names:
            raise UnreadableDocumentError(f"it is a ZIP, but no {form}")
        return part

    def title(self) -> str:
        """Return the title that an Office document gives itself."""
        core = next((it.part for it in self.relations().values() if it.kind == "core-properties"), "docProps/core.xml")
        properties = _Title()
        self.feed(core, properties)
        return properties.title

    def _take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise UnreadableDocumentError(f"it unpacks to more than {_UNPACKED:,} bytes")


class XmlTarget:
    """The methods that the parser calls; a subclass looks at elements by their local names."""

    def __init__(self) -> None:
        self._depth = self._elements = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._elements > _ELEMENTS:
            raise UnreadableDocumentError(f"it has more than {_ELEMENTS:,} elements")
        if self._depth > _DEEPEST:
            raise UnreadableDocumentError(f"its elements are nested more than {_DEEPEST} deep")
        values = {name.rpartition("}")[2]: value for name, value in attributes.items()}
        self.opened(tag.rpartition("}")[2], values)

    def end(self, tag: str) -> None:
        self._depth -= 1
        self.closed(tag.rpartition("}")[2])

    def data(self, text: str) -> None:
        """Text between tags."""

    def doctype(self, *_: object) -> None:
        """Refuse a DTD."""
        raise UnreadableDocumentError("it has a DTD, which no such document has")

    def close(self) -> None:
        """End the part; the parser asks for it."""

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        """An element begins."""

    def closed(self, name: str) -> None:
        """An element ends."""


class _Relations(XmlTarget):
    """The references of a part."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.targets: dict[str, Relation] = {}
        self._folder = folder

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        if name == "Relationship" and values.get("TargetMode") != "External":
            part = part_of(self._folder, values.get("Target", ""))
            self.targets[values.get("Id", "")] = Relation(values.get("Type", "").rpartition("/")[2], part)


class _Title(XmlTarget):
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


def number_of(text: str) -> int:
    """Return the number in an attribute; 0 for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0  # noqa: PLR2004 - no list has more


def part_of(folder: str, target: str) -> str:
    """Return the name of the part that a reference from within a folder means."""
    return posixpath.normpath(posixpath.join("/", folder, unquote(target.partition("#")[0]))).lstrip("/")


def read_package(job: ParseJob, read: Callable[[Package, ParseJob], Parsed]) -> Parsed | Refused:
    """Read a document; say why there is no text if that fails."""
    try:
        with zipfile.ZipFile(BytesIO(job.data)) as archive:
            return read(Package(archive), job)
    except UnreadableDocumentError as error:
        return Refused(Code.DOCUMENT_UNREADABLE.name, str(error))
    except EncryptedError:
        return Refused(Code.DOCUMENT_ENCRYPTED.name, "it is encrypted")
    except _DAMAGE as error:
        encrypted = isinstance(error, RuntimeError) and "encrypted" in str(error)
        code = Code.DOCUMENT_ENCRYPTED if encrypted else Code.DOCUMENT_UNREADABLE
        return Refused(code.name, "it is encrypted" if encrypted else "it is damaged")
