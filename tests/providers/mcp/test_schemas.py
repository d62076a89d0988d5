"""A server's schema is held to as far as it can be run, and is never held to more than it says."""

from __future__ import annotations

from typing import Any

import pytest

from remit.providers.mcp.offers import full_name, meta_of
from remit.settings.mcp import McpServer
from remit.tools.meta import ToolMeta
from remit.tools.schema import compile_schema
from tests.providers.mcp.world import tool

LOOKS = {"type": "string", "pattern": "^(?!x)"}


def meta(raw: dict[str, Any]) -> ToolMeta:
    return meta_of(McpServer(name="s"), full_name("s", raw["name"]), raw)


def test_a_keyword_with_null_is_absent_and_a_null_that_is_a_value_stays() -> None:
    kept = {"const": None, "default": None, "enum": [None, 1]}
    schema = {
        "type": "object",
        "required": None,
        "$defs": None,
        "properties": {"a": {"type": "array", "items": {**kept, "pattern": None}}, "required": {"enum": None}},
        "anyOf": [{"required": None}],
    }
    raw = tool("x", inputSchema=schema, outputSchema=None)
    found = meta(raw)
    properties = {"a": {"type": "array", "items": kept}, "required": {}}
    assert found.input_schema == {"type": "object", "properties": properties, "anyOf": [{}]}
    assert found.output_schema is None
    assert found.definition is raw
    assert schema["required"] is None


def test_a_schema_without_empty_keywords_is_as_written() -> None:
    schema = {"type": "object", "properties": {"a": {"default": None}}}
    assert meta(tool("x", inputSchema=schema)).input_schema is schema


@pytest.mark.parametrize("expression", ["^(?=a)b", r"(a)\1", "(a{1000}){1000}", "["])
def test_an_expression_that_cannot_be_run_is_left_to_the_server(expression: str) -> None:
    field = {"type": "string", "pattern": expression, "maxLength": 3}
    schema = {"type": "object", "properties": {"a": field, "b": {"type": "string", "pattern": "^b"}}}
    found = meta(tool("x", inputSchema=schema, outputSchema={"type": "string", "pattern": expression}))
    assert found.unchecked == ("inputSchema/properties/a/pattern", "outputSchema/pattern")
    assert found.input_schema is not None
    gate = compile_schema(found.input_schema, closed=True)
    assert gate.problems({"a": "any", "b": "b"}) == []
    assert all(gate.problems(wrong) for wrong in ({"a": "long"}, {"a": 1}, {"b": "a"}, {"c": 1}))
    assert field["pattern"] == expression
    assert found.definition is not None
    assert found.definition["inputSchema"] is schema


def test_expressions_that_run_are_as_written() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a"}}}
    found = meta(tool("x", inputSchema=schema))
    assert (found.input_schema is schema, found.unchecked) == (True, ())


def in_a(schema: dict[str, Any], **root: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, **root}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (in_a({"not": LOOKS}), {"a": "xy"}),
        (in_a({"not": {"$ref": "#/$defs/d"}}, **{"$defs": {"d": LOOKS}}), {"a": "xy"}),
        (in_a({"oneOf": [LOOKS, {"type": "string", "maxLength": 2}]}), {"a": "xy"}),
        (in_a({"oneOf": [{"$ref": "#/$defs/d"}, {"const": "xy"}]}, **{"$defs": {"d": LOOKS}}), {"a": "xy"}),
        (in_a({"if": LOOKS, "then": {"const": 1}, "else": {"maxLength": 2}}), {"a": "xy"}),
        (in_a({"type": "array", "contains": LOOKS, "maxContains": 1}), {"a": ["a", "xy"]}),
        ({"type": "object", "patternProperties": {"^(?!x)": {}}, "additionalProperties": False}, {"a": 1}),
        (
            in_a({"patternProperties": {"^(?!x)": {"type": "string"}}, "additionalProperties": {"type": "integer"}}),
            {"a": {"b": "text", "x": 1}},
        ),
        (in_a({}, allOf=[{"if": in_a(LOOKS), "then": {"properties": {"b": {}}}}]), {"a": "x", "b": 1}),
        (in_a({}, oneOf=[in_a(LOOKS), {"properties": {"b": {}}, "required": ["b"]}]), {"a": "x", "b": 1}),
        ({**in_a({}, allOf=[in_a(LOOKS)]), "unevaluatedProperties": False}, {"a": "b"}),
    ],
)
def test_what_the_server_takes_is_never_refused_for_want_of_an_expression(schema: Any, value: Any) -> None:
    found = meta(tool("x", inputSchema=schema))
    assert len(found.unchecked) == 1
    assert found.input_schema is not None
    assert compile_schema(found.input_schema, closed=True).problems(value) == []
