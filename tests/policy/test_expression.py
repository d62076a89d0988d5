from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.policy.expression import (
    COMPARISONS,
    MAX_CHARS,
    MAX_DEPTH,
    MAX_NODES,
    Apply,
    ExpressionError,
    Items,
    Literal,
    Node,
    Path,
    parse,
    parts_of,
    paths_of,
)

NAMES = st.sampled_from(["a", "b_1", "a name", "in", "and", "é"])
PARTS = st.lists(NAMES | st.integers(0, 9), max_size=3).map(tuple)
PATHS = st.builds(Path, st.sampled_from(["args", "input"]), st.just(""), PARTS) | st.builds(
    Path, st.just(""), st.sampled_from(["orders.get", 'odd"tool']), PARTS
)
LITERALS = st.builds(Literal, st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=5))
LEAVES = LITERALS | PATHS
NUMBERS = st.recursive(
    st.builds(Literal, st.integers(0, 99)) | PATHS,
    lambda below: st.builds(lambda name, one, two: Apply(name, (one, two)), st.sampled_from("+-*"), below, below),
    max_leaves=4,
)
CONDITIONS: st.SearchStrategy[Any] = st.recursive(
    st.builds(lambda name, one, two: Apply(name, (one, two)), st.sampled_from(COMPARISONS), LEAVES | NUMBERS, LEAVES)
    | st.builds(lambda path: Apply("has", (path,)), PATHS)
    | st.builds(lambda one, two: Apply("all_in", (one, Items((two,)))), PATHS, LITERALS),
    lambda below: (
        st.builds(lambda name, one, two: Apply(name, (one, two)), st.sampled_from(["and", "or"]), below, below)
        | st.builds(lambda one: Apply("not", (one,)), below)
    ),
    max_leaves=6,
)


@given(CONDITIONS)
def test_a_tree_reads_as_it_was_written(node: Node) -> None:
    assert parse(str(node)) == node


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("args.a == 1", Apply("==", (Path("args", "", ("a",)), Literal(1)))),
        ("args['a b'][0].c", Path("args", "", ("a b", 0, "c"))),
        ('seen("x.y").z', Path("", "x.y", ("z",))),
        ("not args.a == 1", Apply("not", (Apply("==", (Path("args", "", ("a",)), Literal(1))),))),
        ("args.a not in [1, -2]", Apply("not in", (Path("args", "", ("a",)), Items((Literal(1), Literal(-2)))))),
        ("args.a - -1", Apply("-", (Path("args", "", ("a",)), Literal(-1)))),
        ("1 + 2 * 3", Apply("+", (Literal(1), Apply("*", (Literal(2), Literal(3)))))),
        ("kind", Path("kind", "", ())),
    ],
)
def test_what_is_written_means_what_it_does_elsewhere(text: str, tree: Node) -> None:
    assert parse(text) == tree


def test_and_binds_closer_than_or() -> None:
    assert (
        str(parse("args.a and args.b or not args.c and args.d")) == "(args.a and args.b) or ((not args.c) and args.d)"
    )


def test_the_parts_are_what_stands_between_the_outermost_ands() -> None:
    assert [str(one) for one in parts_of(parse("args.a and (args.b or args.c) and args.d"))] == [
        "args.a", "args.b or args.c", "args.d",
    ]  # fmt: skip
    assert [str(one) for one in paths_of(parse("args.a < len(input.b)"))] == ["args.a", "input.b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends too early"),
        ("args.a ==", "ends too early"),
        ("args.a = 1", "means nothing"),
        ("args.a == 1 args.b", "does not end before 'args'"),
        ("args.a == 1 == 2", "compares three values"),
        ("arg.a == 1", "does not know 'arg'"),
        ("eval(args.a)", "does not know the function 'eval'"),
        ("len(args.a, 1)", "2 operands"),
        ("has(1)", "asks has()"),
        ("seen(args.a)", "full name of a tool"),
        ("args. == 1", "a dot without a name"),
        ("args[args.b]", "brackets"),
        ("(args.a", "misses ')'"),
        ('args.a == "\\x"', "not written as in JSON"),
        ("args.a == __import__", "does not know '__import__'"),
        ("args.a " + "or 1 " * MAX_NODES, f"more than {MAX_NODES} parts"),
        ("(" * (MAX_DEPTH + 2), f"deeper than {MAX_DEPTH} levels"),
        ("not " * (MAX_DEPTH + 2) + "args.a", f"deeper than {MAX_DEPTH} levels"),
        ("args" + ".a" * (MAX_DEPTH + 2), f"deeper than {MAX_DEPTH} names"),
        (" " * (MAX_CHARS + 1), f"longer than {MAX_CHARS}"),
    ],
)
def test_an_error_says_what_is_wrong_and_where(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=r"near character|longer") as caught:
        parse(text)
    assert message in str(caught.value)


@given(st.text(alphabet="args.in()[]<>=!+-*'\"\\ 01nota,", max_size=60))
def test_no_text_does_anything_but_parse_or_fail(text: str) -> None:
    try:
        parse(text)
    except ExpressionError:
        return
