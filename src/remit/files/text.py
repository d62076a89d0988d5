"""Text out of bytes: is this text at all, in which encoding, and what does a person read in it.

Encodings by their labels, as the web's Encoding Standard has them: what pages and files declare, and a codec for it.

Python's codec of a name is often smaller than what the web reads under it: pages that say GB2312 are written in GBK.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Final

import msgspec

from remit.regex import regex

LOSSY: Final = "remit-lossy"
"""The error handler under which a codec of the table reads everything; what has no character becomes U+FFFD."""
STRICT: Final = "remit-strict"
"""The error handler under which what has no character raises UnicodeDecodeError."""
_TABLE: Final = """
utf-8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8
cp866 866 cp866 csibm866 ibm866
iso8859-2 csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
iso8859-3 csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3
iso8859-4 csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4
iso8859-5 csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988
iso8859-6 arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e iso-8859-6-i
iso8859-6 iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso8859-7 csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7
iso8859-7 iso_8859-7:1987 sun_eu_greek
iso8859-8 csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8
iso8859-8 iso_8859-8:1988 visual csiso88598i iso-8859-8-i logical
iso8859-10 csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso8859-13 iso-8859-13 iso8859-13 iso885913
iso8859-14 iso-8859-14 iso8859-14 iso885914
iso8859-15 csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9
iso8859-16 iso-8859-16
koi8-r cskoi8r koi koi8 koi8-r koi8_r
koi8-u koi8-ru koi8-u
mac_roman csmacintosh mac macintosh x-mac-roman
mac_cyrillic x-mac-cyrillic x-mac-ukrainian
cp874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874
cp1250 cp1250 windows-1250 x-cp1250
cp1251 cp1251 windows-1251 x-cp1251
cp1252 ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1
cp1252 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252 x-user-defined
cp1253 cp1253 windows-1253 x-cp1253
cp1254 cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 windows-1254
cp1254 x-cp1254
cp1255 cp1255 windows-1255 x-cp1255
cp1256 cp1256 windows-1256 x-cp1256
cp1257 cp1257 windows-1257 x-cp1257
cp1258 cp1258 windows-1258 x-cp1258
gb18030 chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk gb18030
cp950 big5 big5-hkscs cn-big5 csbig5 x-x-big5
euc_jp cseucpkdfmtjapanese euc-jp x-euc-jp
iso2022_jp csiso2022jp iso-2022-jp
cp932 csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis
cp949 cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949
utf-16-be unicodefffe utf-16be
utf-16-le csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le
"""
"""A codec, and labels that the standard reads by it. `x-user-defined` is read as in the `<meta>` of a page.

Not here are the labels that the standard reads as nothing at all (`replacement`), such as `hz-gb-2312`.
"""
_CODEC_BY_LABEL: Final = {
    label: words[0] for words in map(str.split, _TABLE.strip().splitlines()) for label in words[1:]
}
_CONTROLS: Final = range(0x80, 0xA0)
_EURO: Final = 0x80


def codec_of(label: str) -> str:
    """Return the codec for a label of the standard; empty for any other, which counts as none."""
    return _CODEC_BY_LABEL.get(label.strip("\t\n\f\r ").lower(), "")


def _lossy(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _beyond(error) or ("\ufffd", error.end)


def _strict(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError) or (strict := _beyond(error)) is None:
        raise error
    return strict


def _beyond(error: UnicodeDecodeError) -> tuple[str, int] | None:
    """A character that the standard has and Python's codec has not, and where it ends."""
    at = error.start
    pair = error.object[at : at + 2]
    name = error.encoding
    if name == "charmap":  # as codecs of one byte a character call themselves
        return (chr(pair[0]), at + 1) if pair[0] in _CONTROLS else None
    if name == "gb18030":
        return ("€", at + 1) if pair[0] == _EURO else None
    if name == "cp950":
        return _pair(pair, "big5hkscs", at)  # Hong Kong's characters
    if name == "euc_jp" and len(pair) == 2 and 0xA0 < min(pair) <= max(pair) < 0xFF:  # noqa: PLR2004 - its two halves
        row, cell = pair[0] - 0xA1, pair[1] - 0xA1
        lead = row // 2 + (0x81 if row < 62 else 0xC1)  # noqa: PLR2004 - where Shift_JIS leaves room for its half-width
        trail = cell + 0x9F if row % 2 else cell + 0x40 + (cell > 62)  # noqa: PLR2004 - it leaves out 0x7F
        return _pair(bytes((lead, trail)), "cp932", at)  # NEC's and IBM's rows, which it has at the same places
    return None


def _pair(pair: bytes, codec: str, at: int) -> tuple[str, int] | None:
    try:
        return pair.decode(codec), at + 2
    except UnicodeDecodeError:
        return None


codecs.register_error(LOSSY, _lossy)
codecs.register_error(STRICT, _strict)


_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROL: Final = regex(
    rb"[\x00-\x08\x0e-\x19\x1c-\x1f]|\x1a(?!\Z)"
)  # not tab, line ends, form feed, escape, which logs hold, nor the mark of the end in files of DOS
_NUL: Final = regex(rb"\x00")
"""The one character that no page holds."""
_DECLARED: Final = regex(rb"(?:coding|charset)[:=]\s*[\"']?([-\w.]{1,40})")
_DECLARED_WITHIN: Final = 1_024
_CODECS: Final = ("big5", "cp", "euc_", "gb", "iso8859", "johab", "koi8", "mac-", "shift_jis", "tis-620")
"""Families of text codecs; Python's others transform bytes, escape, or take quadratic time (punycode)."""
_HYPERTEXT: Final = frozenset({".html", ".htm", ".xhtml"})
_PROSE: Final = _HYPERTEXT | {".adoc", ".markdown", ".md", ".mdx", ".org", ".rst", ".tex", ".text", ".txt"}
_DOCUMENTS: Final = frozenset({".docx", ".epub", ".ipynb", ".pdf", ".pptx", ".xlsx"})


class ReadableText(msgspec.Struct, frozen=True):
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


Reader = Callable[[str, bytes], ReadableText | None]
"""The text that a person reads in a file of this name, as `readable`."""


def decode(data: bytes, binary: re.Pattern[bytes] = _CONTROL) -> str | None:
    """Bytes as text without byte order mark and with line ends as they are, or None where they are not text.

    UTF-8; UTF-16 or UTF-32 with a byte order mark; else the encoding that the first kilobyte declares, the way Python
    sources (PEP 263) and HTML pages do. An encoding is never guessed: a quotation in a wrong one would not be verbatim.
    Where `binary` matches, it is no text.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decoded(data[len(mark) :], encoding)
    if binary.search(data):
        return None
    text = _decoded(data, "utf-8")
    if text is not None:
        return text
    declared = _DECLARED.search(data, 0, _DECLARED_WITHIN)
    return _decoded(data, _encoding(declared[1].decode())) if declared else None


def readable(name: str, data: bytes) -> ReadableText | None:
    """Return what a person reads in a file of this name: the text of an HTML page, anything else as it is.

    None for what is not text, and for a page that nests its elements deeper than pages do.
    """
    is_page = suffix_of(name) in _HYPERTEXT
    text = decode(data, _NUL if is_page else _CONTROL)
    if text is None:
        return None
    return _page(text) if is_page else ReadableText(text, "")


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


def _page(text: str) -> ReadableText | None:
    from remit.files.hypertext import TooDeepError, page_text  # noqa: PLC0415 - libxml2 takes 20 ms to load

    try:
        page = page_text(text)
    except TooDeepError:
        return None
    return ReadableText(page.text, page.title, hidden=page.hidden)


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
