"""A provider of models that lies: its answers are data, its calls are checked, and its numbers refund nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from remit.models.arguments import InvalidArgumentsError, arguments_of
from remit.models.faults import ModelFault
from remit.models.message import system, user
from remit.models.prompt import Ask, toolset_of
from remit.models.reply import ModelReply, unwatched
from remit.models.thread import thread_of
from remit.models.wires.anthropic import AnthropicMessages
from remit.models.wires.gemini import Gemini
from remit.models.wires.openai_chat import OpenAIChat
from remit.models.wires.openai_responses import OpenAIResponses
from remit.models.wires.wire import Wire
from remit_testing.models.checks import PAY

ASK = Ask(thread=thread_of([system("s"), user("u")]), tools=toolset_of([PAY]), id="ask")
WIRES: tuple[Wire, ...] = (AnthropicMessages(), Gemini(), OpenAIChat("openai"), OpenAIResponses())


def fed(wire: Wire, *events: Any) -> ModelReply | None:
    """The reply, or None for a fault."""
    reducer = wire.reducer(ASK, "p/m")
    try:
        for event in events:
            reducer.feed(event if isinstance(event, bytes) else msgspec.json.encode(event), unwatched)
        return reducer.reply()
    except ModelFault:
        return None


def chat(*calls: dict[str, Any], usage: Any = None) -> ModelReply | None:
    """What a chat's answer with these calls comes to."""
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [one]}}]} for one in calls]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}], "usage": usage}
    return fed(OpenAIChat("openai"), *chunks, end, b"[DONE]")


HOSTILE: tuple[Any, ...] = (
    b"{", b"[]", b"null", b"\xff\xfe", b"[" * 50_000, b'{"a":' * 50_000, b'{"error": [[]]}', b"1e999",
    {"type": "error", "error": {"type": ["x"], "message": {"a": 1}}}, {"choices": "x"}, {"choices": [[]]},
    {"choices": [{"delta": {"tool_calls": {"index": 0}}}]}, {"candidates": {"content": 1}},
    {"candidates": [{"content": {"parts": [{"functionCall": {"name": 7, "args": "x"}}]}}]},
    {"type": "content_block_start", "index": "0", "content_block": []}, {"type": ["message_start"]},
    {"type": "content_block_delta", "index": 10**9, "delta": {"type": "text_delta", "text": 1}},
    {"type": "message_delta", "delta": None, "usage": []}, {"type": "response.completed", "response": 1},
    {"type": "response.output_item.done", "item": {"type": "function_call", "arguments": None}},
)  # fmt: skip


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
@pytest.mark.parametrize("event", HOSTILE, ids=lambda event: str(event)[:24])
def test_a_hostile_event_is_a_fault_and_never_an_answer(wire: Wire, event: Any) -> None:
    found = fed(wire, event)
    assert found is None or found.calls == ()


@pytest.mark.parametrize("tokens", [-1, -(10**9), "5", 1.5, None, [], True, {"a": 1}, float("-inf")])
def test_no_number_of_tokens_refunds_what_was_spent(tokens: Any) -> None:
    given = {"prompt_tokens": tokens, "completion_tokens": tokens, "total_tokens": tokens}
    encoded = {name: 0 if value == float("-inf") else value for name, value in given.items()}
    found = chat({"index": 0, "id": "a", "function": {"name": "bank__pay", "arguments": "{}"}}, usage=encoded)
    assert found is None or found.usage is None or found.usage.total >= 0


def test_identifiers_of_calls_are_remit_s_own() -> None:
    """A provider that repeats one cannot pass a result off as that of another, trusted call."""
    call = {"id": "same", "function": {"name": "bank__pay", "arguments": "{}"}}
    found = chat({**call, "index": 0}, {**call, "index": 1})
    assert found is not None
    assert len({one.id for one in found.calls}) == len(found.calls)
    assert all(one.id.startswith("ask-") for one in found.calls)


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", '"x"', "1", "{", '{"a": 1}{"a": 2}', '{"a": NaN}', '{"a": 1e999}', '{"a": ' * 5_000,
        '{"\\ud800": 1}', '{"a": "\\ud800"}', "{'a': 1}", '\ufeff{"a": 1}',
    ],
)  # fmt: skip
def test_arguments_that_are_no_plain_object_are_refused(text: str) -> None:
    try:
        found = arguments_of(text)
    except InvalidArgumentsError:
        return
    assert isinstance(found, dict)
    msgspec.json.encode(found)


def test_of_a_key_that_stands_twice_one_value_is_judged_and_made() -> None:
    assert arguments_of('{"to": "bob", "to": "eve"}') == {"to": "eve"}
