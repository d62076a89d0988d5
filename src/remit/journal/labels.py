"""Labels of jobs as people look for them: the type of each, and conditions on them. Pure.

A label is a text beside a stream's head. Its type follows from the text: a number as JSON writes it,
a moment as ISO 8601 writes it with its offset, or any other text. Numbers and moments are compared by size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal, NamedTuple, Self, cast

import msgspec

from remit.clock import instant
from remit.codes import Code
from remit.errors import UsageError
from remit.regex import regex

Label = str | int | float | bool | datetime
"""A value that code gives a label."""
Operator = Literal["<", "<=", ">", ">="]
KIND: Final = "job"
"""The kind of streams whose labels are indexed."""
OURS: Final = "remit."
"""The beginning of labels that Remit itself sets; they have indexes of their own."""
LONGEST_KEY: Final = 100
LONGEST_VALUE: Final = 1_000
LONGEST_TITLE: Final = 200
MOST: Final = 64
"""Labels that a run may set at once."""
MANY: Final = 5_000
"""Heads that fit a condition from which on a list looks at the newest heads, rather than at those that fit."""
_NUMBER: Final = regex(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_CONDITION: Final = regex(r"([^<>=]+)(<=|>=|<|>|=)(.*)", re.DOTALL)
_DIGIT: Final = regex(r"-?[0-9]")
_REMEDY: Final = "Write KEY=VALUE, or compare a number or a time: KEY>=100, KEY<2026-12-01T00:00:00Z."


class Measure(NamedTuple):
    """The size of a label that has one."""

    type: Literal["n", "t"]
    """A number, or a moment."""
    size: float
    """The number, or microseconds since the Unix epoch."""


class Bound(msgspec.Struct, frozen=True):
    """A condition on the size of a label."""

    key: str
    operator: Operator
    value: str

    type: Literal["n", "t"]
    size: float
    """As in a Measure."""

    @classmethod
    def of(cls, key: str, operator: Operator, value: str) -> Self:
        """Return the condition that a text says. Raises UsageError for a value without a size."""
        size = measure(value)
        if size is None:
            message = f"{key}{operator}{value}: it compares with no number or time"
            raise UsageError(message, code=Code.INVALID_INPUT, remedy=_REMEDY)
        return cls(key, operator, value, *size)

    def __str__(self) -> str:
        return f"{self.key}{self.operator}{self.value}"


def by_label(bounds: Iterable[Bound]) -> dict[tuple[str, str], list[Bound]]:
    """Put bounds on the sizes of one label together: many jobs fit each of two, and few lie between them."""
    groups = dict[tuple[str, str], list[Bound]]()
    for bound in bounds:
        groups.setdefault((bound.key, bound.type), []).append(bound)
    return groups


class Conditions(NamedTuple):
    """Conditions on labels: every one has to hold."""

    labels: dict[str, str]
    """Values by key, each the very text."""
    bounds: tuple[Bound, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """Return them as they are written."""
        return (*(f"{key}={value}" for key, value in self.labels.items()), *map(str, self.bounds))


def conditions(texts: Iterable[str]) -> Conditions:
    """Return the conditions in texts such as `team=pay`, `amount>=100` or `due<2026-12-01T00:00:00Z`.

    Raises UsageError (INVALID_INPUT).
    """
    labels, bounds = dict[str, str](), list[Bound]()
    for text in texts:
        matched = _CONDITION.fullmatch(text)
        if matched is None:
            raise UsageError(f"{text!r:.80} is not KEY=VALUE", code=Code.INVALID_INPUT, remedy=_REMEDY)
        key, operator, value = matched.groups()
        if operator != "=":
            bounds.append(Bound.of(key, cast("Operator", operator), value))
        else:
            labels[key] = value
    return Conditions(labels, tuple(bounds))


@lru_cache(maxsize=4_096)
def measure(text: str) -> Measure | None:
    """Return the size of a label; None for one that is only a text."""
    if not _DIGIT.match(text):
        return None
    if _NUMBER.fullmatch(text):
        size = float(text)
        return Measure("n", size) if math.isfinite(size) else None
    at = instant(text)
    return None if at is None else Measure("t", at)


def entries(labels: Mapping[str, str]) -> dict[str, tuple[str, str | None, float | None]]:
    """Return the labels that one looks for, with type and size where they have one."""
    return {key: (value, *(measure(value) or (None, None))) for key, value in labels.items() if is_indexed(key)}


def is_indexed(key: str) -> bool:
    """Return whether a label is looked for by an index of all: Remit's own have indexes of their own."""
    return not key.startswith(OURS) and len(key) <= LONGEST_KEY


def text_of(value: Label) -> str:
    """Return a label's value as the head keeps it. Raises UsageError for a value that cannot be one."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, bool | int | float) and math.isfinite(value):
        text = msgspec.json.encode(value).decode()
    elif isinstance(value, datetime) and value.tzinfo is not None:
        text = value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    else:
        remedy = "Give text, a finite number, a bool, or a datetime with a zone."
        raise _unfit(f"{value!r:.80} is no value of a label", remedy)
    if len(text) > LONGEST_VALUE:
        raise _unfit(f"a label has at most {LONGEST_VALUE} characters", "Record long values as results of tools.")
    return text


def relabeled(labels: Mapping[str, str], *changes: Mapping[str, Label | None]) -> dict[str, str]:
    """Return labels after changes of some of them, in order; None takes one away."""
    now = dict(labels)
    for key, value in (item for change in changes for item in change.items()):
        now.pop(key, None)
        now |= {} if value is None else {key: text_of(value)}
    return now


def check_key(key: str) -> str:
    """Return a key that a run may set. Raises UsageError."""
    if not 0 < len(key) <= LONGEST_KEY or key.startswith(OURS) or set(key) & set("<>=") or not key.isprintable():
        remedy = f"A key has 1 to {LONGEST_KEY} printable characters without <, > and =, and does not begin with {OURS}"
        raise _unfit(f"{key!r:.120} cannot be the key of a label", remedy)
    return key


def _unfit(message: str, remedy: str) -> UsageError:
    return UsageError(message, code=Code.INVALID_INPUT, remedy=remedy)
