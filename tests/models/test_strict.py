from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.models.strict import LIMITS, openai_strict, without_nulls
from remit.tools.schema import compile_schema

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name"],
}


def test_optional_properties_become_nullable_and_all_are_required() -> None:
    found = openai_strict(PERSON)
    assert found is not None
    assert found["required"] == ["name", "age", "tags"]
    assert found["properties"]["age"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert found["additionalProperties"] is False
    assert "additionalProperties" not in PERSON


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"x": {"type": "string", "minLength": 1}}},
        {"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}},
        {"type": "object", "properties": {"x": {"oneOf": [{"type": "string"}]}}},
        {"type": "object", "properties": {"x": {"type": "object"}}},
        {"type": "object", "properties": {"x": {"type": "string", "format": "uri"}}},
        {"type": "object", "properties": {"x": {"type": "array"}}},
        {"type": "object", "properties": {}, "additionalProperties": True},
        {"type": "string"},
        {},
    ],
)
def test_what_the_dialect_cannot_say_is_sent_as_it_is(schema: dict[str, Any]) -> None:
    assert openai_strict(schema) is None


@given(
    st.fixed_dictionaries(
        {"name": st.text(max_size=3), "age": st.none() | st.integers(), "tags": st.none() | st.lists(st.text())}
    )
)
def test_whatever_the_strict_schema_allows_fits_the_owners_once_nulls_are_dropped(value: dict[str, Any]) -> None:
    strict = openai_strict(PERSON)
    assert strict is not None
    assert compile_schema(strict, closed=True).problems(value) == []
    assert compile_schema(PERSON, closed=True).problems(without_nulls(value, PERSON)) == []


def test_a_null_that_the_owner_allows_stays() -> None:
    schema = {"type": "object", "properties": {"x": {"type": ["string", "null"]}, "y": {"type": "string"}}}
    assert without_nulls({"x": None, "y": None}, schema) == {"x": None}
    nested = {"type": "array", "items": schema}
    assert without_nulls([{"y": None}], nested) == [{}]


def test_the_role_of_an_argument_is_ours_and_keeps_no_schema_from_being_strict() -> None:
    to = {"type": "string", "x-remit-role": "email"}
    strict = openai_strict({"type": "object", "properties": {"to": to}, "required": ["to"]})
    assert strict is not None
    assert strict["properties"] == {"to": {"type": "string"}}


BEYOND: dict[str, dict[str, Any]] = {
    "a type, a list of values, or a union": {"description": "anything"},
    "known types": {"type": "text"},
    "the words of its types": {"type": "string", "minLength": 1},
    "a known format": {"type": "string", "format": "uri"},
    "a pattern without looks ahead or back": {"type": "string", "pattern": "^(?!a)"},
    "items of one form": {"type": ["array", "null"], "items": [{"type": "string"}]},
    "no properties but those it names": {
        "type": "object",
        "properties": {},
        "additionalProperties": {"type": "string"},
    },
    "its properties named": {"type": "object", "required": ["a"]},
    "some properties, or none at all": {"type": ["object", "null"]},
    "no property required that is not named": {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["b"]},
    "a union of schemas": {"anyOf": {"type": "string"}},
    "objects in a union that begin differently": {
        "anyOf": [{"type": "object", "properties": {"a": {"enum": [kind]}}} for kind in (1, 2)]
    },
}


def _within(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The schema as a property, in the items of a list and in a union."""
    places = [schema, {"type": ["array", "null"], "items": schema}, {"anyOf": [schema, {"type": "null"}]}]
    return [{"type": "object", "properties": {"x": place}, "required": ["x"]} for place in places]


@pytest.mark.parametrize("limit", LIMITS)
def test_no_schema_is_strict_beyond_a_limit_wherever_it_stands(limit: str) -> None:
    assert not LIMITS[limit](BEYOND[limit])
    assert [openai_strict(one) for one in _within(BEYOND[limit])] == [None, None, None]


def test_a_schema_is_not_strict_beyond_the_counts_of_all_of_it() -> None:
    many = {f"p{number}": {"type": "string"} for number in range(101)}
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(6):
        deep = {"type": "array", "items": deep}
    for one in ({"type": "object", "properties": many}, deep, {"enum": list(range(501))}, {"enum": ["x" * 15_001]}):
        assert openai_strict(_within(one)[0]) is None


def test_nulls_are_taken_out_at_every_depth() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}
    other = {"type": "object", "properties": {"c": {"type": "string"}, "a": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {
            "list": {"type": ["array", "null"], "items": inner},
            "either": {"anyOf": [other, inner, {"type": "string"}]},
        },
    }
    value = {"list": [{"a": "x", "b": None}], "either": {"a": "x", "b": None}}
    assert without_nulls(value, schema) == {"list": [{"a": "x"}], "either": {"a": "x"}}
    assert without_nulls({"list": None, "either": {"c": "x", "a": None}}, schema) == {
        "list": None,
        "either": {"c": "x"},
    }
