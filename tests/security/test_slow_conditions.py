"""Calls that would make a rule's condition slow: it stays bounded, and what is too long to tell is asked about."""

from __future__ import annotations

from typing import Any

import pytest

from remit.policy.decision import UNKNOWN, Caller, Query
from remit.policy.expression import ExpressionError, compiled, parse
from remit.policy.readings import fold
from remit.tools.meta import Level, ToolMeta

TOOL = ToolMeta(name="desk.do", provider_id="local", capability_level=Level.L1)
CALLER = Caller(principal="ann", kind="session", recipe="", stream="session/x")
LONG = "\u0430" * 50_000


def found(where: str, **args: Any) -> Any:
    return compiled(parse(where))(Query(tool=TOOL, key="desk.do", args=args, caller=CALLER))


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many characters were folded, time after time."""
    lengths: list[int] = []

    def counted(text: str) -> str:
        lengths.append(len(text))
        return fold(text)

    monkeypatch.setattr("remit.policy.expression._folded", counted)
    return lengths


@pytest.mark.slow
def test_comparing_every_item_with_every_item_looks_at_beginnings_alone(folded: list[int]) -> None:
    many = [f"{number}{LONG}" for number in range(100)]
    assert found("all_in(args.some, args.many)", some=[one.upper() for one in many], many=many) is UNKNOWN
    assert max(folded) <= 2_000


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("A" * 5_000, "a" * 5_000, UNKNOWN),
        ("a" * 5_000, "a" * 5_001, UNKNOWN),
        ("a" * 5_000, "b" + "a" * 5_000, False),
        ("a" * 5_000, "a" * 5_000, True),
        ("a" * 5_000, "x", False),
        ("", "a" * 5_000, False),
        ("a" * 1_999, "A" * 2_001, UNKNOWN),
        ("\u200b" * 5_000, "x", UNKNOWN),
        ("\u200b" * 5_000 + "x", "x", UNKNOWN),
        ("e" * 2_000 + "\u0301", "E" * 1_999 + "\u00e9", UNKNOWN),
    ],
)
def test_long_texts_are_told_apart_only_where_that_is_certain(one: str, other: str, expected: object) -> None:
    assert found("args.one == args.other", one=one, other=other) is expected
    assert found("args.other == args.one", one=one, other=other) is expected


@pytest.mark.parametrize(
    "where",
    [
        "(" * 500 + "true" + ")" * 500,
        "not " * 500 + "true",
        " and ".join(["true"] * 500),
        "[" * 100 + "]" * 100,
        "args" + ".a" * 100 + " == 1",
        "args.a == " + "9" * 1_990,
        'args["' + "\\u0041" * 400 + '"] == 1',
        "seen(args.tool).ok",
        "__import__('os')",
        "args.__class__.__mro__ == 1 and eval('1')",
    ],
)
def test_a_condition_that_is_too_much_is_refused_or_means_nothing(where: str) -> None:
    try:
        parse(where)
    except ExpressionError:
        return
    assert found(where) is UNKNOWN


@pytest.mark.parametrize("value", [10**299, 1e299, float("inf"), float("nan"), -(10**299)])
def test_numbers_that_grow_beyond_bounds_cannot_be_told(value: float) -> None:
    assert found("args.a * args.a * args.a * args.a > 0", a=value) is UNKNOWN
