"""What may give a secret away: parts of names, and parts of tokens. Most texts hold none, which is quick to see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from remit.redact.shapes import SHAPES, Shape

_KEYS: Final = ("api", "access", "private", "signing", "encryption", "account", "shared")
NAMES: Final = (
    *("authorization", "cookie", "token", "password", "passwd", "passphrase", "passcode", "pwd", "secret"),
    *("credential", "jwt", "bearer"),
    *(f"{of}{between}key" for of in _KEYS for between in ("", "_", "-", " ")),
)
"""Parts of names that hold secrets, in lower case."""
_WORDS: Final = tuple(name for name in NAMES if not name.endswith("key"))
_KEY_NAMES: Final = tuple(name for name in NAMES if name.endswith("key"))
_ESCAPES: Final = ("\\u", "\\/")
"""In which any clue may be written."""


class Clues(NamedTuple):
    """Those that a text holds."""

    names: tuple[str, ...]
    shapes: tuple[Shape, ...]

    def within(self, text: str) -> bool:
        """Whether this part of the text may hold one of them."""
        return (
            names_secret(text, self.names)
            or any(shape.clue in text for shape in self.shapes)
            or any(escape in text for escape in _ESCAPES)
        )


def clues_of(text: str) -> Clues | None:
    """What the text holds; None where it holds nothing."""
    if any(escape in text for escape in _ESCAPES):
        return Clues(NAMES, SHAPES)
    lowered = lower(text)
    names = tuple([name for name in _WORDS if name in lowered])
    if "key" in lowered:  # most texts hold none, and need not be searched for each
        names += tuple([name for name in _KEY_NAMES if name in lowered])
    shapes = tuple([shape for shape in SHAPES if shape.clue in text])
    return Clues(names, shapes) if names or shapes else None


def names_secret(name: str, names: Iterable[str] = NAMES) -> bool:
    """Whether one of the parts of names is in it."""
    lowered = lower(name)
    return any(part in lowered for part in names)


def lower(text: str) -> str:
    """The text in lower case, of the same length."""
    return text.replace("İ", "I").lower()
