"""The value of a condition: true, false, or unknown. A tree of `expression` becomes a function of a call.

Unknown is what is missing, has another type than an operator takes, or differs only as two texts may that a reader
takes for the same. `and`, `or` and `not` continue it as Kleene's logic does: `false and unknown` is false.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from remit.policy.decision import UNKNOWN, Query
from remit.policy.expression import Apply, Items, Literal, Node, Path
from remit.policy.readings import fold

Evaluate = Callable[[Query], Any]
"""From a call to a value, which may be UNKNOWN; never raises."""

_LARGEST: Final = 10**300
_MOST: Final = 10_000
"""Items of a list that a condition looks at; for a longer list the result is unknown."""
_LONGEST: Final = 2_000
"""Characters of texts that are compared without their differences in case and the like."""
_EDGE: Final = 64
"""Characters at the end of a piece that those behind it may change, such as an accent."""
_folded: Final = lru_cache(1_024)(fold)
_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip
_SUMS: Final[dict[str, Callable[[Any, Any], Any]]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def compiled(node: Node) -> Evaluate:
    """The function of a tree."""
    if isinstance(node, Literal):
        value = node.value
        return lambda _: value
    if isinstance(node, Path):
        return _path(node)
    if isinstance(node, Items):
        items = [compiled(one) for one in node.items]
        return lambda query: [one(query) for one in items]
    return _apply(node)


def verdict(evaluate: Evaluate, query: Query) -> bool | None:
    """Return whether a condition holds; None: unknown."""
    found = evaluate(query)
    return found if found is True or found is False else None


def _path(path: Path) -> Evaluate:
    if path.tool:
        return _result(path.tool, path.parts)
    parts = path.parts
    if path.root == "args" and len(parts) == 1 and isinstance(parts[0], str):
        name = parts[0]
        return lambda query: query.args.get(name, UNKNOWN)
    start = _ROOTS[path.root]
    return (lambda query: _below(start(query), parts)) if parts else start


def _result(tool: str, parts: tuple[str | int, ...]) -> Evaluate:
    name = parts[0] if len(parts) == 1 else None

    def seen(query: Query) -> Any:
        facts = query.facts
        if facts is None:
            return UNKNOWN
        value = facts.seen.get(tool, UNKNOWN)
        if name is not None and type(value) is dict:
            return value.get(name, UNKNOWN)
        return _below(value, parts)

    return seen


def _below(value: Any, parts: tuple[str | int, ...]) -> Any:
    for index, part in enumerate(parts):
        if isinstance(value, dict):
            value = value.get(part, UNKNOWN) if isinstance(part, str) else UNKNOWN
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part] if part < len(value) else UNKNOWN
        elif isinstance(value, list) and len(value) <= _MOST:
            return [_below(one, parts[index:]) for one in value]
        else:
            return UNKNOWN
    return value


_ROOTS: Final[Mapping[str, Evaluate]] = {
    "args": lambda query: query.args,
    "input": lambda query: UNKNOWN if query.facts is None else query.facts.input,
    "kind": lambda query: query.caller.kind,
    "principal": lambda query: query.caller.principal,
    "recipe": lambda query: query.caller.recipe,
    "tool": lambda query: UNKNOWN if query.tool is None else query.tool.name,
}


def _apply(node: Apply) -> Evaluate:
    name = node.name
    if name in {"and", "or"}:
        return _joined([compiled(one) for one in _chain(node)], decisive=name == "or")
    operands = [compiled(one) for one in node.operands]
    if name == "age":
        return lambda query: _age(operands[0](query), query.now)
    if len(operands) == 1:
        [only], act = operands, _ONE[name]
        return lambda query: act(only(query))
    left, right = operands
    if name in _ORDER:
        return _compared(left, right, _ORDER[name])
    both = _TWO[name]
    return lambda query: both(left(query), right(query))


def _chain(node: Node, name: str = "") -> list[Node]:
    """The operands of one `and` or `or` after the other."""
    if not isinstance(node, Apply) or node.name != (name or node.name):
        return [node]
    return [part for one in node.operands for part in _chain(one, node.name)]


def _joined(operands: list[Evaluate], *, decisive: bool) -> Evaluate:
    every, other = tuple(operands), not decisive

    def evaluate(query: Query) -> Any:
        result: Any = other
        for one in every:
            value = one(query)
            if value is decisive:
                return decisive
            if value is not other:
                result = UNKNOWN
        return result

    return evaluate


def _compared(left: Evaluate, right: Evaluate, order: Callable[[Any, Any], bool]) -> Evaluate:
    def compare(query: Query) -> Any:
        one, other = left(query), right(query)
        if type(one) is int and type(other) is int:
            return order(one, other)
        alike = (_is_number(one) and _is_number(other)) or (isinstance(one, str) and isinstance(other, str))
        return order(one, other) if alike else UNKNOWN

    return compare


def _not(value: Any) -> Any:
    return (not value) if value is True or value is False else UNKNOWN


def same(one: Any, other: Any) -> Any:
    """Say whether two values are equal, or UNKNOWN. True is not 1; texts that differ only to a machine are UNKNOWN."""
    if isinstance(one, str) and isinstance(other, str):
        return True if one == other else _alike(one, other)
    if one is UNKNOWN or other is UNKNOWN:
        return UNKNOWN
    if one is None or other is None:
        return one is other
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other if isinstance(one, bool) and isinstance(other, bool) else UNKNOWN
    if _is_number(one) and _is_number(other):
        return one == other
    return _same_shape(one, other)


def _alike(one: str, other: str) -> Any:
    """UNKNOWN for two texts that could be the same to a reader, or that are too long to compare; else False."""
    left, right = _folded(one[:_LONGEST]), _folded(other[:_LONGEST])
    left_cut, right_cut = len(one) > _LONGEST, len(other) > _LONGEST
    if not left_cut and not right_cut:
        return UNKNOWN if left == right else False
    # What comes behind a piece may change its end, and nothing before that.
    left_sure, right_sure = (text[:-_EDGE] if cut else text for text, cut in ((left, left_cut), (right, right_cut)))
    common = min(len(left_sure), len(right_sure))
    shorter = (not left_cut and len(left) < len(right_sure)) or (not right_cut and len(right) < len(left_sure))
    return False if shorter or left_sure[:common] != right_sure[:common] else UNKNOWN


def _same_shape(one: Any, other: Any) -> Any:
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return False
        return _every(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and _every([same(value, other[name]) for name, value in one.items()])
    return UNKNOWN


def _every(verdicts: Any) -> Any:
    result: Any = True
    for one in verdicts:
        if one is False:
            return False
        if one is UNKNOWN:
            result = UNKNOWN
    return result


def _differ(one: Any, other: Any) -> Any:
    return _not(same(one, other))


def _in(one: Any, many: Any) -> Any:
    if not isinstance(many, list) or len(many) > _MOST:
        return UNKNOWN
    return _not(_every(_differ(one, each) for each in many))


def _not_in(one: Any, many: Any) -> Any:
    return _not(_in(one, many))


def _all_in(some: Any, many: Any) -> Any:
    if not isinstance(some, list) or not isinstance(many, list) or len(some) * len(many) > _MOST:
        return UNKNOWN
    return _every([_in(one, many) for one in some]) if some else UNKNOWN


def _adds(name: str) -> Callable[[Any, Any], Any]:
    act = _SUMS[name]

    def add(one: Any, other: Any) -> Any:
        if not (_is_number(one) and _is_number(other)):
            return UNKNOWN
        return _bounded(act(one, other))

    return add


def _has(value: Any) -> bool:
    return value is not UNKNOWN


def _len(value: Any) -> Any:
    return len(value) if isinstance(value, str | list) else UNKNOWN


def _lower(value: Any) -> Any:
    return _folded(value) if isinstance(value, str) and len(value) <= _LONGEST else UNKNOWN


def _sum(value: Any) -> Any:
    if not isinstance(value, list) or len(value) > _MOST or not all(map(_is_number, value)):
        return UNKNOWN
    return _bounded(sum(value))


def _age(value: Any, now: int) -> Any:
    if not isinstance(value, str) or now <= 0:
        return UNKNOWN
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return UNKNOWN
    return UNKNOWN if at.tzinfo is None else now / 1_000_000 - at.timestamp()


def _bounded(value: Any) -> Any:
    return value if -_LARGEST < value < _LARGEST else UNKNOWN


def _is_number(value: Any) -> bool:
    kind = type(value)
    return (kind is int or kind is float) and -_LARGEST < value < _LARGEST


_ONE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "has": _has, "len": _len, "lower": _lower, "not": _not, "sum": _sum
}  # fmt: skip
_TWO: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": same, "!=": _differ, "in": _in, "not in": _not_in, "all_in": _all_in,
    **{name: _adds(name) for name in _SUMS},
}  # fmt: skip
