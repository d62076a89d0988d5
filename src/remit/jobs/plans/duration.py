"""Durations as people write them in plans: `500ms`, `10s`, `1h30m`, `2d`."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
"""Unit and its milliseconds, the largest first, as they must follow each other."""
FORM: Final = re.compile("".join(rf"(?:([0-9]{{1,12}}){unit})?" for unit, _ in _UNITS))
_LONGEST_MS: Final = 10 * 366 * 86_400_000

EXPECTED: Final = "a duration such as 500ms, 10s or 1h30m"


def parse_duration(text: str) -> int | None:
    """Milliseconds; None where the text is no duration, is nothing, or is longer than ten years."""
    match = FORM.fullmatch(text)
    if match is None:
        return None
    amounts = (int(amount or 0) for amount in match.groups())
    total = sum(amount * size for amount, (_, size) in zip(amounts, _UNITS, strict=True))
    return total if 0 < total <= _LONGEST_MS else None


def show_duration(millis: int) -> str:
    """The shortest text for so many milliseconds: the inverse of `parse_duration`."""
    shown = []
    for unit, size in _UNITS:
        amount, millis = divmod(millis, size)
        if amount:
            shown.append(f"{amount}{unit}")
    return "".join(shown)
