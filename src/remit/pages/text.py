"""The form of foreign values in pages: nothing hides in it, and nothing in it turns a line around."""

from __future__ import annotations

import json
import re
from datetime import datetime, tzinfo
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from remit.canonical import sha256
from remit.clock import SECOND, isoformat
from remit.redact import preview_of
from remit.redact.visible import visible as visible_as

_NUMBER: Final = re.compile("⟨U\\+[0-9A-F]{4,6}⟩")


def visible(text: str) -> str:
    """The text with each character that cannot be seen, or passes for another one, as ⟨U+202E⟩."""
    return visible_as(text, _shown)


def restored(text: str, before: str) -> str:
    """A text that someone edited as it was shown: the characters that `before` has, where their numbers stand."""
    numbers = {_shown(char): char for char in before if not char.isascii() or not char.isprintable()}
    return _NUMBER.sub(lambda found: found[0] if found[0] in before else numbers.get(found[0], found[0]), text)


def brief(value: Any) -> str:
    """A JSON value in a line of a list: cut, and without what looks like a secret; its own page shows it whole."""
    return preview_of(value)


def written(value: Any) -> str:
    """A JSON value over several lines, as it stands in the record: every digit of a number, every character."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def pieces(text: str) -> list[tuple[str, bool]]:
    """A sentence cut at its backticks; each piece with whether it is a command. Whole if they do not come in pairs."""
    found = text.split("`")
    if len(found) % 2 == 0:
        return [(text, False)]
    return [(piece, number % 2 == 1) for number, piece in enumerate(found) if piece]


def clock_time(micros: int, zone: tzinfo) -> str:
    """The time of day."""
    return _at(micros, zone).strftime("%H:%M:%S")


def moment(micros: int, zone: tzinfo, now: int) -> str:
    """An instant: its time of day, with the date unless that is today's."""
    at = _at(micros, zone)
    return at.strftime("%H:%M:%S" if at.date() == _at(now, zone).date() else "%Y-%m-%d %H:%M")


def exact(micros: int, zone: tzinfo) -> str:
    """An instant with everything that is known of it."""
    at = _at(micros, zone)
    return f"{at:%Y-%m-%d %H:%M:%S.%f} {at.tzname()} ({isoformat(micros)})"


def grouped(number: int) -> str:
    """A number with its thousands apart."""
    return f"{number:,}"


def dollars(amount: float) -> str:
    """An estimate in US dollars: cents, and more digits of what is less than a dollar."""
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}"


def link(path: str, *names: str, **query: object) -> str:
    """The address of a page: `{}` in `path` stand for `names`, and what is empty is left out of the query.

    The one place where addresses are made, so that a slash in a name and a filter over pages stay what they are.
    """
    filled = path.format(*(quote(name, safe="") for name in names))
    pairs = [(key.rstrip("_"), value) for key, given in query.items() for value in _each(given)]
    return f"{filled}?{urlencode(pairs)}" if pairs else filled


def _each(given: object) -> list[str]:
    values = given if isinstance(given, list | tuple) else [given]
    return [str(value) for value in values if value not in {"", None, False}]


def _at(micros: int, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(micros / SECOND, zone)


def _shown(char: str) -> str:
    return char if char == "\t" else f"⟨U+{ord(char):04X}⟩"


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
