"""Whether a document is JSON, and small enough to look at: checked first, and without recursion."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from remit.canonical import BEYOND, MAX_DIGITS
from remit.jobs.plans.problem import Findings, Path, cut

MAX_DEPTH: Final = 50
"""Objects and lists that may lie within one another."""
MAX_VALUES: Final = 50_000
"""Values in a document, objects and lists among them."""


def check_shape(document: Any, findings: Findings) -> None:
    """Add a problem for everything that JSON, its canonical form or a plan cannot hold."""
    waiting: list[tuple[Path, Any]] = [((), document)]
    seen = 0
    while waiting:
        path, value = waiting.pop()
        seen += 1
        if seen > MAX_VALUES:
            findings.add((), f"found more than {MAX_VALUES:,} values", "a smaller plan")
            return
        if isinstance(value, dict | list):
            if len(path) >= MAX_DEPTH:
                findings.add(path, f"found more than {MAX_DEPTH} levels", "fewer objects and lists within one another")
                continue
            waiting.extend(_parts(path, value, findings))
        elif problem := _fault(value):
            findings.add(path, *problem)


def _parts(path: Path, value: dict[Any, Any] | list[Any], findings: Findings) -> list[tuple[Path, Any]]:
    """Return what an object or a list holds."""
    if isinstance(value, list):
        return [((*path, index), item) for index, item in enumerate(value)]
    parts: list[tuple[Path, Any]] = []
    for key, item in value.items():
        if not isinstance(key, str) or _fault(key):
            findings.add(path, f"found the key {cut(ascii(key))}", "a key that is a plain text")
            continue
        parts.append(((*path, key), item))
        if "${" in key:
            findings.add((*path, key), "found a reference in a key", "references in values only", key=True)
    return parts


def _fault(value: Any) -> tuple[str, str] | None:
    """Return what is wrong with a value that has no parts, and what was expected."""
    match value:
        case None | bool():
            return None
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:
                return "found a text with half of a surrogate pair", "whole characters"
            return None
        case int():
            long = f"found a whole number of more than {MAX_DIGITS} digits"
            return None if abs(value) < BEYOND else (long, "a text: quote it")
        case float():
            return None if math.isfinite(value) else (f"found the number {value}", "a finite number")
        case _:
            return f"found a {type(value).__name__}", "text, number, true, false, null, list or object"


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
