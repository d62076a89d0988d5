from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import re
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.codes import Code
from remit.errors import SchemaError
from remit.gateway.outcome import Outcome
from remit.tools.hints import from_json, read, schema_of, to_json
from remit.tools.provider import CallContext, ToolResult
from remit.tools.schema import compile_schema

if TYPE_CHECKING:
    from fractions import Fraction


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    """A place."""

    x: int
    y: int = 0


class Tree(msgspec.Struct):
    name: str
    below: list[Tree] = []


class Options(TypedDict, total=False):
    deep: bool


class Pair(NamedTuple):
    left: int
    right: str


class Opaque:
    pass


def input_of(function: Callable[..., Any]) -> dict[str, Any]:
    return schema_of(function)[0]


def output_of(function: Callable[..., Any]) -> dict[str, Any] | None:
    return schema_of(function)[1]


def test_parameters_become_fields_and_those_without_a_default_are_required() -> None:
    def search(query: str, limit: int = 5, *, deep: bool = False) -> None: ...

    assert input_of(search) == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "default": 5},
            "deep": {"type": "boolean", "default": False},
        },
        "required": ["query"],
    }


def test_a_required_parameter_may_follow_one_with_a_default() -> None:
    def f(a: int = 1, *, b: int) -> None: ...

    signature = read(f)
    assert signature.input_schema["required"] == ["b"]
    assert signature.arguments is not None
    assert from_json({"b": 2}, signature.arguments) == signature.arguments(b=2)
    for unknown in ({"a": 1}, {"b": 2, "c": 3}):
        with pytest.raises(msgspec.ValidationError):
            from_json(unknown, signature.arguments)


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def ping() -> None: ...

    assert input_of(ping) == {"type": "object", "properties": {}}


def test_bounds_and_descriptions_come_from_annotated() -> None:
    def search(limit: Annotated[int, msgspec.Meta(ge=1, le=10, description="How many.")]) -> None: ...

    field = {"type": "integer", "minimum": 1, "maximum": 10, "description": "How many."}
    assert input_of(search)["properties"]["limit"] == field


def test_types_with_names_become_definitions() -> None:
    def draw(at: Point, colour: Colour, tree: Tree | None = None) -> None: ...

    schema = input_of(draw)
    assert schema["properties"]["at"] == {"$ref": "#/$defs/Point"}
    assert schema["properties"]["tree"] == {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}], "default": None}
    assert schema["$defs"]["Point"]["required"] == ["x"]
    assert schema["$defs"]["Colour"]["enum"] == ["blue", "red"]


@pytest.mark.parametrize(
    ("default", "shown"),
    [
        (Path("a/b"), "a/b"),
        (Colour.RED, "red"),
        (Point(1), {"x": 1, "y": 0}),
        ((1, 2), [1, 2]),
        (dt.date(2026, 1, 2), "2026-01-02"),
    ],
)
def test_a_default_is_shown_as_json(default: object, shown: object) -> None:
    def f(a: Any = default) -> None: ...

    assert input_of(f)["properties"]["a"] == {"default": shown}


def test_a_default_json_cannot_hold_still_makes_the_parameter_optional() -> None:
    def f(a: Any = Opaque()) -> None: ...  # noqa: B008 - a default JSON cannot hold

    assert input_of(f) == {"type": "object", "properties": {"a": {}}}


def test_any_and_object_take_every_json_value() -> None:
    def f(a: Any, b: object, c: dict[str, Any]) -> None: ...

    assert input_of(f)["properties"] == {"a": {}, "b": {}, "c": {"type": "object"}}


def test_the_context_is_not_an_argument() -> None:
    def f(a: int, ctx: CallContext) -> None: ...

    assert list(input_of(f)["properties"]) == ["a"]
    assert read(f).context == "ctx"


def test_the_context_is_known_even_where_it_is_imported_for_the_type_checker_only() -> None:
    module: dict[str, Any] = {"__name__": "elsewhere"}
    exec("def f(ctx: 'CallContext') -> 'ToolResult': ...", module)  # noqa: S102 - a module without our names
    assert read(module["f"]).context == "ctx"


def untyped(a) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001 - what is tested


def spread(*a: int) -> None: ...


def gathered(**a: int) -> None: ...


def positional(a: int, /) -> None: ...


def opaque(a: Opaque) -> None: ...


def nested(a: list[dict[str, Opaque]]) -> None: ...


def ambiguous(a: Point | Tree) -> None: ...


def callback(a: Callable[[], int]) -> None: ...


def unknown(b: int, a: Fraction) -> None: ...


