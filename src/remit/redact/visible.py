"""Text that a person decides by: whatever cannot be seen is shown as an escape. Every face's text passes here. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Final

from remit.regex import regex

_PLAIN: Final = regex(r"[^\x20-\x7e\n]+")
_RUN: Final = 2
"""Combining marks in a row that letters of living scripts carry; more pile up over other lines."""
IGNORED: Final = regex(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Code points that fonts draw as nothing (Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties, the Hangul
fillers and the blank of Braille)."""
_OVERLAYS: Final = regex("[\u0334-\u0338\u20d2-\u20e0\u20e5\u20ea\u20eb\u20ec-\u20ef]")
"""Combining marks that strike a letter through or draw around it."""
_WORD: Final = regex(r"[^\W\d_]+")
_LATIN: Final = regex("[A-Za-z]")
_ALIKE: Final = regex(
    "[\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u04cf\u0501\u051b\u051d\u0410\u0412\u0415\u041a\u041c"
    "\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0405\u0406\u0408\u04c0\u03b9\u03bd\u03bf\u03c1\u03c5\u0391\u0392\u0395\u0396\u0397"
    "\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u0570\u0578\u057d\u0585]"
)
"""Letters of Cyrillic, Greek and Armenian that are drawn as one of Latin is (Unicode's confusables.txt)."""


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode()


def visible(text: str, shown: Callable[[str], str] = _escaped) -> str:
    """The text with everything that hides in it as `shown` writes it; line breaks stay.

    That is what does not print or prints as nothing, and in a word with letters of Latin those of another alphabet that
    look the same.
    """
    if not text.isascii():
        text = _WORD.sub(lambda word: _told_apart(word[0], shown), text)
    return _PLAIN.sub(lambda match: _shown(match[0], shown), text)


def _told_apart(word: str, shown: Callable[[str], str]) -> str:
    if word.isascii() or not _LATIN.search(word):
        return word
    return _ALIKE.sub(lambda match: shown(match[0]), word)


def _shown(piece: str, show: Callable[[str], str]) -> str:
    shown, run = [], 0
    for char in piece:
        run = run + 1 if unicodedata.combining(char) else 0
        hidden = not char.isprintable() or run > _RUN or IGNORED.match(char) or _OVERLAYS.match(char)
        shown.append(show(char) if hidden else char)
    return "".join(shown)
