"""Finds a text among megabytes of texts in microseconds.

Texts are cut into overlapping blocks. For every word of a block a bit is set in the row of that word's bucket, so that
the blocks which hold all words of a text are one AND of a few rows; only there the text itself is looked for. Rows
grow with the texts, by about their size; there are never more than BUCKETS of them, however many words there are.

Texts are compared strictly where a match makes a call freer, widely where it only explains.

- *Strict*: composed characters (NFC); in JSON, the characters behind its escapes. Nothing else is taken for equal.
- *Wide*: also without percent-encoding and HTML's entities, without characters that show nothing, with compatibility
  forms (NFKC) as their plain ones; what is encoded twice is decoded twice. Case is the reader's to ignore (`folded`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final
from unicodedata import is_normalized, normalize

import msgspec

from remit.regex import regex

_ROUNDS: Final = 2
_ESCAPES: Final = regex(r'(?:\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt]))+')
_PERCENT: Final = regex(r"(?:%[0-9a-fA-F]{2})+")
_UNSEEN: Final = regex(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff]"
)


def strict(text: str, *, is_json: bool = False) -> str:
    """The text, in one of the several ways to write its characters."""
    if is_json:
        text = unescaped(text)
    return text if text.isascii() or is_normalized("NFC", text) else normalize("NFC", text)


def wide(text: str) -> str:
    """The text as someone may have meant it."""
    for _ in range(_ROUNDS):
        before = text
        text = unescaped(text)
        if "%" in text:
            text = _PERCENT.sub(_decode, text)
        if "&" in text:
            text = html.unescape(text)
        if not text.isascii():
            text = _UNSEEN.sub("", normalize("NFKC", text))
        if text == before:
            break
    return text


def folded(text: str) -> str:
    """The text in lower case, every character in its place."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text.replace("\u0130", "I").lower()


def unescaped(text: str) -> str:
    """The characters behind JSON's escapes; what is not an escape stays as it is."""
    return _ESCAPES.sub(_unescape, text) if "\\" in text else text


def _unescape(match: re.Match[str]) -> str:
    try:
        plain: str = msgspec.json.decode(f'"{match[0]}"', type=str)
    except msgspec.DecodeError:  # half of a pair of surrogates
        return match[0]
    return plain


def _decode(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("%", "")).decode(errors="replace")


BUCKETS: Final = 1 << 16
_BLOCK: Final = 8_192
_OVERLAP: Final = 512
_WORD: Final = regex(r"[0-9a-z]+|[^\x00-\x7f]")
"""A run of letters and digits; beyond ASCII each character, because not every script puts spaces between words."""
_ASIAN: Final = "\u2e80"
"""The first of the scripts that are written without spaces."""
_GLUE: Final = frozenset("-.+~%@/\\")
"""Characters that join two words into one name, between them."""
_SHORT: Final = 4
"""A text shorter than this must stand freer."""


class Needle(msgspec.Struct, frozen=True):
    """The text that is looked for, and how it must stand."""

    text: str
    any_case: bool = False
    loose: str = ""
    """Characters that may stand beside it although they join words."""


class TextHit(msgspec.Struct, frozen=True):
    """Where a text was found."""

    source: int
    """The number under which the text that holds it was added."""
    text: str
    """As it was added, in its own case."""
    start: int
    end: int


class TextIndex:
    """Texts, by their words."""

    def __init__(self) -> None:
        self._texts: list[tuple[int, str, str]] = []
        self._blocks: list[tuple[int, int]] = []
        self._rows: dict[int, int] = {}

    def add(self, text: str, source: int) -> None:
        """Take a text under a number; several may have the same."""
        lower = folded(text)
        place = len(self._texts)
        self._texts.append((source, text, text if lower == text else lower))
        rows = self._rows
        for start in range(0, len(lower), _BLOCK):
            bit = 1 << len(self._blocks)
            self._blocks.append((place, start))
            words = set(_WORD.findall(lower, start, start + _BLOCK + _OVERLAP))
            for bucket in {hash(word) % BUCKETS for word in words}:
                rows[bucket] = rows.get(bucket, 0) | bit

    def find(self, needle: Needle) -> Iterator[TextHit]:
        """Every place of a text that stands there whole, oldest first, and not as a part of a longer name."""
        lower = folded(needle.text)
        wanted = lower if needle.any_case else needle.text
        for place, start in self._candidates(lower):
            source, text, low = self._texts[place]
            read = low if needle.any_case else text
            at = read.find(wanted, start, start + _BLOCK + len(wanted) - 1) if wanted else -1
            while at >= 0:
                end = at + len(wanted)
                if stands(read, at, end, needle.loose):
                    yield TextHit(source, text, at, end)
                at = read.find(wanted, at + 1, start + _BLOCK + len(wanted) - 1)

    def _candidates(self, lower: str) -> Iterator[tuple[int, int]]:
        """Blocks that a text can begin in."""
        words = set(_WORD.findall(lower[:_OVERLAP]))
        if not words:  # signs alone
            yield from self._blocks
            return
        if len(lower) > _OVERLAP:
            words.discard(_WORD.findall(lower[:_OVERLAP])[-1])  # it may have been cut
        bits = (1 << len(self._blocks)) - 1
        for word in words:
            bits &= self._rows.get(hash(word) % BUCKETS, 0)
            if not bits:
                return
        while bits:
            low = bits & -bits
            bits ^= low
            yield self._blocks[low.bit_length() - 1]


def stands(text: str, start: int, end: int, loose: str = "") -> bool:
    """Say whether what lies between two places is a whole: no letter or digit continues it, nor a name it is a part of.

    A full stop at the end of a sentence joins nothing; one before another word does. What is shorter than four
    characters may not be the hour of a time either. Signs in `loose` join nothing.
    """
    glue = _GLUE.difference(loose)
    before, first = text[max(start - 1, 0) : start], text[start]
    if before in glue or (_wordy(before) and (_wordy(first) or first in glue)):
        return False
    last, after, beyond = text[end - 1], text[end : end + 1], text[end + 1 : end + 2]
    if _wordy(after):
        return not (_wordy(last) or last in glue)
    joins = after in glue or (after == ":" and end - start < _SHORT)
    return not (joins and _wordy(beyond))


def _wordy(char: str) -> bool:
    return char == "_" or (char.isalnum() and char < _ASIAN)
