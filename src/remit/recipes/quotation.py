"""Whether a text holds a quotation word for word. Pure.

Only the forms of quotation marks and the lengths of blanks may differ. Anything more tolerant also accepts a quotation
with another number or without its "not".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final, NamedTuple

_FORMS: Final = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b\u2032`", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"')
)
_AROUND: Final = "'\"\u2026 "
_FEWEST: Final = 12
"""Characters of a quotation that says something; of a script without blanks half as many."""
_NUMBER: Final = re.compile(r"\d(?:[\d.,]*\d)?")
_WITHIN: Final = re.compile(r"[.,]\d")
"""The rest of a number."""


class Span(NamedTuple):
    """Where a quotation stands."""

    start: int
    end: int


class Text:
    """A text in which quotations are looked for, in time linear in its length."""

    def __init__(self, text: str) -> None:
        words = list(re.finditer(r"\S+", text))
        self._folded = " ".join(word[0] for word in words).translate(_FORMS)
        self._starts = [word.start() for word in words]
        self._places = [0]
        """Where each word begins in the folded text."""
        for word in words:
            self._places.append(self._places[-1] + len(word[0]) + 1)

    def find(self, quotation: str) -> Span | None:
        """Return where the text has a quotation as whole words; None: nowhere, or the quotation says too little."""
        wanted = " ".join(quotation.split()).translate(_FORMS).strip(_AROUND)
        if len(wanted) < (_FEWEST if wanted.isascii() else _FEWEST // 2):
            return None
        start = self._folded.find(wanted)
        while start >= 0:
            end = start + len(wanted)
            if not self._is_cut(start, end):
                return Span(self._place(start), self._place(end - 1) + 1)
            start = self._folded.find(wanted, start + 1)
        return None

    def _place(self, folded: int) -> int:
        word = bisect_right(self._places, folded) - 1
        return self._starts[word] + folded - self._places[word]

    def _is_cut(self, start: int, end: int) -> bool:
        """Whether a word or a number goes on beside what was found."""
        text = self._folded
        before, after = text[max(0, start - 2) : start], text[end : end + 2]
        if _is_word(text[start]) and before and (_is_word(before[-1]) or _WITHIN.match(before[::-1])):
            return True
        return _is_word(text[end - 1]) and bool(after) and (_is_word(after[0]) or bool(_WITHIN.match(after)))


def numbers(text: str) -> frozenset[str]:
    """Return the numbers in a text, as they are written."""
    return frozenset(_NUMBER.findall(text))


def _is_word(character: str) -> bool:
    """Whether a word goes on at a character; scripts without blanks have no ends of words."""
    return character.isascii() and character.isalnum()
