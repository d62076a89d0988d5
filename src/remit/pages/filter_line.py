"""The filter of the list of jobs as one line, such as `state:failed since:1d amount>100 lost card`. Pure.

The line and the fields of an address say the same; a page that is asked by a line continues with the fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import UsageError
from remit.redact import line
from remit.regex import regex

STATES: Final = ("pending", "running", "waiting", "completed", "failed", "cancelled")
AGES: Final = ("15m", "1h", "12h", "1d", "7d", "30d")
"""Ages that a line is completed with; any other number of s, m, h, d or w counts too."""
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGE: Final = regex(r"([1-9][0-9]{0,5})([smhdw])")
_WORD: Final = regex(r'(?:[^\s"]|"[^"]*"?)+')
_LABEL: Final = regex(r"[^\s<>=:]+(?:<=|>=|[<>=]).+")
_MOST: Final = 12
"""Completions that are offered."""
KEYS: Final = ("state", "recipe", "by", "since")


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs, as an address says it."""

    state: tuple[str, ...] = ()
    recipe: str = ""
    label: str = ""
    """`KEY=VALUE`, `KEY>=100`, `KEY<2026-12-01T00:00Z`; several with commas between them."""
    principal: str = ""
    """The principal that asked for it."""
    text: str = ""
    """Stands in what a JobSearch looks at."""
    within: str = ""
    """The age of the job, at most: a number and s, m, h, d or w."""


def fields_of(text: str) -> Filter:
    """The fields of a line; of a key that comes twice the last counts, but states are added up. Raises UsageError."""
    values: dict[str, str] = {}
    states, labels, words = list[str](), list[str](), list[str]()
    for word in _WORD.findall(text):
        key, colon, value = word.partition(":")
        value = value.replace('"', "")
        if key == "state" and colon:
            states += [state for state in value.split(",") if state]
        elif key in KEYS and colon:
            values[key] = value
        elif '"' not in word.partition("=")[0] and _LABEL.fullmatch(word):
            labels.append(word.replace('"', ""))
        else:
            words.append(word.replace('"', ""))
    if wrong := set(states) - set(STATES):
        raise UsageError(f"There is no state {line(min(wrong))!r:.60}.", code=Code.INVALID_INPUT)
    micros_of(values.get("since", ""))
    return Filter(
        state=tuple(dict.fromkeys(states)),
        recipe=values.get("recipe", ""),
        label=", ".join(labels),
        principal=values.get("by", ""),
        text=" ".join(words),
        within=values.get("since", ""),
    )


def line_of(fields: Filter) -> str:
    """The line that stands for fields."""
    keyed = (
        ("state", ",".join(fields.state)),
        ("recipe", fields.recipe),
        ("by", fields.principal),
        ("since", fields.within),
    )
    words = [f"{key}:{_quoted(value)}" for key, value in keyed if value]
    words += [_condition(label) for label in fields.label.split(", ") if label]
    return " ".join([*words, *filter(None, (_text(fields.text),))])


def micros_of(age: str) -> int:
    """Microseconds of an age such as `90m`; 0 for none. Raises UsageError."""
    if not age:
        return 0
    matched = _AGE.fullmatch(age)
    if matched is None:
        remedy = "Write a number and s, m, h, d or w: 12h."
        raise UsageError(f"{line(age)!r:.60} is no age.", code=Code.INVALID_INPUT, remedy=remedy)
    return int(matched[1]) * _UNITS[matched[2]] * SECOND


def completions(text: str, recipes: Sequence[str], labels: Iterable[str], people: Iterable[str]) -> tuple[str, ...]:
    """Whole lines that go on where this one ends: with a key, or with a value of the key that stands there."""
    before, space, last = text.rpartition(" ")
    key, colon, begun = last.partition(":")
    values = (
        {"state": STATES, "recipe": recipes, "by": sorted(people, key=str.casefold), "since": AGES}.get(key, ())
        if colon
        else ()
    )
    ends = [f"{key}:{_quoted(value)}" for value in values if value.startswith(begun)]
    if not colon:
        ends = [f"{known}:" for known in KEYS if known.startswith(last)]
        ends += [f"{label}=" for label in sorted(labels) if label.startswith(last)]
    return tuple(f"{before}{space}{end}" for end in ends[:_MOST])


def _condition(text: str) -> str:
    key, sign, value = re.split(r"(<=|>=|[<>=])", text, maxsplit=1)
    return f"{key}{sign}{_quoted(value)}"


def _quoted(text: str) -> str:
    return f'"{text}"' if re.search(r"\s", text) else text


def _text(text: str) -> str:
    """Words as they stand in a line; those that would count as a key or a label stand in quotes."""
    keyed = any(word.partition(":")[0] in KEYS or _LABEL.fullmatch(word) for word in text.split())
    return f'"{text}"' if keyed else text
