"""Which defaults of a schema hold for a call: those of what it leaves out, at every depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from remit import tool
from remit.tools.schema import compile_schema

Schema = dict[str, Any]
POINT: Schema = {"type": "object", "properties": {"x": {"default": 0}, "y": {"default": 0}}}
CIRCLE: Schema = {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"default": 1}}}
SQUARE: Schema = {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"default": 2}}}


class Options(msgspec.Struct):
    """A Struct with defaults."""

    recursive: bool = True
    names: list[str] = []


@dataclass
class Job:
    """A dataclass that holds one."""

    name: str
    options: Options
    hours: int = 8


@tool("odd.clean")
def clean(path: str, job: Job, options: Options = Options(recursive=False), limit: int = 100) -> None:  # noqa: B008 - such a default is the subject
    """Clean."""


def declared(schema: Schema, value: Any) -> dict[str, Any] | None:
    return compile_schema({"type": "object", **schema}, closed=False).defaults(value)


@pytest.mark.parametrize(
    ("properties", "value", "defaults"),
    [
        ({"a": {"default": 1}, "b": {"default": None}, "c": {}}, {}, {"/a": 1, "/b": None}),
        ({"a": {"default": 1}}, {"a": None}, {}),
        ({"a/b~": {"default": 1}}, {}, {"/a~1b~0": 1}),
        ({"p": POINT}, {}, {}),
        ({"p": POINT}, {"p": {"y": 1}}, {"/p/x": 0}),
        ({"p": {**POINT, "default": {"x": 1}}}, {}, {"/p": {"x": 1}, "/p/y": 0}),
        ({"p": {"type": "array", "items": POINT}}, {"p": [{"x": 1, "y": 1}, {"x": 1}]}, {"/p/1/y": 0}),
        ({"p": {"prefixItems": [{}, POINT], "items": POINT}}, {"p": [{}, {"x": 1}, {"x": 1}, 2]},
         {"/p/1/y": 0, "/p/2/y": 0}),
        ({"p": {"type": "object", "additionalProperties": POINT}}, {"p": {"a": {"x": 1}}}, {"/p/a/y": 0}),
        ({"p": {"anyOf": [POINT, {"type": "null"}]}}, {"p": {"x": 1}}, {"/p/y": 0}),
        ({"p": {"anyOf": [POINT, {"type": "null"}], "default": None}}, {}, {"/p": None}),
        ({"p": {"allOf": [POINT]}}, {"p": {"x": 1}}, {"/p/y": 0}),
        ({"p": {"oneOf": [CIRCLE, SQUARE]}}, {"p": {"kind": "square"}}, {"/p/side": 2}),
        ({"p": {"oneOf": [CIRCLE, SQUARE]}}, {"p": {}}, {}),
        ({"p": {"oneOf": [{**CIRCLE, "required": ["kind"]}, POINT]}}, {"p": {"x": 1}}, {"/p/y": 0}),
        ({"p": {"not": POINT, "if": POINT, "then": POINT}}, {"p": {}}, {}),
        ({"p": True}, {"p": {}}, {}),
        ({"p": POINT}, {"p": "text"}, {}),
    ],
)  # fmt: skip
def test_a_default_holds_where_the_value_leaves_it_out(properties: Schema, value: Any, defaults: Schema) -> None:
    assert declared({"properties": properties}, value) == defaults


def test_references_are_followed() -> None:
    schema = {"properties": {"p": {"$ref": "#/$defs/P"}, "q": {"$ref": "#/$defs/Q"}},
              "$defs": {"P": POINT, "Q": {"default": "q"}}}  # fmt: skip
    assert declared(schema, {"p": {}}) == {"/q": "q", "/p/x": 0, "/p/y": 0}


def test_defaults_without_end_are_not_told() -> None:
    node = {"properties": {name: {"$ref": "#/$defs/N", "default": {}} for name in "ab"}}
    assert declared({"properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}}, {"n": {}}) is None
    assert declared({"properties": {"p": {"items": POINT}}}, {"p": [{"x": 1, "y": 1}] * 20_000}) is None


def test_defaults_of_types_are_told_at_every_depth() -> None:
    schema = compile_schema(clean.meta.input_schema, closed=True, typed=True)
    assert schema.defaults({"path": "x", "job": {"name": "n", "options": {"names": ["a"]}}}) == {
        "/options": {"recursive": False, "names": []},
        "/limit": 100,
        "/job/hours": 8,
        "/job/options/recursive": True,
    }
