"""Conditions against a naive evaluator that goes through the tree each time, and says None for unknown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.policy.decision import UNKNOWN, Facts, Query
from remit.policy.expression import Apply, Items, Literal, Node, Path, compiled, parse, verdict
from tests.policy.samples import WRITE, query

VALUES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "A", "b", ""])
JSON = st.recursive(VALUES, lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("xy"), below))
ROOTED = st.lists(st.sampled_from(["x", "y", 0]), min_size=1, max_size=2)
PATHS = st.builds(lambda root, parts: Path(root, "", tuple(parts)), st.sampled_from(["args", "input"]), ROOTED)
PATHS |= st.builds(lambda parts: Path("", "t", tuple(parts)), st.lists(st.sampled_from(["x", "y"]), max_size=2))
LEAVES = st.builds(Literal, VALUES) | PATHS
TWO = ["and", "or", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "+", "-", "*", "all_in"]
NODES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda below: (
        st.builds(lambda name, one, two: Apply(name, (one, two)), st.sampled_from(TWO), below, below)
        | st.builds(lambda name, one: Apply(name, (one,)), st.sampled_from(["not", "len", "sum", "lower"]), below)
        | st.builds(lambda path: Apply("has", (path,)), PATHS)
        | st.builds(lambda items: Items(tuple(items)), st.lists(below, max_size=3))
    ),
    max_leaves=8,
)
NOTHING = object()


def naive(node: Node, roots: dict[str, Any]) -> Any:  # noqa: PLR0911, C901, PLR0912 - one case after the other
    """The value of a tree, or NOTHING."""
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, Items):
        return [naive(one, roots) for one in node.items]
    if isinstance(node, Path):
        return below(roots[node.root or node.tool], list(node.parts))
    values = [naive(one, roots) for one in node.operands]
    match node.name, values:
        case "has", [one]:
            return one is not NOTHING
        case "not", [one]:
            return {True: False, False: True}.get(one, NOTHING) if isinstance(one, bool) else NOTHING
        case "and", [one, two]:
            return kleene([one, two], decisive=False)
        case "or", [one, two]:
            return kleene([one, two], decisive=True)
        case "len", [one]:
            return len(one) if isinstance(one, str | list) else NOTHING
        case "lower", [one]:
            return one.lower() if isinstance(one, str) else NOTHING
        case "sum", [one]:
            return sum(one) if isinstance(one, list) and all(map(number, one)) else NOTHING
        case (("==" | "!="), [one, two]):
            found = equal(one, two)
            return found if node.name == "==" or found is NOTHING else not found
        case (("in" | "not in"), [one, list() as many]):
            found = kleene([equal(one, each) for each in many] or [False], decisive=True)
            return found if node.name == "in" or found is NOTHING else not found
        case "all_in", [list() as some, list() as many] if some:
            return kleene(
                [kleene([equal(one, each) for each in many] or [False], decisive=True) for one in some], decisive=False
            )
        case (("<" | "<=" | ">" | ">="), [one, two]) if (number(one) and number(two)) or (text(one) and text(two)):
            return {"<": one < two, "<=": one <= two, ">": one > two, ">=": one >= two}[node.name]
        case (("+" | "-" | "*"), [one, two]) if number(one) and number(two):
            return {"+": one + two, "-": one - two, "*": one * two}[node.name]
        case _:
            return NOTHING


def below(value: Any, parts: list[Any]) -> Any:
    if not parts:
        return value
    first, *rest = parts
    if isinstance(value, dict):
        return below(value[first], rest) if first in value else NOTHING
    if isinstance(value, list):
        if isinstance(first, int):
            return below(value[first], rest) if first < len(value) else NOTHING
        return [below(one, parts) for one in value]
    return NOTHING


def kleene(values: list[Any], *, decisive: bool) -> Any:
    if any(value is decisive for value in values):
        return decisive
    return (not decisive) if all(value is (not decisive) for value in values) else NOTHING


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def text(value: Any) -> bool:
    return isinstance(value, str)


def equal(one: Any, two: Any) -> Any:  # noqa: PLR0911 - one case after the other
    if one is NOTHING or two is NOTHING:
        return NOTHING
    if one is None or two is None:
        return one is two
    if isinstance(one, list) and isinstance(two, list):
        if len(one) != len(two):
            return False
        return kleene([True, *(equal(a, b) for a, b in zip(one, two, strict=True))], decisive=False)
    if isinstance(one, dict) and isinstance(two, dict):
        if one.keys() != two.keys():
            return False
        return kleene([True, *(equal(one[name], two[name]) for name in one)], decisive=False)
    if text(one) and text(two):
        return True if one == two else NOTHING if one.lower() == two.lower() else False
    same_kind = (number(one) and number(two)) or (isinstance(one, bool) and isinstance(two, bool))
    return one == two if same_kind else NOTHING


def shown(value: Any) -> Any:
    """A value with NOTHING where it is unknown."""
    if value is UNKNOWN:
        return NOTHING
    return [shown(one) for one in value] if isinstance(value, list) else value


@given(NODES, st.dictionaries(st.sampled_from("xy"), JSON), JSON, JSON)
def test_a_condition_comes_to_what_a_naive_evaluator_says(
    node: Node, args: dict[str, Any], job: Any, seen: Any
) -> None:
    asked = Query(tool=WRITE, key="fs", args=args, caller=query().caller, facts=Facts(input=job, seen={"t": seen}))
    found, expected = shown(compiled(node)(asked)), naive(node, {"args": args, "input": job, "t": seen})
    assert found == expected
    assert type(found) is type(expected) or (number(found) and number(expected))


CALL = {"amount": 150, "user": "alice", "ids": ["a", "b"], "at": "2026-05-01T12:00:00Z", "path": "DOCS/x"}
ORDER = {"status": "pending", "total": 200.5, "items": [{"id": "a"}, {"id": "b"}, {"id": "c"}], "by": None}
FACTS = Facts(input={"limit": 100, "user": "alice"}, seen={"orders.get": ORDER})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('args.amount <= seen("orders.get").total and seen("orders.get").status == "pending"', True),
        ("args.amount <= input.limit", False),
        ("args.user == principal and input.user == principal", True),
        ('all_in(args.ids, seen("orders.get").items.id)', True),
        ('all_in(["a", "z"], seen("orders.get").items.id)', False),
        ('len(seen("orders.get").items) == 3', True),
        ('seen("orders.get").by == null', True),
        ('has(seen("orders.get").refund)', False),
        ('seen("orders.get").refund == 1', None),
        ('has(seen("orders.list"))', False),
        ('seen("orders.list").status == "pending"', None),
        ('args.missing == 1 and args.user == "bob"', False),
        ('args.missing == 1 or args.user == "alice"', True),
        ("not args.missing == 1", None),
        ('args.path == "docs/x"', None),  # some take it for the same
        ('lower(args.path) == "docs/x"', True),
        ('args.amount == "150"', None),
        ("args.amount", None),
        ('kind == "session" and tool == "fs.write"', True),
        ('recipe == ""', True),
        ("age(args.at) < 3600", None),  # the time is not known
    ],
)
def test_a_condition_of_a_policy(text: str, expected: bool | None) -> None:
    asked = Query(tool=WRITE, key="fs", args=CALL, caller=query().caller, facts=FACTS)
    assert verdict(compiled(parse(text)), asked) is expected


@pytest.mark.parametrize(
    ("at", "expected"),
    [("2026-05-01T11:30:00Z", True), ("2026-05-01T10:30:00Z", False), ("2026-05-01T11:30:00", None), ("soon", None)],
)
def test_an_age_needs_a_time_with_an_offset(at: str, expected: bool | None) -> None:
    asked = query(now=1_777_636_800_000_000, at=at)  # 12:00 UTC
    assert verdict(compiled(parse("age(args.at) < 3600")), asked) is expected


@pytest.mark.parametrize("value", [10**400, float("inf"), float("nan"), [1] * 10_001, True])
def test_what_is_too_large_or_no_number_cannot_be_told(value: Any) -> None:
    for text in ("args.x * args.x < 1", "sum(args.x) < 1", "args.x in args.x"):
        assert verdict(compiled(parse(text)), query(x=value)) is None
