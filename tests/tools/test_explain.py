from __future__ import annotations

import time
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.codes import Code
from remit.tools.explain import MAX_CHECKS, MAX_PROBLEMS
from remit.tools.schema import compile_schema

Schema = dict[str, Any]


def explained(schema: Schema, value: object, *, closed: bool = False) -> list[str]:
    return [str(problem) for problem in compile_schema(schema, closed=closed, any_root=True).problems(value)]


def of(schema: Schema, value: object) -> list[str]:
    """What is wrong with one field `a` under a schema."""
    return [line.removeprefix("/a ") for line in explained({"properties": {"a": schema}}, {"a": value})]


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": "integer"}, "x", "must be integer, not string"),
        ({"type": "integer"}, True, "must be integer, not boolean"),
        ({"type": "integer"}, 1.5, "must be integer, not number"),
        ({"type": ["string", "null"]}, [], "must be string or null, not array"),
        ({"minimum": 3}, 2, "must be at least 3"),
        ({"exclusiveMaximum": 3}, 3, "must be less than 3"),
        ({"multipleOf": 5}, 7, "must be a multiple of 5"),
        ({"minLength": 2}, "x", "must be at least 2 characters long"),
        ({"pattern": "^[a-z]$"}, "7", 'must match the pattern "^[a-z]$"'),
        ({"maxItems": 1}, [1, 2], "must have at most 1 items"),
        ({"uniqueItems": True}, [1, 1], "must not repeat an item"),
        ({"contains": {"type": "null"}}, [1], "lacks an item it must contain"),
        ({"enum": ["red", "blue"]}, "green", "must be one of red, blue"),
        ({"enum": [1, "two words", None]}, 2, 'must be one of 1, "two words", null'),
        ({"const": {"x": 1}}, 2, 'must be {"x":1}'),
        ({"not": {"type": "string"}}, "x", "is what the schema excludes"),
        ({"not": {"$ref": "#"}}, {"b": 1}, "is what the schema excludes"),
        ({"allOf": [{"minimum": 3}, {"minimum": 3}]}, 1, "must be at least 3"),
        ({"minProperties": 1}, {}, "must have at least 1 fields"),
        ({"contains": {"type": "null"}, "minContains": 0, "maxItems": 1}, [1, 2], "must have at most 1 items"),
        ({"contains": {"type": "null"}, "maxContains": 1}, [None, None], "contains an item too often"),
        (False, 1, "is not allowed"),
        ({"if": {"type": "string"}, "then": {"minLength": 2}}, "x", "must be at least 2 characters long"),
        ({"if": {"type": "string"}, "else": {"minimum": 2}}, 1, "must be at least 2"),
        ({"allOf": [{"minimum": 3}, {"type": "integer"}]}, 1, "must be at least 3"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", "must be integer or null, not string"),
        ({"anyOf": [{"minimum": 3}, {"maximum": 1}]}, 2, "matches none of 2 alternatives"),
        ({"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 2, "matches 2 alternatives that exclude each other"),
        ({"anyOf": [{}, {}], "minimum": 3}, 1, "must be at least 3"),
        ({"oneOf": [{}, False], "minimum": 3}, 1, "must be at least 3"),
        ({"unevaluatedItems": False}, [1], "does not satisfy the schema"),
    ],
)
def test_each_kind_of_mistake_has_its_words(schema: Schema, value: object, message: str) -> None:
    assert of(schema, value) == [message]


def test_a_field_whose_name_is_not_allowed_is_named() -> None:
    found = compile_schema({"propertyNames": {"maxLength": 1}}, closed=False).problems({"a": 1, "long": 2})
    assert [(problem.code, str(problem)) for problem in found] == [(Code.unknown_field, "/long is not an allowed name")]


def test_a_date_of_the_wrong_form_is_named_where_the_dialect_checks_formats() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"type": "string", "format": "date"}},
    }
    assert explained(schema, {"a": "yesterday"}) == ["/a must be a valid date"]


