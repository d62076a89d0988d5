"""A document put together from its parts, one by one, with the place of each. The bounds hold while it is read."""

from __future__ import annotations

import re
from typing import Any, Final

from remit.canonical import BEYOND, MAX_DIGITS
from remit.jobs.plans.problem import Marks, Path, Place, PlanProblem, cut, show_path
from remit.jobs.plans.shape import MAX_DEPTH, MAX_VALUES

_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class UnreadableError(Exception):
    """The text cannot be read on; carries the problem."""

    def __init__(self, place: Place, message: str, expected: str) -> None:
        self.problem = PlanProblem(*place, "", message, expected)
        super().__init__(message)


class Document:
    """Takes a document's parts in the order of the text."""

    def __init__(self) -> None:
        self.value: Any = None
        self.problems: list[PlanProblem] = []
        """Problems of the text though it can be read on."""
        self._values: dict[Path, Place] = {}
        self._keys: dict[Path, Place] = {}
        self.marks = Marks(self._values, self._keys)
        self._open: list[tuple[Path, dict[str, Any] | list[Any]]] = []
        self._key: str | None = None
        """The key whose value comes next."""

    @property
    def empty(self) -> bool:
        """Return whether nothing has come."""
        return not self._values

    def open(self, container: dict[str, Any] | list[Any], place: Place) -> None:
        """An object or a list begins. Raises UnreadableError."""
        if self._wants_key():
            raise UnreadableError(place, "found an object or a list as a key", "a key that is a text")
        path = self._put(container, place)
        if len(path) >= MAX_DEPTH:
            raise UnreadableError(place, f"found more than {MAX_DEPTH} levels", "less nesting")
        self._open.append((path, container))

    def close(self) -> None:
        """The innermost object or list ends."""
        self._open.pop()

    def scalar(self, text: str, value: Any, place: Place) -> None:
        """A value without parts; where a key is due it is the `text`, whatever the `value`. Raises UnreadableError."""
        if self._wants_key():
            self._begin_pair(text, place)
        else:
            self._put(value, place)

    def note(self, place: Place, message: str, expected: str) -> None:
        """Keep a problem after which the text can be read on."""
        path, _ = self._open[-1] if self._open else ((), None)
        self.problems.append(PlanProblem(*place, show_path(path), message, expected))

    def _wants_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1][1], dict) and self._key is None

    def _begin_pair(self, key: str, place: Place) -> None:
        path, _ = self._open[-1]
        first = self._keys.setdefault((*path, key), place)
        if first is not place:
            self.note(place, f"found the key `{cut(key)}` twice, first in line {first[0]}", "each key once")
        self._key = key

    def _put(self, value: Any, place: Place) -> Path:
        """Add a value where it belongs, and give its path."""
        if len(self._values) >= MAX_VALUES:
            raise UnreadableError(place, f"found more than {MAX_VALUES:,} values", "a smaller plan")
        path: Path = ()
        if not self._open:
            self.value = value
        else:
            path, container = self._open[-1]
            if isinstance(container, list):
                path = (*path, len(container))
                container.append(value)
            elif self._key is not None:
                path = (*path, self._key)
                container[self._key] = value
                self._key = None
        self._values[path] = place
        return path


def number(text: str) -> int | float | None:
    """The number that a text is in JSON's grammar; None for any other text."""
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= MAX_DIGITS else BEYOND
    return float(text) if _DECIMAL.fullmatch(text) else None
