import datetime as dt
from typing import Any

import pytest

from remit.errors import PolicyError
from remit.policy.constraint import Constraint, Operator
from remit.policy.rule import OPERATORS, parse_when
from remit.policy.table import Table


def when(raw: object) -> tuple[Constraint, ...]:
    return parse_when(Table({"when": raw}, "rule 1", ["when"]))


def refused(raw: object) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        when(raw)
    return caught.value


def test_no_when_is_no_constraint() -> None:
    assert parse_when(Table({}, "rule 1", ["when"])) == ()


def test_constraints_and_operators_are_sorted_so_that_their_order_means_nothing() -> None:
    one = when({"b": {"min": 1, "max": 2}, "a": {"glob": ["y", "x"]}})
    other = when({"a": {"glob": ["x", "y"]}, "b": {"max": 2, "min": 1}})
    assert (
        one
        == other
        == (
            Constraint("a", (Operator("glob", ["x", "y"]),)),
            Constraint("b", (Operator("max", 2), Operator("min", 1))),
        )
    )


def test_one_glob_needs_no_list() -> None:
    assert when({"path": {"glob": "docs/**"}}) == when({"path": {"glob": ["docs/**"]}})


def test_a_place_in_a_table_is_written_dotted_or_nested() -> None:
    assert when({"a.b": {"max": 1}}) == when({"a": {"b": {"max": 1}}})
    assert [one.path for one in when({"a": {"b": {"max": 1}, "c": {"d": {"min": 1}}}})] == ["a.b", "a.c.d"]


def test_a_place_named_twice_is_refused() -> None:
    assert "twice" in refused({"a.b": {"max": 1}, "a": {"b": {"min": 1}}}).message


def test_an_argument_called_like_an_operator_is_reached_by_its_dotted_place() -> None:
    assert when({"a.min": {"max": 1}})[0].path == "a.min"


@pytest.mark.parametrize(
    ("raw", "message", "remedy"),
    [
        ({}, 'rule 1, key "when" must be a table of arguments', ""),
        ("x", 'rule 1, key "when" must be a table of arguments', ""),
        ({"path": "docs"}, 'rule 1, key "when.path" must be a table of operators', "Write path = { equals = 'docs' }."),
        ({"path": {}}, 'rule 1, key "when.path" asks for nothing', "The operators are: absent"),
        ({"path": {"globb": "x"}}, 'rule 1, key "when.path.globb" is not an operator', 'Did you mean "glob"?'),
        ({"a": {"b": {"globb": "x"}}}, 'rule 1, key "when.a.b.globb" is not an operator', "Did you mean"),
        ({"path": {"regex": "x"}}, 'rule 1, key "when.path.regex" is not supported', "Use glob, prefix or in"),
        ({"a..b": {"max": 1}}, 'rule 1, key "when.a..b" is not an argument\'s name', ""),
        ({"x": {"in": "a"}}, 'rule 1, key "when.x.in" must be a list of values', ""),
        ({"x": {"in": []}}, 'rule 1, key "when.x.in" must be a list of values', ""),
        ({"x": {"glob": ""}}, 'rule 1, key "when.x.glob" must be a string or a list', ""),
        ({"x": {"glob": []}}, 'rule 1, key "when.x.glob" must be a string or a list', ""),
        ({"x": {"glob": "a/{b,c}"}}, "rule 1, key \"when.x.glob\" 'a/{b,c}' knows only", "Give a list of globs"),
        ({"x": {"glob": "docs/"}}, "rule 1, key \"when.x.glob\" 'docs/' ends with", "Write 'docs/**'"),
        ({"x": {"prefix": "../a"}}, "rule 1, key \"when.x.prefix\" '../a' climbs", "Name the folder"),
        ({"x": {"min": "1"}}, 'rule 1, key "when.x.min" must be a number', ""),
        ({"x": {"min": True}}, 'rule 1, key "when.x.min" must be a number', ""),
        ({"x": {"max": float("nan")}}, 'rule 1, key "when.x.max" must be a number', ""),
        ({"x": {"min": 2, "max": 1}}, 'rule 1, key "when.x" has a min above its max', ""),
        ({"x": {"max_length": -1}}, 'rule 1, key "when.x.max_length" must be a whole number', ""),
        ({"x": {"absent": False}}, 'rule 1, key "when.x.absent" can only be true', "Say the opposite"),
        ({"x": {"absent": True, "max": 1}}, 'rule 1, key "when.x" has "absent" and other operators', "An absent"),
        ({"x": {"equals": dt.date(2026, 1, 1)}}, 'rule 1, key "when.x.equals" contains a value that JSON cannot', ""),
    ],
)
def test_an_error_names_the_place_and_a_way_out(raw: Any, message: str, remedy: str) -> None:
    error = refused(raw)
    assert error.message.startswith(message)
    assert error.remedy.startswith(remedy)


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_can_be_written(name: str) -> None:
    operands = {"absent": True, "present": True, "optional": True, "in": [1], "not_in": [1], "glob": "a", "prefix": "a"}
    beside = {"equals": 1} if name == "optional" else {}
    assert name in {one.name for one in when({"x": {name: operands.get(name, 1), **beside}})[0].operators}
