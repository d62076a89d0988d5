"""A value on a page: whole if it is small, else its beginning, its size, and a file to keep."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from remit.canonical import sha256
from remit.pages.text import written

INLINE: Final = 8_192
"""Characters that a page shows of a value; the rest is in the file."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What a page shows of a value."""

    text: str
    whole: bool
    size: int
    """Characters in all."""
    digest: str


def shown(value: Any, most: int = INLINE) -> Shown:
    """A value as text; a text stands for itself."""
    text = value if isinstance(value, str) else written(value)
    return Shown(
        text=text[:most], whole=len(text) <= most, size=len(text), digest=sha256(text.encode("utf-8", "replace"))
    )
