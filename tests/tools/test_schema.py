from __future__ import annotations

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from remit.canonical import MAX_DEPTH, canonical, digest
from remit.codes import Code
from remit.errors import SchemaError
from remit.tools.schema import DeferredSchema, compile_schema, schema_hash

Schema = dict[str, Any]


def problems_of(schema: Schema, value: object, *, closed: bool = False) -> list[str]:
    return [str(problem) for problem in compile_schema(schema, closed=closed, any_root=True).problems(value)]


def test_a_good_value_has_no_problems() -> None:
    schema = compile_schema({"type": "object", "properties": {"a": {"type": "integer"}}}, closed=True)
    assert schema.problems({"a": 1}) == []


def test_problems_carry_the_contracts_codes_and_point_at_the_place() -> None:
    schema = compile_schema(
        {"type": "object", "properties": {"a/b": {"type": "integer"}, "c": {}}, "required": ["c"]}, closed=True
    )
    found = {(problem.code, problem.path) for problem in schema.problems({"a/b": "x", "d": 1})}
    assert found == {(Code.type_mismatch, "/a~1b"), (Code.missing, "/c"), (Code.unknown_field, "/d")}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (None, "null"),
        ([], "a list"),
        ("object", "a str"),
        (3, "a int"),
        (True, "a bool"),
        ([{"type": "object"}], "a list"),
    ],
)
def test_what_is_not_an_object_is_no_schema(schema: object, kind: str) -> None:
    with pytest.raises(SchemaError, match=f"a schema is a JSON object, not {kind}$") as error:
        compile_schema(schema, closed=True)
    assert error.value.code is Code.SCHEMA_INVALID


@pytest.mark.parametrize("kind", ["array", "null", "string", ["string", "null"]])
def test_arguments_need_a_root_that_admits_an_object(kind: object) -> None:
    with pytest.raises(SchemaError, match="arguments are an object"):
        compile_schema({"type": kind}, closed=True)
    assert compile_schema({"type": kind}, closed=False, any_root=True).hash


def test_a_root_that_admits_an_object_among_others_will_do() -> None:
    assert compile_schema({"type": ["object", "null"]}, closed=True).problems({}) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"required": "a"},
        {"properties": {"a": 5}},
        {"properties": {"a": {"minimum": "3"}}},
        {"$schema": "https://example.com/own-dialect"},
        {"properties": {"a": {"pattern": "("}}},
    ],
)
def test_a_schema_that_breaks_json_schemas_own_rules_is_refused(schema: Schema) -> None:
    with pytest.raises(SchemaError) as error:
        compile_schema(schema, closed=True)
    assert len(error.value.message) <= 200


def test_a_refusal_says_where_the_schema_is_wrong() -> None:
    with pytest.raises(SchemaError, match="/properties/a/minimum: "):
        compile_schema({"properties": {"a": {"minimum": "3"}}}, closed=True)


def test_nothing_is_ever_fetched() -> None:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        reference = f"http://127.0.0.1:{server.server_port}/schema.json"
        for schema in ({"$ref": reference}, {"$schema": reference}, {"$id": reference, "$ref": "other.json"}):
            with pytest.raises(SchemaError):
                compile_schema(schema, closed=True)
        server.shutdown()
    assert asked == []


