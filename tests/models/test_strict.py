from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.models.strict import openai_strict, without_nulls
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
