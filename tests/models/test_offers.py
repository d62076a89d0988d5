from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.clock import SystemClock
from remit.models.faults import Rejected
from remit.models.message import Message, ToolCall, user
from remit.models.offers import Dialect, Offers, offers_of
from remit.models.prompt import Ask, OutputForm, ToolSpec, toolset_of
from remit.models.registry import Endpoints, Models
from remit.models.thread import EMPTY
from remit.models.wires.anthropic import AnthropicMessages
from remit.models.wires.gemini import Gemini
from remit.models.wires.openai_chat import OpenAIChat
from remit.models.wires.openai_responses import OpenAIResponses
from remit.models.wires.wire import Wire
from remit.tools.schema import compile_schema

WIRES: list[Wire] = [OpenAIChat("openai"), OpenAIResponses(), AnthropicMessages(), Gemini()]
STRICT = Dialect(strict=True)

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
PAGED = {"page": {"type": "number", "minimum": 1}, "perPage": {"type": "number", "minimum": 1, "maximum": 100}}


def _object(required: str = "", **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required.split()}


# The forms of tools of servers for issues, files and chats: optional properties without a default, lists of objects.
SHAPES: dict[str, dict[str, Any]] = {
    "search": _object("query", query=TEXT, sort={**TEXT, "enum": ["stars", "forks"]}, **PAGED),
    "list": _object("owner repo", owner=TEXT, repo=TEXT, labels={"type": "array", "items": TEXT}, since=TEXT, **PAGED),
    "push": _object(
        "files", files={"type": "array", "items": _object("path content", path=TEXT, content=TEXT, mode=TEXT)}
    ),
    "review": _object(
        "body",
        body=TEXT,
        comments={"type": "array", "items": _object("path", path=TEXT, line=NUMBER, side={"type": ["string", "null"]})},
        draft={"type": "boolean"},
    ),
    "filter": _object("", filter=_object("", state=TEXT, by=_object("", user=TEXT, team=TEXT)), limit=NUMBER),
    "nullable": _object(
        "id", id=TEXT, parent={"anyOf": [TEXT, {"type": "null"}]}, tags={"type": ["array", "null"], "items": TEXT}
    ),
    "either": _object(
        "to", to={"anyOf": [_object("mail", mail=TEXT, name=TEXT), _object("channel", channel=TEXT, thread=TEXT), TEXT]}
    ),
}
UNION = {
    "type": "object",
    "properties": {"title": TEXT},
    "anyOf": [_object("content", content=TEXT), _object("source_url", source_url=TEXT)],
}


def _offers(dialect: Dialect, **schemas: dict[str, Any]) -> Offers:
    specs = [ToolSpec(name=name, description="Does it.", schema=schema) for name, schema in schemas.items()]
    return offers_of(Ask(thread=EMPTY, tools=toolset_of(specs)), dialect)


def _answer(draw: Any, schema: dict[str, Any]) -> Any:
    """What a model writes that is held to exactly the schema it was sent."""
    if "anyOf" in schema:
        return _answer(draw, draw(st.sampled_from(schema["anyOf"])))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return _MAKERS[draw(st.sampled_from(kinds))](draw, schema)


_MAKERS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "object": lambda draw, one: {name: _answer(draw, inner) for name, inner in one["properties"].items()},
    "array": lambda draw, one: [_answer(draw, one["items"]) for _ in range(draw(st.integers(0, 2)))],
    "string": lambda draw, _: draw(st.sampled_from(["", "a", "null"])),
    "number": lambda draw, one: draw(st.integers(one.get("minimum", 1), one.get("maximum", 9))),
    "integer": lambda draw, _: draw(st.integers(1, 9)),
    "boolean": lambda draw, _: draw(st.booleans()),
    "null": lambda _draw, _one: None,
}


_SCALARS = st.sampled_from([TEXT, NUMBER, {"type": "integer"}, {"type": "boolean"}, {"type": ["string", "null"]}])


@st.composite
def _objects(draw: Any, inner: Any) -> dict[str, Any]:
    properties = draw(st.dictionaries(st.sampled_from("abcd"), inner, min_size=1, max_size=3))
    required = [name for name in properties if draw(st.booleans())]
    return {"type": "object", "properties": properties, "required": required}


def _schemas() -> Any:
    inner = st.recursive(
        _SCALARS,
        lambda one: st.one_of(
            st.builds(lambda items: {"type": ["array", "null"], "items": items}, one),
            st.builds(lambda branches: {"anyOf": branches}, st.lists(one, min_size=1, max_size=3)),
            _objects(one),
        ),
        max_leaves=6,
    )
    return _objects(inner)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(list(SHAPES.values())) | _schemas())
def test_whoever_answers_strictly_to_what_was_sent_passes_the_owners_check(data: Any, schema: dict[str, Any]) -> None:
    offers = _offers(STRICT, tool=schema)
    (offer,) = offers.tools
    if not offer.strict:
        return
    written = _answer(data.draw, offer.schema)
    assert compile_schema(offer.schema, closed=True).problems(written) == []
    call = ToolCall("1-0", "tool", msgspec.json.encode(written).decode())
    (decoded,) = offers.decoded(Message("assistant", (call,))).calls
    assert compile_schema(schema, closed=True).problems(msgspec.json.decode(decoded.arguments)) == []


