"""Text for terminals: nothing in it can move the cursor, hide or reorder what a person reads."""

from __future__ import annotations

import unicodedata
from typing import Any, Final

from remit.redact.visible import visible

ELLIPSIS: Final = "…"


def clean(text: str) -> str:
    """The text with everything that does not print shown as an escape; line breaks stay."""
    return visible(text)


def one_line(text: str) -> str:
    """The text on one line."""
    return clean(" ".join(text.split()))


def short(name: str) -> str:
    """A step's name for people: a tool's own, without `tool.` before it."""
    return name.removeprefix("tool.")


def pretty(value: Any) -> str:
    """A JSON value on several lines."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def cells(text: str) -> int:
    """Columns of a terminal that a clean text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(char) for char in text)


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns, with an ellipsis where something is missing."""
    if cells(text) <= width:
        return text
    kept, room = [], max(0, width - 1)
    for char in text:
        room -= _cells(char)
        if room < 0:
            break
        kept.append(char)
    return "".join(kept).rstrip() + ELLIPSIS if width > 0 else ""


def fitting(text: str, width: int) -> int:
    """Return how many of its first characters fit into `width` columns, at least one."""
    taken = 0
    for number, char in enumerate(text):
        taken += _cells(char)
        if taken > width:
            return max(1, number)
    return len(text)


def pad(text: str, width: int) -> str:
    """The text filled up with spaces to `width` columns."""
    return text + " " * (width - cells(text))


def _cells(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number of things: `1 rule`, `2 rules`; of those that take no `s`, `plural`."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
