"""Suggestions for a misspelt name: the known names that are spelt like one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_CLOSE: Final = 0.68
"""The ratio to which names of tools have to be: with less, `shop.credit` is taken for `fs.edit`."""
_MAX_LENGTH: Final = 128
"""Characters of a name that are compared: the time grows with their square."""


def nearest(name: str, known: Iterable[str], *, most: int = 1) -> list[str]:
    """The closest of the known names, the best first; empty where none is close."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    return get_close_matches(name[:_MAX_LENGTH], sorted(set(known)), n=most, cutoff=_CLOSE if "." in name else 0.6)


def did_you_mean(name: str, known: Iterable[str], *, most: int = 1, around: str = "") -> str:
    """`Did you mean x or y?`, each name between `around`; empty where none is close."""
    names = [f"{around}{each}{around}" for each in nearest(name, known, most=most)]
    return f"Did you mean {' or '.join(filter(None, [', '.join(names[:-1]), *names[-1:]]))}?" if names else ""
