from __future__ import annotations

from typing import Any

import pytest

from remit.tools.schema import compile_schema

Schema = dict[str, Any]

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def accepts(schema: Schema, value: Schema) -> bool:
    return compile_schema(schema, closed=True).problems(value) == []


def test_a_field_the_root_does_not_declare_is_refused() -> None:
    schema = {"type": "object", "properties": {"a": {}}}
    assert accepts(schema, {"a": 1})
    assert not accepts(schema, {"a": 1, "b": 2})


def test_without_closing_it_is_accepted() -> None:
    schema = {"type": "object", "properties": {"a": {}}}
    assert compile_schema(schema, closed=False).problems({"b": 2}) == []


def test_a_tool_that_declares_no_fields_takes_none() -> None:
    assert accepts({"type": "object", "properties": {}}, {})
    assert not accepts({"type": "object", "properties": {}}, {"a": 1})


def test_a_schema_that_speaks_of_no_fields_at_all_takes_any() -> None:
    assert accepts({"type": "object"}, {"a": 1})


@pytest.mark.parametrize(("others", "welcome"), [(True, True), ({}, True), ({"type": "integer"}, True), (False, False)])
def test_what_the_owner_states_about_other_fields_stands(others: object, welcome: bool) -> None:
    assert accepts({"properties": {"a": {}}, "additionalProperties": others}, {"b": 1}) is welcome
    assert accepts({"properties": {"a": {}}, "unevaluatedProperties": others}, {"b": 1}) is welcome


def test_only_the_root_is_closed() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {}}}}}
    assert accepts(schema, {"a": {"b": 1, "c": 2}})


def test_fields_declared_by_pattern_stay_welcome() -> None:
    schema = {"type": "object", "properties": {"a": {}}, "patternProperties": {"^x-": {}}}
    assert accepts(schema, {"a": 1, "x-b": 2})
    assert not accepts(schema, {"y-b": 2})


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_alternatives_that_declare_fields_of_their_own_keep_them(keyword: str) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {}},
        keyword: [{"properties": {"b": {"type": "integer"}}, "required": ["b"]}],
    }
    assert accepts(schema, {"a": 1, "b": 2})
    assert not accepts(schema, {"a": 1, "b": 2, "c": 3})


def test_fields_of_an_alternative_that_was_not_chosen_are_refused() -> None:
    schema = {
        "oneOf": [
            {"properties": {"kind": {"const": "a"}, "x": {}}, "required": ["kind"]},
            {"properties": {"kind": {"const": "b"}, "y": {}}, "required": ["kind"]},
        ],
    }
    assert accepts(schema, {"kind": "a", "x": 1})
    assert not accepts(schema, {"kind": "a", "y": 1})


def test_a_root_that_is_only_a_reference_is_closed_through_it() -> None:
    schema = {"$ref": "#/$defs/args", "$defs": {"args": {"type": "object", "properties": {"a": {}}}}}
    assert accepts(schema, {"a": 1})
    assert not accepts(schema, {"b": 1})
    by_anchor = {"$ref": "#args", "$defs": {"x": {"$anchor": "args", "properties": {"a": {}}}}}
    assert accepts(by_anchor, {"a": 1})
    assert not accepts(by_anchor, {"b": 1})


def test_conditions_and_dependencies_keep_their_fields() -> None:
    schema = {
        "properties": {"a": {}},
        "if": {"required": ["a"]},
        "then": {"properties": {"b": {}}},
        "dependentSchemas": {"a": {"properties": {"c": {}}}},
    }
    assert accepts(schema, {"a": 1, "b": 2, "c": 3})
    assert not accepts(schema, {"b": 2})


def test_an_old_draft_is_closed_where_only_the_root_declares_fields() -> None:
    schema = {"$schema": DRAFT_7, "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert accepts(schema, {"a": 1})
    assert not accepts(schema, {"a": 1, "c": 2})


def test_an_old_draft_stays_open_where_closing_would_forbid_declared_fields() -> None:
    schema = {"$schema": DRAFT_7, "properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]}
    assert accepts(schema, {"a": 1, "b": 2})
    assert accepts(schema, {"c": 3})


def test_what_is_declared_under_not_does_not_count() -> None:
    schema = {"properties": {"a": {}}, "not": {"properties": {"b": {"const": 1}}, "required": ["b"]}}
    assert accepts(schema, {"a": 1})
    assert not accepts(schema, {"a": 1, "b": 2})


def test_what_is_declared_under_not_keeps_no_old_draft_open() -> None:
    schema = {"$schema": DRAFT_7, "properties": {"a": {}}, "not": {"properties": {"b": {}}, "required": ["b"]}}
    assert accepts(schema, {"a": 1})
    assert not accepts(schema, {"c": 1})


def test_parts_that_are_booleans_or_come_round_to_themselves_are_no_trouble() -> None:
    loop = {"properties": {"b": {}}, "anyOf": [True, {"$ref": "#/$defs/loop"}]}
    schema = {
        "properties": {"a": {}},
        "allOf": [True, {"$ref": "#/$defs/loop"}, {"$ref": "#"}],
        "$defs": {"loop": loop},
    }
    assert accepts(schema, {"a": 1, "b": 2})
    assert not accepts(schema, {"c": 3})


def test_the_owners_schema_is_left_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {}}}
    compile_schema(schema, closed=True)
    assert schema == {"type": "object", "properties": {"a": {}}}