@pytest.mark.parametrize("name", SHAPES)
def test_usual_shapes_are_sent_strictly(name: str) -> None:
    assert _offers(STRICT, **{name: SHAPES[name]}).tools[0].strict


def test_what_the_model_wrote_stays_where_no_null_is_taken_out() -> None:
    offers = _offers(STRICT, search=SHAPES["search"])
    for arguments in ('{"query" : "x"}', "", "not json", '{"query":1e999}'):
        message = Message("assistant", (ToolCall("1-0", "search", arguments), ToolCall("1-1", "other", '{"x":null}')))
        assert offers.decoded(message) == message


# --- what a provider does not take


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.api)
@pytest.mark.parametrize(
    "schema",
    [
        UNION,
        {"type": "object", "oneOf": [_object("a", a=TEXT), _object("b", b=TEXT)]},
        {"type": "object", "allOf": [_object("a", a=TEXT), _object("b", b=TEXT)]},
        {"$ref": "#/$defs/args", "$defs": {"args": _object("a", a=TEXT)}},
        {"type": ["object", "null"], "properties": {"a": TEXT}},
        {"properties": {"a": TEXT}},
        {"type": "object", "enum": [{}]},
        {"type": "object", "not": {"required": ["a"]}},
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "array"}, "b": True}},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"a": {"items": [TEXT]}},
        },
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}}},
        {"type": "object", "properties": {"$filter": TEXT, "a": TEXT}},
    ],
)
def test_every_schema_is_sent_in_a_form_that_the_provider_takes(wire: Wire, schema: dict[str, Any]) -> None:
    ask = Ask(thread=EMPTY.add(user("x")), tools=toolset_of([ToolSpec(name="t", description="D.", schema=schema)]))
    body = wire.body("m", ask, "p/m")
    (tool,) = body["tools"]
    tool = tool.get("function", tool)
    tool = tool["functionDeclarations"][0] if "functionDeclarations" in tool else tool
    sent = next(tool[key] for key in ("parameters", "input_schema", "parametersJsonSchema") if key in tool)
    assert sent["type"] == "object"
    assert isinstance(sent["properties"], dict)
    assert not sent.keys() & {"anyOf", "oneOf", "allOf", "not", "enum", "$ref", "$schema"}
    assert all(isinstance(one, dict) for one in sent["properties"].values())
    arrays = [one for one in sent["properties"].values() if one.get("type") == "array"]
    assert all("items" in one for one in arrays)
    compile_schema(sent, closed=False)


def test_a_union_at_the_root_is_put_into_words() -> None:
    (offer,) = _offers(Dialect(), page=UNION).tools
    assert offer.schema["properties"].keys() == {"title", "content", "source_url"}
    assert "required" not in offer.schema
    assert offer.description == "Does it. Give one of these sets of arguments: content | source_url."
    kinds = [_object("kind path", kind={"const": kind}, path=TEXT) for kind in ("file", "link")]
    (offer,) = _offers(Dialect(), add={"type": "object", "oneOf": kinds}).tools
    assert offer.schema["required"] == ["kind", "path"]
    assert offer.schema["properties"]["kind"] == {
        "anyOf": [{"const": "file", "type": "string"}, {"const": "link", "type": "string"}]
    }
    assert offer.description.endswith('kind="file", path | kind="link", path.')


def test_a_tool_that_cannot_be_sent_is_left_out_alone_and_named() -> None:
    odd = _object("$filter", **{"$filter": TEXT})
    offers = _offers(AnthropicMessages.dialect, odd=odd, search=SHAPES["search"])
    assert [offer.name for offer in offers.tools] == ["search"]
    assert "$filter" in offers.left_out["odd"]
    dangling = {"type": "object", "anyOf": [_object("a", a=TEXT)], "properties": {"b": {"$ref": "#/anyOf/0"}}}
    assert _offers(Dialect(), dangling=dangling).left_out.keys() == {"dangling"}


async def test_a_question_that_wants_just_that_tool_is_refused(tmp_path: Path) -> None:
    spec = ToolSpec(name="odd", description="", schema=_object("$filter", **{"$filter": TEXT}))
    models = Models(Endpoints(), {"ANTHROPIC_API_KEY": "k"}, tmp_path, SystemClock())
    model = models.get("anthropic:m")
    ask = Ask(thread=EMPTY.add(user("x")), tools=toolset_of([spec]))
    assert model.prepare(ask).left_out.keys() == {"odd"}
    with pytest.raises(Rejected, match="filter"):
        model.prepare(msgspec.structs.replace(ask, choice="odd"))
    await models.close()


def test_a_form_of_an_answer_is_closed_for_anthropic() -> None:
    schema = _object("n", n={"type": "integer", "minimum": 1}, list={"type": "array", "items": _object("a", a=TEXT)})
    ask = Ask(thread=EMPTY.add(user("x")), output=OutputForm(name="o", schema=schema))
    sent = AnthropicMessages().body("m", ask, "p/m")["output_config"]["format"]["schema"]
    assert sent["additionalProperties"] is False
    assert sent["properties"]["n"] == {"type": "integer"}
    assert sent["properties"]["list"]["items"]["additionalProperties"] is False
