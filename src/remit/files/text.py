"""Text out of bytes: is this text at all, in which encoding, and what does a person read in it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from remit.files.encodings import STRICT, codec_of

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROL: Final = re.compile(
    rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]"
)  # not tab, line ends, form feed, escape: logs hold those
_DECLARED: Final = re.compile(rb"(?:coding|charset)[:=]\s*[\"']?([-\w.]{1,40})")
_DECLARED_WITHIN: Final = 1_024
_CODECS: Final = ("big5", "cp", "euc_", "gb", "iso8859", "johab", "koi8", "mac-", "shift_jis", "tis-620")
"""Families of text codecs; Python's others transform bytes, escape, or take quadratic time (punycode)."""
_HYPERTEXT: Final = frozenset({".html", ".htm", ".xhtml"})
_PROSE: Final = _HYPERTEXT | {".adoc", ".markdown", ".md", ".mdx", ".org", ".rst", ".tex", ".text", ".txt"}
_DOCUMENTS: Final = frozenset({".docx", ".epub", ".ipynb", ".pdf", ".pptx", ".xlsx"})


class Readable(NamedTuple):
    """The text that a person reads in a file; character positions in citations count in `text`."""

    text: str
    title: str
    """The title a page gives itself; empty for other text."""
    pages: tuple[int, ...] = ()
    """Where each page begins in `text`, if the file has pages."""
    hidden: int = 0
    """Characters that a page holds and hides from a person."""
    costly: bool = False
    """Whether it took long to find, so that it is worth keeping."""


Reader = Callable[[str, bytes], Readable | None]
"""The text that a person reads in a file of this name, as `readable`."""


def decode(data: bytes) -> str | None:
    """Bytes as text without byte order mark and with line ends as they are, or None where they are not text.

    UTF-8; UTF-16 or UTF-32 with a byte order mark; else the encoding that the first kilobyte declares, the way Python
    sources (PEP 263) and HTML pages do. An encoding is never guessed: a quotation in a wrong one would not be verbatim.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decoded(data[len(mark) :], encoding)
    if _CONTROL.search(data):
        return None
    text = _decoded(data, "utf-8")
    if text is not None:
        return text
    declared = _DECLARED.search(data, 0, _DECLARED_WITHIN)
    return _decoded(data, _encoding(declared[1].decode())) if declared else None


def readable(name: str, data: bytes) -> Readable | None:
    """Return what a person reads in a file of this name: the text of an HTML page, anything else as it is.

    None for what is not text, and for a page that nests its elements deeper than pages do.
    """
    text = decode(data)
    if text is None:
        return None
    return _page(text) if suffix_of(name) in _HYPERTEXT else Readable(text, "")


def is_utf8(text: str) -> bool:
    """Return whether the bytes behind a text were UTF-8: Python reads others as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def suffix_of(path: str) -> str:
    """The lower-case suffix of a file name with its dot, or nothing."""
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    return f".{suffix.lower()}" if dot and stem else ""


def is_prose(path: str) -> bool:
    """Return whether a file of this name is written for people, going by its suffix; source code and data are not."""
    return suffix_of(path) in _PROSE | _DOCUMENTS


def _page(text: str) -> Readable | None:
    from remit.files.hypertext import TooDeepError, page_text  # noqa: PLC0415 - libxml2 takes 20 ms to load

    try:
        page = page_text(text)
    except TooDeepError:
        return None
    return Readable(page.text, page.title, hidden=page.hidden)


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        text = data.decode(encoding, STRICT)
        text.encode()
    except ValueError:
        return None  # not in this encoding, or with lone surrogates, which JSON cannot carry
    return None if "\0" in text else text


def _encoding(declared: str) -> str:
    """The codec for a declared encoding, if it is one of text that decodes in linear time; else ASCII."""
    if codec := codec_of(declared):
        return codec
    try:
        name = codecs.lookup(declared).name
    except LookupError:
        return "ascii"
    return name if name.startswith(_CODECS) else "ascii"