def test_every_mistake_is_told_at_its_own_place() -> None:
    schema = {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "items": {"type": "object", "required": ["id"]},
                "prefixItems": [{"type": "null"}],
            },
            "ref": {"$ref": "#/$defs/positive~1number"},
        },
        "patternProperties": {"^x-": {"type": "string"}},
        "required": ["name"],
        "dependentRequired": {"ref": ["other"]},
        "$defs": {"positive/number": {"type": "number", "exclusiveMinimum": 0}},
    }
    value = {"items": [1, {"id": 1}, {}], "ref": 0, "x-a": 1, "unheard": 1}
    assert sorted(explained(schema, value, closed=True)) == [
        "/items/0 must be null, not integer",
        "/items/2/id is required",
        "/name is required",
        "/other is required beside ref",
        "/ref must be greater than 0",
        "/unheard is not a known field",
        "/x-a must be string, not integer",
    ]


def test_tuples_of_an_old_draft_are_followed() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "items": [{"type": "null"}],
        "additionalItems": {"type": "string"},
    }
    assert explained(schema, [1, 2]) == ["/0 must be null, not integer", "/1 must be string, not integer"]


def test_an_optional_object_is_looked_into_rather_than_called_no_alternative() -> None:
    schema = {"anyOf": [{"$ref": "#/$defs/point"}, {"type": "null"}]}
    document = {
        "properties": {"a": schema},
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x", "y"]}},
    }
    assert explained(document, {"a": {"x": "1"}}) == ["/a/y is required", "/a/x must be integer, not string"]


def test_a_tagged_alternative_is_told_by_its_tag() -> None:
    circle = {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["r"]}
    square = {"type": "object", "properties": {"kind": {"enum": ["square"]}, "side": {}}, "required": ["side"]}
    assert explained({"oneOf": [circle, square]}, {"kind": "circle"}) == ["/r is required"]
    assert explained({"oneOf": [circle, square]}, {"kind": "square"}) == ["/side is required"]


def test_a_field_unknown_to_a_combined_root_is_named() -> None:
    schema = {"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}, "patternProperties": {"^x": {}}}]}
    found = compile_schema(schema, closed=True).problems({"a": 1, "b": 2, "x1": 3, "c": 4})
    assert [(problem.code, problem.path) for problem in found] == [(Code.unknown_field, "/c")]


SECRET = "hunter2-hunter2"
any_schema = st.recursive(
    st.sampled_from(
        [
            {"type": "integer"}, {"type": "string", "maxLength": 3}, {"type": "null"}, {"enum": [1, "a", None]},
            {"const": "b"}, {"minimum": 2}, {"pattern": "^[0-9]$"}, {"type": ["boolean", "array"]}, {}, True, False,
            {"$ref": "#/$defs/leaf"}, {"minContains": 0}, {"propertyNames": {"maxLength": 1}}, {"$ref": "#"},
            {"$ref": "#/$defs/node"}, {"required": ["a"]}, {"uniqueItems": True},
        ]
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {},
            optional={
                "properties": st.dictionaries(st.sampled_from(["a", "b", "c/d", "e~f", "%20"]), inner, max_size=3),
                "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=2),
                "additionalProperties": inner,
                "unevaluatedProperties": st.just(value=False),
                "items": inner,
                "prefixItems": st.lists(inner, min_size=1, max_size=2),
                "dependentSchemas": st.dictionaries(st.just("a"), inner, max_size=1),
            },
        ),
        st.dictionaries(
            st.sampled_from(["allOf", "anyOf", "oneOf"]), st.lists(inner, min_size=1, max_size=3), max_size=2
        ),
        st.dictionaries(st.sampled_from(["not", "if", "then", "else", "contains"]), inner, max_size=3),
    ),
    max_leaves=8,
)  # fmt: skip
any_value = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 5), st.just(2.5), st.sampled_from(["a", "b", "7", SECRET])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "c/d", "e~f", "%20", "ab"]), inner, max_size=3),
    ),
    max_leaves=8,
)
definitions = {
    "leaf": {"type": "string"},
    "node": {"properties": {"a": {"$ref": "#/$defs/node"}, "b": {"type": "null"}}},
}


