"""Text that a person decides by: whatever cannot be seen is shown as an escape. Every face's text passes here. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_PLAIN: Final = re.compile(r"[^\x20-\x7e\n]+")
_RUN: Final = 2
"""Combining marks in a row that letters of living scripts carry; more pile up over other lines."""
IGNORED: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Code points that fonts draw as nothing (Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties, the Hangul
fillers and the blank of Braille)."""
_OVERLAYS: Final = re.compile("[\u0334-\u0338\u20d2-\u20e0\u20e5\u20ea\u20eb\u20ec-\u20ef]")
"""Combining marks that strike a letter through or draw around it."""


def visible(text: str) -> str:
    """The text with everything that does not print, or prints as nothing, as an escape; line breaks stay."""
    return _PLAIN.sub(lambda match: _shown(match[0]), text)


def is_visible(text: str) -> bool:
    """Whether the text shows all that it holds."""
    return visible(text) == text


def _shown(piece: str) -> str:
    shown, run = [], 0
    for char in piece:
        run = run + 1 if unicodedata.combining(char) else 0
        hidden = not char.isprintable() or run > _RUN or IGNORED.match(char) or _OVERLAYS.match(char)
        shown.append(char.encode("unicode_escape").decode() if hidden else char)
    return "".join(shown)
