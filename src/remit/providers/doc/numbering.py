"""The numbers of lists in a Word document, which its text does not hold: contracts refer to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from remit.providers.doc.package import Target, number_of

_LEVELS: Final = 9
_ROMAN: Final = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
                 (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


class Place(NamedTuple):
    """A paragraph's place in a list."""

    list: str
    level: int


NO_PLACE: Final = Place("0", 0)


class Level(NamedTuple):
    """The numbering of one level of a list."""

    start: int = 1
    form: str = "bullet"
    text: str = ""
    """Such as `%1.%2.`, with the numbers of the levels."""


class Numbering(Target):
    """The lists of a document, and how far each is counted."""

    def __init__(self) -> None:
        super().__init__()
        self._abstract: dict[str, dict[int, Level]] = {}
        self._lists: dict[str, str] = {}
        self._starts: dict[str, dict[int, int]] = {}
        """First numbers of levels that a list begins again, by list."""
        self._counts: dict[str, list[int]] = {}
        self._begun: set[str] = set()
        self._open = self._list = ""
        self._at = 0

    def opened(self, name: str, values: Mapping[str, str]) -> None:
        value = values.get("val", "")
        match name:
            case "abstractNum":
                self._open, self._list = values.get("abstractNumId", ""), ""
            case "num":
                self._list, self._open = values.get("numId", ""), ""
            case "abstractNumId":
                self._lists[self._list] = value
            case "lvl" | "lvlOverride":
                self._at = level_of(values.get("ilvl", ""))
            case "startOverride":
                self._starts.setdefault(self._list, {})[self._at] = number_of(value)
            case "start" | "numFmt" | "lvlText" if self._open:
                levels = self._abstract.setdefault(self._open, {})
                known = levels.get(self._at, Level())
                fields: dict[str, Any] = {"numFmt": {"form": value}, "lvlText": {"text": value}}
                levels[self._at] = known._replace(**fields.get(name, {"start": number_of(value)}))
            case _:
                pass

    def next(self, place: Place) -> str:
        """Count one paragraph of a list on, and return its number; `-` of a bullet, empty of one without a sign."""
        abstract = self._lists.get(place.list)
        if place.list == "0":
            return ""
        levels = self._abstract.get(abstract or "", {})
        level = levels.get(place.level, Level())
        if level.form in {"bullet", "none"}:
            return "-" if level.form == "bullet" else ""
        counts = self._counts.setdefault(abstract or "", [levels.get(n, Level()).start - 1 for n in range(_LEVELS)])
        if place.list not in self._begun:
            self._begun.add(place.list)
            for at, start in self._starts.get(place.list, {}).items():
                counts[at] = start - 1
        counts[place.level] += 1
        for below in range(place.level + 1, _LEVELS):
            counts[below] = levels.get(below, Level()).start - 1
        text = level.text
        for at in range(place.level + 1):
            shown = max(counts[at], levels.get(at, Level()).start)
            text = text.replace(f"%{at + 1}", _shown(shown, levels.get(at, level).form))
        return text or _shown(counts[place.level], level.form)


def level_of(text: str) -> int:
    """Return the level of a list, counted from 0, that an attribute names."""
    return min(number_of(text), _LEVELS - 1)


def _shown(number: int, form: str) -> str:
    """Return a number as a list shows it."""
    if number < 1:
        return str(number)
    if form in {"lowerLetter", "upperLetter"}:
        letters = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 10)
        return letters if form == "lowerLetter" else letters.upper()
    if form in {"lowerRoman", "upperRoman"} and number < 4_000:  # noqa: PLR2004 - larger ones have no numeral
        numeral = ""
        for value, sign in _ROMAN:
            numeral += sign * (number // value)
            number %= value
        return numeral if form == "lowerRoman" else numeral.upper()
    return f"{number:02d}" if form == "decimalZero" else str(number)
