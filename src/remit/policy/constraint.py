"""Constraints of a rule on the arguments: operators on one place in them.

A constraint *holds*, does *not hold*, or is *unknown* (True, False, None): the argument is missing, has another
type than the operator expects, or is text that may be read in several ways. An allow rule needs every constraint to
hold. A deny or ask rule lets go only where one certainly does not hold. So a doubt always ends at the stricter side,
and a rule needs no exception for a tool that leaves an argument out.

- Missing: unknown, because the tool then uses a default that policy does not know. Where the tool's schema has
  no such argument, it certainly does not hold: the tool cannot be given one. With `optional` it holds.
- Lists: an allow rule needs every item to hold, a deny or ask rule needs one that may. A path goes through lists of
  tables: `files.path` is the path of each file.
- Text: see `remit.policy.readings`.

There is no operator for regular expressions. Python's engine takes exponential time on some patterns, the caller
chooses the text, and a bound on its length does not help (30 characters are enough); and an expression that forgets
its anchors or escapes its dots wrongly allows more than was meant. Globs are linear and always cover the whole
value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from remit.policy.checks import OPTIONAL, PRESENCE, Verdict, check_of, every, some, takes_lists
from remit.policy.places import HOST, places_of
from remit.tools.meta import JsonSchema

_OPEN_SCHEMA: Final = frozenset({
    "$dynamicRef", "$ref", "allOf", "anyOf", "dependentSchemas", "else", "if", "oneOf", "patternProperties", "then",
})  # fmt: skip
"""Keywords by which a schema may declare arguments elsewhere than in `properties`."""


class Operator(msgspec.Struct, frozen=True):
    """One demand, such as `glob` with its patterns."""

    name: str
    operand: Any

    def __str__(self) -> str:
        return f"{self.name} {msgspec.json.encode(self.operand).decode()}"


class Constraint(msgspec.Struct, frozen=True):
    """Every demand on one place in the arguments."""

    path: str
    """An argument's name, or `a.b` for `b` in the table `a`."""
    operators: tuple[Operator, ...]

    def __str__(self) -> str:
        return f"{self.path}: {', '.join(map(str, self.operators))}"

    @property
    def bounds(self) -> bool:
        """Say whether it names the values, or patterns of them, that may be; a pattern of anything names nothing."""
        return any(
            operator.name in {"equals", "in"}
            or (operator.name in {"glob", "prefix"} and all(set(pattern) - set("*?/.") for pattern in operator.operand))
            for operator in self.operators
        )

    def judge(self, *, wide: bool) -> Judge:
        """Return whether arguments meet it, as a function; `wide` is how a rule that restricts reads them."""
        optional = any(operator.name == OPTIONAL for operator in self.operators)
        judges = [
            _judge(self.path, operator, wide=wide, optional=optional)
            for operator in self.operators
            if operator.name != OPTIONAL
        ]
        if len(judges) == 1:
            return judges[0]
        return lambda args, schema: every(judge(args, schema) for judge in judges)


Judge = Callable[[dict[str, Any], JsonSchema | None], Verdict]
"""From the arguments and the tool's input schema to whether a constraint holds."""


def _judge(path: str, operator: Operator, *, wide: bool, optional: bool) -> Judge:
    if operator.name in PRESENCE:
        return _presence(path, expected=operator.name == "present", wide=wide)
    check = check_of(operator.name, operator.operand, wide=wide)
    lists = takes_lists(operator.name, operator.operand)
    plain = "." not in path
    combine = some if wide else every

    def of_value(value: Any) -> Verdict:
        if lists or not isinstance(value, list):
            return check(value)
        return combine([check(item) for item in _items(value)] or [None])

    def judge(args: dict[str, Any], schema: JsonSchema | None) -> Verdict:
        value = args.get(path)
        if path == HOST and (places := places_of(schema)).urls:
            values, unknown = places.hosts(args)
            if values or unknown:
                return combine([of_value(value) for value in values] + ([None] if unknown else []))
            return optional or None
        if plain and (places := places_of(schema)).concern(path, wide=wide):
            values, missing = places.values(args, path, wide=wide)
            missing = missing and declares(schema, path)
        elif plain and value is not None:
            return of_value(value) if isinstance(value, list) else check(value)
        else:
            values, missing = find(args, path)
        if not values and (optional or not declares(schema, path)):
            return optional
        return combine([of_value(value) for value in values] + ([None] if missing and not optional else []))

    return judge


def _presence(path: str, *, expected: bool, wide: bool) -> Judge:
    def judge(args: dict[str, Any], schema: JsonSchema | None) -> Verdict:
        values, missing = find(args, path)
        if expected and wide and not values and (places := places_of(schema)).concern(path, wide=True):
            values, missing = places.values(args, path, wide=True)[0], False
        if not values:
            return not expected
        if missing or any(value is None for value in values):
            return None  # null may mean either
        return expected

    return judge


def find(args: dict[str, Any], path: str) -> tuple[list[Any], bool]:
    """The values at a path, through every list on the way, and whether there is a place without one."""
    if "." not in path:
        return ([args[path]], False) if path in args else ([], True)
    values: list[Any] = [args]
    missing = False
    for name in path.split("."):
        tables = _items(values)
        values = [table[name] for table in tables if isinstance(table, dict) and name in table]
        missing = missing or len(values) < len(tables)
    literal = [args[path]] if path in args else []  # an argument may have a dot in its own name
    return values + literal, (missing or not values) and not literal


def declares(schema: JsonSchema | None, path: str) -> bool:
    """Return whether a tool with this input schema may take an argument at this path."""
    if not isinstance(schema, dict) or not _OPEN_SCHEMA.isdisjoint(schema):
        return True
    properties = schema.get("properties", {})
    return not isinstance(properties, dict) or path in properties or path.partition(".")[0] in properties


def _items(values: list[Any]) -> list[Any]:
    """The values, with the items of a list in its place."""
    flat: list[Any] = []
    rest = values[::-1]
    while rest:
        value = rest.pop()
        if isinstance(value, list):
            rest += reversed(value)
        else:
            flat.append(value)
    return flat
