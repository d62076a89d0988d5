"""The operators: each with its operand becomes a function from a value to whether it holds.

In a rule that loosens, text is compared in its `strict` reading; in one that restricts, in every `wide` one, and where
such a text starts from a place that policy does not know, a relative pattern is tried from each of its folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from remit.policy import globs, readings

Verdict = bool | None
"""Holds, does not hold, unknown."""

Check = Callable[[Any], Verdict]

PRESENCE: Final = frozenset({"absent", "present"})
"""Operators about a place, not about the value there."""
OPTIONAL: Final = "optional"
"""Says that a constraint holds where there is no value."""

_Covers = Callable[[str], object]
_KINDS: Final[dict[type, str]] = {
    str: "text", bool: "boolean", int: "number", float: "number", list: "list", dict: "table"
}  # fmt: skip


def check_of(name: str, operand: Any, *, wide: bool) -> Check:
    """The function for an operator, other than those of `PRESENCE`."""
    if name == "equals":
        return _one_of([operand], wide=wide)
    if name == "in":
        return _one_of(operand, wide=wide)
    if name == "not_in":  # what may be among them is not certainly none of them, so the reading is the other one
        among = _one_of(operand, wide=not wide)
        return lambda value: None if (verdict := among(value)) is None else not verdict
    if name in {"glob", "prefix"}:
        return _text(name, operand, wide=wide)
    return _MEASURES[name](operand)


def takes_lists(name: str, operand: Any) -> bool:
    """Return whether an operator looks at a list as a whole, and not at each of its items."""
    if name in {"equals", "in", "not_in"}:
        return any(isinstance(value, list) for value in ([operand] if name == "equals" else operand))
    return name == "max_length"


def every(verdicts: Iterable[Verdict]) -> Verdict:
    """Return whether all hold."""
    result: Verdict = True
    for verdict in verdicts:
        if verdict is False:
            return False
        if verdict is None:
            result = None
    return result


def some(verdicts: Iterable[Verdict]) -> Verdict:
    """Return whether at least one holds."""
    result: Verdict = False
    for verdict in verdicts:
        if verdict:
            return True
        if verdict is None:
            result = None
    return result


def _one_of(constants: list[Any], *, wide: bool) -> Check:
    texts = [constant for constant in constants if isinstance(constant, str)]
    text = _text("in", texts, wide=wide) if texts else None

    def check(value: Any) -> Verdict:
        kind = _kind(value)
        if kind == "text":
            return text(value) if text else None
        alike = [constant for constant in constants if _kind(constant) == kind]
        return any(_same(constant, value) for constant in alike) if alike else None

    return check


def _text(name: str, patterns: list[str], *, wide: bool) -> Check:
    if wide:
        return _wide(name, [readings.fold(pattern) for pattern in patterns])
    if name == "in":
        exact = frozenset(patterns)
        return lambda value: value in exact
    return _strict(_covers(name, patterns, wide=False), name, patterns)


def _strict(covers: _Covers, name: str, patterns: list[str]) -> Check:
    """Compare the only reading there is; a pattern without a root of its own covers nothing that has one."""
    rooted = [pattern for pattern in patterns if readings.starts_elsewhere(pattern)]
    elsewhere = _covers(name, rooted, wide=False)

    def check(value: Any) -> Verdict:
        form = readings.strict(value) if isinstance(value, str) else None
        if form is None:
            return None
        return bool(elsewhere(form) if readings.starts_elsewhere(form) else covers(form))

    return check


def _wide(name: str, patterns: list[str]) -> Check:
    """Compare every reading."""
    covers = _covers(name, patterns, wide=True)
    anywhere = [form for pattern in patterns if (form := _Anywhere(name, pattern)).matters]

    def check(value: Any) -> Verdict:
        if isinstance(value, str) and readings.is_plain(value):
            return bool(covers(value.lower()))
        forms = readings.wide(value) if isinstance(value, str) else None
        if forms is None:
            return None
        for form in forms.texts:
            if covers(form):
                return True
        return some(pattern.covers(form) for form in forms.rooted for pattern in anywhere) if anywhere else False

    return check


class _Anywhere:
    """A pattern, for texts that start from a place policy does not know."""

    def __init__(self, name: str, pattern: str) -> None:
        self._root = pattern[0] if pattern[:1] in {"/", "~"} else ""
        start, _, rest = pattern.partition("/")
        core = rest if self._root else "" if ":" in start else pattern
        self.matters = bool(self._root or core)
        self._below: _Covers = _below(name, core) if core else _nothing

    def covers(self, text: str) -> Verdict:
        """Return whether the text may be what the pattern means."""
        if self._root == "/" and text.startswith("/"):
            return False  # both from the same root, and compared already
        if self._below(text):
            return True
        # Where a climb or a home ends is unknown, so it may end in any place that is named from another root.
        lost = self._root and text.startswith(("..", "~")) and not text.startswith(self._root)
        return None if lost else False


def _covers(name: str, patterns: list[str], *, wide: bool) -> _Covers:
    """Return whether a text is what one of the patterns says."""
    if not patterns:
        return _nothing
    if name == "glob":
        return globs.path_matcher(patterns, wide=wide)
    if name == "prefix":
        beginnings = tuple(patterns)
        return lambda text: text.startswith(beginnings)
    return frozenset(patterns).__contains__


def _below(name: str, core: str) -> _Covers:
    """Return whether a text is what a pattern says, seen from one of its folders."""
    if name == "glob":
        return globs.path_matcher(["**/" + core], wide=True)
    step = "/" + core
    return (lambda text: step in text) if name == "prefix" else (lambda text: text.endswith(step))


def _nothing(_text: str) -> bool:
    return False


def _max(limit: float) -> Check:
    return lambda value: value <= limit if _is_number(value) else None


def _min(limit: float) -> Check:
    return lambda value: value >= limit if _is_number(value) else None


def _max_length(limit: int) -> Check:
    return lambda value: len(value) <= limit if isinstance(value, (str, list)) else None


def _same(left: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; true is not 1, but 1 is 1.0."""
    if _kind(left) != _kind(other):
        return False
    if isinstance(left, dict):
        return left.keys() == other.keys() and all(_same(value, other[name]) for name, value in left.items())
    if isinstance(left, list):
        return len(left) == len(other) and all(map(_same, left, other))
    return bool(left == other)


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "other")


def _is_number(value: Any) -> bool:
    return _kind(value) == "number" and value == value  # noqa: PLR0124 - NaN compares to nothing, itself included


_MEASURES: Final[dict[str, Callable[[Any], Check]]] = {"max": _max, "max_length": _max_length, "min": _min}