def test_a_regular_expression_made_to_hang_does_not() -> None:
    schema = {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    assert problems_of(schema, {"a": "a" * 50_000 + "b"}) == ['/a must match the pattern "^(a+)+$"']


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(a{1000}){1000}"])
def test_a_regular_expression_that_could_not_run_in_linear_time_and_space_is_refused(pattern: str) -> None:
    with pytest.raises(SchemaError, match="regex"):
        compile_schema({"properties": {"a": {"pattern": pattern}}}, closed=True)


def test_the_hash_is_of_the_schema_as_its_owner_wrote_it() -> None:
    schema = {"type": "object", "properties": {"a": {}}}
    assert compile_schema(schema, closed=True).hash == schema_hash(schema) == digest(schema)
    assert compile_schema(schema, closed=False).hash == schema_hash(schema)


def test_the_order_of_keys_does_not_change_the_hash() -> None:
    assert schema_hash({"type": "object", "title": "x"}) == schema_hash({"title": "x", "type": "object"})


def test_a_schema_is_compiled_once() -> None:
    first = compile_schema({"type": "object", "properties": {"once": {}}}, closed=True)
    assert compile_schema({"properties": {"once": {}}, "type": "object"}, closed=True) is first
    assert compile_schema({"properties": {"once": {}}, "type": "object"}, closed=False) is not first


def test_only_so_many_compiled_schemas_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remit.tools.schema._cache", {})
    monkeypatch.setattr("remit.tools.schema._KEPT", 2)
    kept = [compile_schema({"title": title}, closed=True) for title in "abc"]
    assert compile_schema({"title": "c"}, closed=True) is kept[2]
    assert compile_schema({"title": "b"}, closed=True) is kept[1]
    assert compile_schema({"title": "a"}, closed=True) is not kept[0]


def test_a_change_of_the_dict_after_compiling_changes_nothing() -> None:
    schema: Schema = {"type": "object", "properties": {"late": {"type": "integer"}}}
    compiled = compile_schema(schema, closed=False)
    schema["properties"]["late"]["type"] = "string"
    assert compiled.problems({"late": 1}) == []
    assert [str(each) for each in compiled.problems({"late": "x"})] == ["/late must be integer, not string"]


@pytest.mark.parametrize("value", [object(), {"a": object()}, {"a": {1, 2}}, {1: 2}, b"bytes", {"a": b"x"}])
def test_a_value_that_is_not_json_is_a_problem_and_no_error(value: object) -> None:
    found = compile_schema({"properties": {"a": {"type": "string"}}, "type": "object"}, closed=True).problems(value)
    assert [problem.code for problem in found] == [Code.type_mismatch]


def test_text_that_utf8_cannot_hold_is_a_problem_and_no_error() -> None:
    schema = {"properties": {"a": {"type": "string", "maxLength": 3, "pattern": "^b"}}}
    assert problems_of(schema, {"a": "\ud800"})


@pytest.mark.slow
def test_a_value_nested_without_end_is_a_problem_and_does_not_end_the_process() -> None:
    value: object = 1
    for _ in range(200_000):
        value = {"a": value}
    tree = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    assert problems_of(tree, value) == ["/ is nested deeper than 200 levels"]
    assert problems_of({"properties": {"a": {"uniqueItems": True}}}, {"a": [value, value]})


def test_a_value_as_deep_as_a_recorded_one_may_be_is_checked_and_no_deeper() -> None:
    tree = {"properties": {"a": {"$ref": "#"}}, "items": {"$ref": "#"}}
    for wrap in (lambda inner: {"a": inner, "b": 1}, lambda inner: [1, inner], lambda inner: (inner,)):
        value: object = {}
        for _ in range(MAX_DEPTH - 1):
            value = wrap(value)
        canonical(value)
        assert problems_of(tree, value) == []
        assert problems_of(tree, wrap(value)) == ["/ is nested deeper than 200 levels"]


def test_the_compiler_is_loaded_with_the_first_schema_and_not_before() -> None:
    code = (
        "import sys, remit.tools.schema as s, remit.tools.catalog, remit.tools.drift;"
        "before = 'jsonschema_rs' in sys.modules;"
        "s.compile_schema({'type': 'object'}, closed=True);"
        "sys.exit(0 if not before and 'jsonschema_rs' in sys.modules else 1)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_deferred_schema_has_what_a_compiled_one_has_and_no_more() -> None:
    schema = DeferredSchema(lambda: compile_schema({"type": "object", "required": ["a"]}, closed=False))
    assert not hasattr(schema, "nothing")
    assert [problem.path for problem in schema.problems({})] == ["/a"]
    assert not hasattr(schema, "nothing")
