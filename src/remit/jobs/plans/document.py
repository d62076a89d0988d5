"""A document put together from its parts, one by one, with the place of each. The bounds hold while it is read.

JSON with places (RFC 8259). YAML readers know almost all of it, but not an emoji written as a pair of escapes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, Final

import msgspec

from remit.canonical import BEYOND, MAX_DIGITS
from remit.jobs.plans.problem import MAX_DEPTH, MAX_VALUES, Marks, Path, Place, PlanProblem, cut, show_path
from remit.regex import regex

_INTEGER: Final = regex(r"-?(?:0|[1-9][0-9]*)")
_DECIMAL: Final = regex(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class UnreadablePlanError(Exception):
    """The text cannot be read on; carries the problem."""

    def __init__(self, place: Place, message: str, expected: str) -> None:
        self.problem = PlanProblem(*place, "", message, expected)
        super().__init__(message)


class PlanDocument:
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
            raise UnreadablePlanError(place, "found an object or a list as a key", "a key that is a text")
        path = self._put(container, place)
        if len(path) >= MAX_DEPTH:
            raise UnreadablePlanError(place, f"found more than {MAX_DEPTH} levels", "less nesting")
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
            raise UnreadablePlanError(place, f"found more than {MAX_VALUES:,} values", "a smaller plan")
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


_SPACE: Final = regex(r"[ \t\r\n]*")
_TOKEN: Final = regex(r'[{}\[\],:]|"(?:[^"\\\x00-\x1f]|\\.)*"|[^ \t\r\n{}\[\],:"]+')
_WORDS: Final = {"true": True, "false": False, "null": None}
_CLOSES: Final = {"{": "}", "[": "]"}
_VALUE: Final = "a value"
_KEY: Final = "a key in quotes"
_COLON: Final = "`:`"
_COMMA: Final = "`,`"
_END: Final = "nothing more"
_SHOWN: Final = 40
"""Characters of a word that a message shows."""


def read_json(text: str, document: PlanDocument) -> None:
    """Put a JSON text's parts into a document. Raises UnreadableError."""
    _Reader(text, document).read()


class _Reader:
    """One pass over one text."""

    def __init__(self, text: str, document: PlanDocument) -> None:
        self.text = text
        self.document = document
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.open: list[str] = []
        self.due = _VALUE
        self.may_close = False
        """Whether the innermost object or list has only just begun."""

    def read(self) -> None:
        """Take word after word."""
        at = self.skip(0)
        while at < len(self.text):
            word = _TOKEN.match(self.text, at)
            if word is None:
                raise UnreadablePlanError(self.place(at), "found a text without its closing quote", self.due)
            self.take(word[0], at)
            at = self.skip(word.end())
        if self.due != _END:
            expected = f"{self.due} or `{_CLOSES[self.open[-1]]}`" if self.open else self.due
            raise UnreadablePlanError(self.place(at), "found the end of the text", expected)

    def skip(self, at: int) -> int:
        """The next position that holds no space."""
        space = _SPACE.match(self.text, at)
        return space.end() if space else at

    def place(self, at: int) -> Place:
        """Line and column of a position."""
        line = bisect_right(self.lines, at)
        return line, at - self.lines[line - 1] + 1

    def take(self, word: str, at: int) -> None:
        """One word: it has to be what is due."""
        if self.open and word == _CLOSES[self.open[-1]] and (self.may_close or self.due == _COMMA):
            self.open.pop()
            self.document.close()
            self.end_value()
            return
        self.may_close = False
        if self.due in {_COLON, _COMMA} and word == self.due[1]:
            self.due = _KEY if word == "," and self.open[-1] == "{" else _VALUE
        elif self.due == _KEY and word[0] == '"':
            self.document.scalar(self.decoded(word, at), None, self.place(at))
            self.due = _COLON
        elif self.due == _VALUE and word in _CLOSES:
            self.document.open({} if word == "{" else [], self.place(at))
            self.open.append(word)
            self.due, self.may_close = (_KEY if word == "{" else _VALUE), True
        elif self.due == _VALUE:
            self.document.scalar("", self.decoded(word, at), self.place(at))
            self.end_value()
        else:
            raise UnreadablePlanError(self.place(at), f"found `{word[:_SHOWN]}`", self.due)

    def end_value(self) -> None:
        """A value is complete."""
        self.due = _COMMA if self.open else _END

    def decoded(self, word: str, at: int) -> Any:
        """Return what a word stands for."""
        if word[0] == '"':
            try:
                return msgspec.json.decode(word)
            except ValueError as error:
                raise UnreadablePlanError(
                    self.place(at), f"found a text that is not JSON's: {error}", self.due
                ) from error
        value = _WORDS.get(word, number(word))
        if value is None and word != "null":
            raise UnreadablePlanError(self.place(at), f"found `{word[:_SHOWN]}`", self.due)
        return value
