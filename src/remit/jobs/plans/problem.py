"""Problems of a plan, and where: every problem is collected and points into the file.

A problem reads `file:line:column path: what was found, expected what`, so that an editor can jump to it.

Whether a document is JSON, and small enough to look at: checked first, and without recursion.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from remit.canonical import BEYOND, MAX_DIGITS
from remit.codes import Code
from remit.errors import PlanError
from remit.nearest import nearest
from remit.regex import regex

Path = tuple[str | int, ...]
"""The way to a value from the document's root: keys and positions."""
Place = tuple[int, int]
"""Line and column, both from 1; (0, 0) where there is no text to point into."""

NOWHERE: Final[Place] = (0, 0)
_LONGEST: Final = 64
"""Characters of one key or name in a message."""
_NAMED: Final = 20
"""Names that a message lists."""
_SHOWN: Final = 50
"""Problems that the error's message lists; all of them are in `problems`."""


class PlanProblem(msgspec.Struct, frozen=True):
    """One thing to correct."""

    line: int
    column: int
    path: str
    """Such as `nodes[2].args.folder`; empty for the document itself."""
    message: str
    """The text found."""
    expected: str
    """The text that would have been right, with the name that was probably meant."""

    def at(self, file: str) -> str:
        """The problem as one line."""
        place = f"{file}:{self.line}:{self.column}" if self.line else file
        where = f"{place} {self.path}" if self.path else place
        return f"{where}: {self.message}, expected {self.expected}"


_CORRECT: Final = "Correct the plan; nothing has been recorded or run."


class InvalidPlanError(PlanError):
    """A plan cannot be read or is not valid; carries every problem that was found, in the order of the file."""

    def __init__(
        self, problems: Iterable[PlanProblem], file: str, *, code: Code = Code.PLAN_INVALID, remedy: str = _CORRECT
    ) -> None:
        self.problems = sorted(problems, key=lambda problem: (problem.line, problem.column))
        self.file = file
        lines = [problem.at(file) for problem in self.problems[:_SHOWN]]
        if len(self.problems) > _SHOWN:
            lines.append(f"… and {len(self.problems) - _SHOWN} more")
        super().__init__("\n".join(lines), code=code, remedy=remedy)


class Marks(msgspec.Struct, frozen=True):
    """Where the keys and values of a document stand in its text."""

    values: Mapping[Path, Place] = msgspec.field(default_factory=dict)
    keys: Mapping[Path, Place] = msgspec.field(default_factory=dict)

    def of(self, path: Path, *, key: bool = False) -> Place:
        """The place of a value, or of its key; of the nearest part around it where it has none itself."""
        if key and path in self.keys:
            return self.keys[path]
        for length in range(len(path), -1, -1):
            if path[:length] in self.values:
                return self.values[path[:length]]
        return NOWHERE


class Findings:
    """The problems found so far, each put where it stands in the text."""

    def __init__(self, marks: Marks) -> None:
        self.marks = marks
        self.problems: list[PlanProblem] = []

    def near(self, name: str, names: Sequence[str]) -> str:
        """As `near`, but nothing once there are more problems than the message shows: looking takes its time."""
        return near(name, names) if len(self.problems) < _SHOWN else ""

    def add(self, path: Path, message: str, expected: str, *, key: bool = False) -> None:
        """Keep a problem with the value at a path, or with its key."""
        line, column = self.marks.of(path, key=key)
        self.problems.append(PlanProblem(line, column, show_path(path), message, expected))


def show_path(path: Path) -> str:
    """A path as people read it: `nodes[2].args.folder`."""
    shown = "".join(f"[{step}]" if isinstance(step, int) else f".{cut(step)}" for step in path)
    return shown.removeprefix(".")


def cut(text: str) -> str:
    """The text, or the beginning of a long one."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def one_of(names: Sequence[str]) -> str:
    """`one of a, b, c`, with the first of very many."""
    more = ", …" if len(names) > _NAMED else ""
    return f"one of {', '.join(map(cut, names[:_NAMED]))}{more}"


def near(name: str, names: Sequence[str]) -> str:
    """`; did you mean …?` for a name that is close to one of `names`, else nothing."""
    return "".join(f"; did you mean `{best}`?" for best in nearest(name, names))


MAX_DEPTH: Final = 50
"""Objects and lists that may lie within one another."""
MAX_VALUES: Final = 50_000
"""Values in a document, objects and lists among them."""


def check_shape(document: Any, findings: Findings) -> None:
    """Add a problem for everything that JSON, its canonical form or a plan cannot hold."""
    waiting: list[tuple[Path, Any]] = [((), document)]
    count = 0
    while waiting:
        path, value = waiting.pop()
        count += 1
        if count > MAX_VALUES:
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
FORM: Final = regex("".join(rf"(?:([0-9]{{1,12}}){unit})?" for unit, _ in _UNITS))
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
