"""A request is read on every wire, and its parts are its bytes."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.models.message import Message, Opaque, Text, ToolCall, ToolMessage, user
from remit.parts.model_gateway.request_reader import Reader, RequestReading, UnreadableError
from remit.parts.model_gateway.wires import Kind, route_of

READ: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "chat": (
        "/openai/v1/chat/completions",
        {
            "model": "m",
            "max_completion_tokens": 9,
            "messages": [
                {"role": "developer", "content": "be brief"},
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "x"}}],
                },
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c1", "function": {"name": "t", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "42"},
            ],
            "tools": [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}],
        },
    ),
    "responses": (
        "/openai/responses",
        {
            "model": "m",
            "max_output_tokens": 9,
            "instructions": "be brief",
            "input": [
                {
                    "type": "additional_tools",
                    "tools": [{"type": "namespace", "name": "mcp__x", "tools": [{"name": "t"}]}],
                },
                {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                {"type": "function_call", "call_id": "c1", "namespace": "mcp__x", "name": "t", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "42"}]},
            ],
        },
    ),
    "messages": (
        "/anthropic/messages",
        {
            "model": "m",
            "max_tokens": 9,
            "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "t", "input": {}}]},
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "42"}]}
                    ],
                },
            ],
            "tools": [{"name": "t", "input_schema": {"type": "object"}}],
        },
    ),
    "gemini": (
        "/gemini/models/m:generateContent",
        {
            "generationConfig": {"maxOutputTokens": 9},
            "systemInstruction": {"parts": [{"text": "be brief"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "t", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "t", "response": {"o": 42}}}]},
            ],
            "tools": [{"functionDeclarations": [{"name": "t"}]}],
        },
    ),
}


def read(path: str, body: Any, reader: Reader | None = None) -> RequestReading:
    route = route_of("POST", path)
    assert route is not None
    encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (reader or Reader()).read(route, encoded)


@pytest.mark.parametrize("wire", READ)
def test_a_conversation_is_read_on_every_wire(wire: str) -> None:
    path, body = READ[wire]
    reading = read(path, body)
    messages = [
        message
        for message in reading.thread.messages()
        if not any(isinstance(b, Opaque) and "additional" in b.data for b in message.blocks)
    ]
    assert [message.role for message in messages] == ["system", "user", "assistant", "tool"]
    assert (messages[0].text, messages[1].text) == ("be brief", "hi")
    [call], [result] = messages[2].calls, messages[3].blocks
    assert isinstance(result, ToolMessage)
    assert (call.id, result.id, "42" in result.text, reading.results) == ("c1", "c1", True, ("c1",))
    assert [spec.name.rpartition(".")[2] for spec in reading.tools.specs] == ["t"]
    assert (reading.model, reading.sampling.max_output_tokens, reading.streams) == ("m", 9, False)
    assert b"".join(reading.segments) == json.dumps(body).encode()
    assert len(reading.segments) > 3


def test_a_namespace_stands_before_the_names_of_its_tools() -> None:
    path, body = READ["responses"]
    reading = read(path, body)
    assert [spec.name for spec in reading.tools.specs] == ["mcp__x.t"]
    assert [call.name for message in reading.thread.messages() for call in message.calls] == ["mcp__x.t"]


def test_marks_that_move_make_no_new_message() -> None:
    reader, body = Reader(), {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}
    first = read("/anthropic/v1/messages", body, reader)
    body["messages"][0]["content"][0]["cache_control"] = {"type": "ephemeral"}  # type: ignore[index]
    assert read("/anthropic/v1/messages", body, reader).thread.tip == first.thread.tip


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"messages": 7}', b'{"messages": ["\\ud800"]}', b"\xff", b"[" * 99_999]
)
def test_what_cannot_be_read_is_said(body: bytes) -> None:
    with pytest.raises(UnreadableError):
        read("/openai/v1/chat/completions", body)


BLOCKS = st.sampled_from(["hi", "", 'a"b', "é", [{"type": "text", "text": "x"}], None, 7, {"text": "y"}])


@given(
    st.lists(st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "x"]), "content": BLOCKS})),
    st.integers(0, 4),
)
def test_parts_are_always_the_bytes(messages: list[Any], indent: int) -> None:
    body = json.dumps({"model": "m", "messages": messages, "stream": True}, indent=indent or None).encode()
    assert b"".join(read("/openai/v1/chat/completions", body).segments) == body


ROUTES: Final[list[tuple[str, str, str, Kind]]] = [
    ("POST", "/openai/v1/responses", "/v1/responses", "model"),
    ("POST", "/openai/responses", "/v1/responses", "model"),
    ("POST", "/anthropic/v1/messages", "/v1/messages", "model"),
    ("POST", "/anthropic/messages", "/v1/messages", "model"),
    ("POST", "/anthropic/v1/messages/count_tokens", "/v1/messages/count_tokens", "count"),
    ("GET", "/openai/v1/models", "/v1/models", "aside"),
    ("POST", "/openai/v1/embeddings", "/v1/embeddings", "other"),
    ("POST", "/gemini/v1beta/models/m:streamGenerateContent", "/v1beta/models/m:streamGenerateContent", "model"),
    ("POST", "/gemini/models/m:generateContent", "/v1beta/models/m:generateContent", "model"),
    ("POST", "/gemini/v1/models/m:generateContent", "/v1/models/m:generateContent", "model"),
    ("POST", "/gemini/v1beta/models/m:countTokens", "/v1beta/models/m:countTokens", "count"),
]


@pytest.mark.parametrize(("method", "path", "wanted", "kind"), ROUTES)
def test_a_path_is_known_with_the_version_and_without(method: str, path: str, wanted: str, kind: Kind) -> None:
    route = route_of(method, path)
    assert route is not None
    assert (route.path, route.kind) == (wanted, kind)


def test_other_paths_are_not_ours() -> None:
    assert [route_of("POST", path) for path in ("/", "/openaix/v1", "/v1/messages")] == [None] * 3


def test_messages_are_those_of_remit() -> None:
    body = {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "t", "input": {"x": 1}}]},
        ]
    }
    assert read("/anthropic/v1/messages", body).thread.messages() == [
        user("hi"),
        Message("assistant", (ToolCall("c", "t", '{"x":1}'),)),
    ]
    assert Text("hi") == user("hi").blocks[0]