@pytest.mark.parametrize(
    "function", [untyped, spread, gathered, positional, opaque, nested, ambiguous, callback, unknown]
)
def test_a_hint_that_has_no_schema_is_refused_with_the_names_of_function_and_parameter(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(SchemaError) as error:
        schema_of(function)
    assert f"test_hints.{function.__name__}" in error.value.message
    assert re.search(r"\b(parameter|hint of) a\b(?! parameter)", error.value.message)
    assert error.value.remedy


def test_two_types_of_one_name_are_not_mixed_up() -> None:
    other = msgspec.defstruct("Point", [("z", str)])

    def f(a: Point, b: Any) -> None: ...

    f.__annotations__["b"] = other
    with pytest.raises(SchemaError, match="b uses a second type called Point"):
        schema_of(f)


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (None, {"type": "null"}),
        (int, {"type": "integer"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (Path, {"type": "string"}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (Any, None),
        (object, None),
        (ToolResult, None),
        (Opaque, None),
    ],
)
def test_the_return_hint_becomes_the_output_schema_where_it_can(hint: Any, schema: object) -> None:
    def f() -> Any: ...

    f.__annotations__["return"] = hint
    assert output_of(f) == schema


def test_without_a_return_hint_nothing_is_promised() -> None:
    def f():  # type: ignore[no-untyped-def]  # noqa: ANN202 - what is tested
        ...

    assert output_of(f) is None


def test_a_named_return_type_brings_its_definition() -> None:
    def f() -> list[Point]:
        return []

    schema = output_of(f)
    assert schema is not None
    assert compile_schema(schema, closed=False, any_root=True).problems([{"x": 1, "y": 2}]) == []
    assert compile_schema(schema, closed=False, any_root=True).problems([{"y": 2}])


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (Path, "a/b", Path("a/b")),
        (list[PurePosixPath], ["a"], [PurePosixPath("a")]),
        (dt.datetime, "2026-01-02T03:04:05Z", dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
        (dt.timedelta, "P1D", dt.timedelta(days=1)),
        (Colour, "blue", Colour.BLUE),
        (Point, {"x": 1}, Point(1)),
        (Tree, {"name": "a", "below": [{"name": "b"}]}, Tree("a", [Tree("b")])),
        (Options, {"deep": True}, {"deep": True}),
        (Pair, [1, "b"], Pair(1, "b")),
        (bytes, "aGk=", b"hi"),
        (uuid.UUID, "00000000-0000-0000-0000-000000000001", uuid.UUID(int=1)),
        (decimal.Decimal, "1.50", decimal.Decimal("1.50")),
        (float, 1, 1.0),
        (int, 2.0, 2),
        (list[int], [1.0, 2], [1, 2]),
        (Sequence[int], [1], [1]),
        (set[str], ["a", "a"], {"a"}),
        (Any, {"a": [1]}, {"a": [1]}),
    ],
)
def test_json_becomes_what_the_hint_names(hint: Any, value: object, expected: object) -> None:
    converted = from_json(value, hint)
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(
    ("hint", "value"),
    [(int, "1"), (int, 1.5), (int, True), (Path, 3), (Colour, "green"), (Point, {}), (str, None), (dt.date, "no")],
)
def test_json_of_another_type_is_refused(hint: Any, value: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        from_json(value, hint)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Point(1, 2), {"x": 1, "y": 2}),
        ({"a": (1, (2, Path("p")))}, {"a": [1, [2, "p"]]}),
        (Pair(1, "b"), [1, "b"]),
        ({1: Colour.RED}, {"1": "red"}),
        (Tree("a", [Tree("b")]), {"name": "a", "below": [{"name": "b", "below": []}]}),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (b"hi", "aGk="),
        (frozenset(), []),
        (None, None),
    ],
)
def test_values_become_json_types_only(value: object, expected: object) -> None:
    assert to_json(value) == expected


def test_what_json_cannot_hold_is_a_type_error() -> None:
    for value in (Opaque(), {"a": [Opaque()]}, 1j, {(1, 2): 3}):
        with pytest.raises(TypeError):
            to_json(value)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.text(), st.floats(allow_nan=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=10,
)


@given(json_values)
def test_json_stays_as_it_is(value: object) -> None:
    assert to_json(value) == value
    assert from_json(value, Any) == value


def test_a_code_is_its_name_wherever_it_stands() -> None:
    outcome = Outcome(status="failed", code=Code.TOOL_TIMEOUT, reason="late")
    assert to_json({"code": outcome.code, "all": (Code.UNKNOWN_TOOL,)}) == {
        "code": "TOOL_TIMEOUT",
        "all": ["UNKNOWN_TOOL"],
    }
    assert to_json(outcome)["code"] == "TOOL_TIMEOUT"
    assert to_json(Code.TOOL_TIMEOUT) == "TOOL_TIMEOUT"
