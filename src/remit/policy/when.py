"""The `when` table of a rule, from TOML to constraints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from remit.canonical import digest
from remit.errors import NotCanonicalError
from remit.policy import globs
from remit.policy.constraint import Constraint, Operator
from remit.policy.table import Table, closest, describe

OPERATORS: Final = (
    "absent", "equals", "glob", "in", "max", "max_length", "min", "not_in", "optional", "prefix", "present",
)  # fmt: skip


def parse_when(table: Table, key: str = "when") -> tuple[Constraint, ...]:
    """The constraints below `when`, or `unless`, sorted by path. Raises PolicyError."""
    raw = table.raw(key)
    if raw is None:
        return ()
    if not isinstance(raw, Mapping) or not raw:
        raise table.error(key, f"must be a table of arguments, not {describe(raw)}")
    found: dict[str, Constraint] = {}
    for path, operators in _flatten(table, key, "", raw):
        if path in found:
            raise table.error(f"{key}.{path}", "is given twice, once nested and once dotted")
        found[path] = _constraint(table, f"{key}.{path}", path, operators)
    return tuple(found[path] for path in sorted(found))


def _flatten(table: Table, key: str, above: str, raw: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Paths and their operators; in TOML `a.b = {…}` within braces is a table in a table."""
    for name, value in raw.items():
        path = f"{above}.{name}" if above else name
        if not all(path.split(".")):
            raise table.error(f"{key}.{path}", "is not an argument's name")
        if not isinstance(value, Mapping):
            hint = f"Write {path} = {{ equals = {describe(value)} }}."
            raise table.error(f"{key}.{path}", "must be a table of operators", hint)
        if value and all(isinstance(below, Mapping) and name not in OPERATORS for name, below in value.items()):
            yield from _flatten(table, key, path, value)
        else:
            yield path, value


def _constraint(table: Table, where: str, path: str, raw: Mapping[str, Any]) -> Constraint:
    known = f"The operators are: {', '.join(OPERATORS)}."
    if not raw:
        raise table.error(where, "asks for nothing", known)
    if "absent" in raw and len(raw) > 1:
        hint = "An absent argument has no value to compare. For what may be left out use optional = true."
        raise table.error(where, 'has "absent" and other operators', hint)
    if "optional" in raw and (len(raw) == 1 or "present" in raw):
        raise table.error(
            where, 'has "optional" but no other operator', "Say what the argument must be if it is present."
        )
    operators = []
    for name in sorted(raw):
        if name == "regex":
            raise table.error(f"{where}.regex", "is not supported", _NO_REGEX)
        if name not in _READERS:
            raise table.error(f"{where}.{name}", "is not an operator", closest(name, OPERATORS) or known)
        problem, operand = _READERS[name](raw[name])
        if problem:
            raise table.error(f"{where}.{name}", problem[0], problem[1])
        operators.append(Operator(name, operand))
    if "min" in raw and "max" in raw and raw["min"] > raw["max"]:
        raise table.error(where, "has a min above its max: nothing can meet it")
    return Constraint(path, tuple(operators))


_NO_REGEX: Final = (
    "Use glob, prefix or in: they take linear time on whatever a caller sends, and always cover the whole value."
)
_Problem = tuple[str, str] | None
_Read = tuple[_Problem, Any]


def _true(value: Any) -> _Read:
    other = 'Say the opposite with the other of "absent" and "present".'
    return (None, True) if value is True else (("can only be true", other), None)


def _constant(value: Any) -> _Read:
    try:
        digest(value)  # what is configured is hashed, so it must have a canonical form
    except NotCanonicalError as error:
        return (
            f"contains a value that JSON cannot represent: {error.message}",
            "Use strings, numbers, booleans, lists and tables.",
        ), None
    return None, value


def _constants(value: Any) -> _Read:
    if not isinstance(value, list) or not value:
        return (f"must be a list of values, not {describe(value)}", ""), None
    return _constant(value)


def _number(value: Any) -> _Read:
    if type(value) not in {int, float} or not math.isfinite(value):
        return (f"must be a number, not {describe(value)}", ""), None
    return _constant(value)


def _length(value: Any) -> _Read:
    if type(value) is not int or value < 0:
        return (f"must be a whole number from 0, not {describe(value)}", ""), None
    return _constant(value)


def _texts(value: Any, problem: Callable[[str], _Problem]) -> _Read:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not items or not all(isinstance(item, str) and item for item in items):
        return (f"must be a string or a list of strings, none empty, not {describe(value)}", ""), None
    faults = [(item, fault) for item in items if (fault := problem(item))]
    if faults:
        item, (what, remedy) = faults[0]
        return (f"{item!r} {what}", remedy), None
    return _constant(sorted(set(items)))


def _globs(value: Any) -> _Read:
    return _texts(value, globs.path_problem)


def _prefixes(value: Any) -> _Read:
    return _texts(value, globs.plain_problem)


_READERS: Final[dict[str, Callable[[Any], _Read]]] = {
    "absent": _true,
    "equals": _constant,
    "glob": _globs,
    "in": _constants,
    "max": _number,
    "max_length": _length,
    "min": _number,
    "not_in": _constants,
    "optional": _true,
    "prefix": _prefixes,
    "present": _true,
}