@given(any_schema, any_value)
def test_there_are_problems_exactly_where_the_validator_says_so(schema: Schema | bool, value: object) -> None:
    document = {"allOf": [schema], "$defs": definitions}
    found = compile_schema(document, closed=False).problems(value)
    assert bool(found) is not jsonschema_rs.is_valid(document, value)
    assert len(found) <= MAX_PROBLEMS


@given(any_schema, any_value)
def test_no_problem_quotes_the_value(schema: Schema | bool, value: object) -> None:
    for problem in compile_schema({"allOf": [schema], "$defs": definitions}, closed=False).problems(value):
        assert SECRET not in problem.message


@given(any_schema, any_value)
def test_every_path_points_at_something_in_the_value_or_missing_from_it(schema: Schema | bool, value: object) -> None:
    for problem in compile_schema({"allOf": [schema], "$defs": definitions}, closed=False).problems(value):
        steps = [step.replace("~1", "/").replace("~0", "~") for step in problem.path.split("/")[1:]]
        here: Any = value
        for step in steps[:-1] if problem.code is Code.missing else steps:
            here = here[int(step)] if isinstance(here, list) else here[step]
        if problem.code is Code.missing:
            assert steps[-1] not in here


def test_no_more_problems_are_told_than_anybody_reads() -> None:
    found = explained({"items": {"type": "string"}}, list(range(300_000)))
    assert len(found) == MAX_PROBLEMS


def test_a_mistake_among_too_many_good_parts_is_still_a_problem() -> None:
    schema = {"items": {"type": "string"}}
    assert explained(schema, ["x"] * (MAX_CHECKS - 1) + [1]) == [f"/{MAX_CHECKS - 1} must be string, not integer"]
    assert explained(schema, ["x"] * MAX_CHECKS + [1]) == ["/ is too large to say where it is wrong"]


def test_very_many_fields_do_not_compile_their_patterns_each() -> None:
    compiled = compile_schema({"properties": {}, "patternProperties": {"^x": {}, "^y": {}}}, closed=True)
    began = time.process_time()
    found = compiled.problems({f"z{each}": each for each in range(50_000)})
    assert len(found) == MAX_PROBLEMS
    assert time.process_time() - began < 1


def test_a_long_name_is_cut_in_path_and_message() -> None:
    found = compile_schema({"properties": {}, "required": ["r" * 1000]}, closed=True).problems({"x" * 10_000: 1})
    assert found
    assert all(len(problem.path) <= 200 and len(problem.message) <= 200 for problem in found)


def test_alternatives_nested_within_one_another_take_no_exponential_time() -> None:
    branch = {"properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    value: object = {}
    for _ in range(190):
        value = {"a": value}
    assert explained({"anyOf": [branch, {**branch, "minProperties": 1}]}, value)


def test_a_value_wrong_at_great_depth_is_explained_as_far_as_the_way_was_followed() -> None:
    value: object = {"a": 1}
    for _ in range(190):
        value = {"a": value}
    tree = {"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}
    (only,) = compile_schema(tree, closed=False).problems(value)
    assert only.message == "does not satisfy the schema"
    assert only.path.startswith("/a/a/a")


def test_a_mistake_under_draft_4_is_explained() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"a": {"minimum": 3, "exclusiveMinimum": True}},
    }
    assert explained(schema, {"a": 3}) == ["/a does not satisfy the schema"]


def test_fields_that_a_part_of_the_schema_lets_in_are_not_called_unknown() -> None:
    for others in ("additionalProperties", "unevaluatedProperties"):
        part = {"properties": {"a": {"type": "integer"}}, others: {"type": "string"}}
        found = compile_schema({"allOf": [part], "unevaluatedProperties": False}, closed=False).problems(
            {"a": "", "b": "x"}
        )
        assert [(problem.code, problem.path) for problem in found] == [(Code.type_mismatch, "/a")]
