from __future__ import annotations

from typing import Any

import pytest

from remit.errors import SchemaError
from remit.tools.limits import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_EXPANDED,
    MAX_PATTERNS,
    MAX_SUBSCHEMAS,
    check_limits,
)
from remit.tools.schema import compile_schema

Schema = dict[str, Any]


def test_the_limits_are_those_of_the_design() -> None:
    assert (MAX_DEPTH, MAX_SUBSCHEMAS, MAX_BYTES) == (32, 2_000, 256_000)


def nested(levels: int) -> Schema:
    schema: Schema = {"type": "string"}
    for _ in range(levels - 1):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def chain_of_definitions(length: int, *, twice: bool) -> Schema:
    """Definitions that each refer to the next one, once or twice."""
    definitions: Schema = {
        f"d{index}": {"anyOf": [{"$ref": f"#/$defs/d{index + 1}"}] * (2 if twice else 1)} for index in range(length)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{length}": {"type": "string"}}}


def test_a_schema_may_be_as_deep_as_the_limit_and_no_deeper() -> None:
    check_limits(nested(MAX_DEPTH))
    with pytest.raises(SchemaError, match=f"{MAX_DEPTH + 1} levels deep"):
        check_limits(nested(MAX_DEPTH + 1))


def test_depth_hidden_in_any_keyword_counts() -> None:
    for keyword in ("items", "not", "additionalProperties", "contains", "propertyNames", "if", "unevaluatedItems"):
        schema: Schema = {}
        for _ in range(MAX_DEPTH + 1):
            schema = {keyword: schema}
        with pytest.raises(SchemaError, match="levels deep"):
            check_limits(schema)


def test_a_schema_may_have_as_many_subschemas_as_the_limit_and_no_more() -> None:
    check_limits({"properties": {f"p{index}": {} for index in range(MAX_SUBSCHEMAS - 1)}})
    with pytest.raises(SchemaError, match="subschemas"):
        check_limits({"properties": {f"p{index}": True for index in range(MAX_SUBSCHEMAS)}})


def test_subschemas_that_only_a_reference_finds_are_counted() -> None:
    hidden = {"anyOf": [{"minLength": index} for index in range(MAX_SUBSCHEMAS)]}
    with pytest.raises(SchemaError, match="subschemas"):
        check_limits({"$ref": "#/x-hidden/schema", "x-hidden": {"schema": hidden}})


def test_doubled_references_are_counted_as_often_as_they_are_checked() -> None:
    assert check_limits(chain_of_definitions(10, twice=True)).recursive is False
    with pytest.raises(SchemaError, match=f"more than {MAX_EXPANDED}"):
        check_limits(chain_of_definitions(26, twice=True))


def test_the_expanded_size_may_be_as_large_as_the_limit_and_no_larger() -> None:
    hundred = {"anyOf": [{"minLength": each} for each in range(99)]}
    uses = (MAX_EXPANDED - 2) // 101
    spare = MAX_EXPANDED - 1 - 101 * uses
    fits: Schema = {"$defs": {"x": hundred}, "anyOf": [{"$ref": "#/$defs/x"}] * uses, "allOf": [{}] * spare}
    check_limits(fits)
    with pytest.raises(SchemaError, match="expands"):
        check_limits({**fits, "allOf": [{}] * (spare + 1)})


def test_a_long_chain_of_references_is_fine_and_does_not_exhaust_the_stack() -> None:
    assert check_limits(chain_of_definitions(900, twice=False)).recursive is False


def test_a_schema_that_refers_to_itself_is_told_from_one_that_does_not() -> None:
    tree: Schema = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
    assert check_limits(tree).recursive
    by_anchor: Schema = {"$anchor": "node", "properties": {"next": {"$ref": "#node"}}}
    assert check_limits(by_anchor).recursive
    shared: Schema = {"properties": {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/$defs/x"}}, "$defs": {"x": {}}}
    assert not check_limits(shared).recursive


def test_a_schema_may_be_as_long_as_the_limit_and_no_longer() -> None:
    spare = MAX_BYTES - len('{"description":""}')
    check_limits({"description": "x" * spare})
    with pytest.raises(SchemaError, match="bytes"):
        check_limits({"description": "x" * (spare + 1)})


def test_the_number_of_regular_expressions_is_limited_wherever_they_stand() -> None:
    fits = {"properties": {f"p{index}": {"pattern": "a"} for index in range(MAX_PATTERNS)}}
    check_limits(fits)
    with pytest.raises(SchemaError, match="regular expressions"):
        check_limits({**fits, "patternProperties": {"^x": {}}})


@pytest.mark.parametrize("value", [float("nan"), object(), {1: 2}, "\ud800"])
def test_a_schema_without_a_canonical_form_is_refused(value: object) -> None:
    with pytest.raises(SchemaError, match="canonical"):
        check_limits({"default": value})


def test_a_schema_that_contains_itself_as_an_object_is_refused() -> None:
    schema: Schema = {"type": "object"}
    schema["properties"] = {"a": schema}
    with pytest.raises(SchemaError):
        check_limits(schema)


@pytest.mark.parametrize(
    "reference",
    [
        "https://example.com/schema.json",
        "file:///etc/passwd",
        "other.json",
        "other.json#/$defs/x",
        "#/$defs/missing",
        "#/type",
        "#nowhere",
        "#/$defs/%FF",
        "#/allOf/1",
        "#/allOf/x",
    ],
)
def test_a_reference_that_leaves_the_schema_or_hangs_is_refused(reference: str) -> None:
    with pytest.raises(SchemaError, match=r"\$ref"):
        check_limits({"type": "object", "allOf": [{}], "properties": {"a": {"$ref": reference}}})


@pytest.mark.parametrize(
    "reference",
    ["#", "#/$defs/x", "#/$defs/a~1b%20c", "#named", "https://example.com/root#/$defs/x", "#/anyOf/0"],
)
def test_a_reference_into_the_schema_is_followed(reference: str) -> None:
    check_limits(
        {
            "$id": "https://example.com/root",
            "properties": {"a": {"$ref": reference}},
            "anyOf": [{}],
            "$defs": {"x": {}, "a/b c": {"$anchor": "named"}},
        }
    )


def test_an_id_below_the_root_is_refused_because_it_changes_what_references_mean() -> None:
    with pytest.raises(SchemaError, match=r"/properties/a has an \$id"):
        check_limits({"properties": {"a": {"$id": "https://example.com/a", "$ref": "#/$defs/x"}}})


def test_the_old_spelling_of_an_id_counts_only_where_it_means_one() -> None:
    schema: Schema = {"properties": {"a": {"id": "https://example.com/a"}}}
    check_limits(schema)
    with pytest.raises(SchemaError, match="id of its own"):
        check_limits({"$schema": "http://json-schema.org/draft-04/schema#", **schema})


def test_a_property_called_like_a_keyword_is_only_a_property() -> None:
    check_limits({"properties": {"$id": {"type": "string"}, "$ref": {"type": "string"}, "pattern": {}, "id": {}}})


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
