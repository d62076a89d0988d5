"""The providers' own SDKs read the same bytes: as a check of the fake server, and of our reducers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from remit.clock import SystemClock
from remit.models.faults import CutAnswer
from remit.models.message import Message, Opaque, Text, ToolCall, ToolMessage, results, system, user
from remit.models.names import parse
from remit.models.port import Limiter
from remit.models.prompt import Ask, OutputForm, Sampling, toolset_of
from remit.models.remote import RemoteModel, http_client
from remit.models.reply import ModelReply, unwatched
from remit.models.thread import thread_of
from remit.models.wires.anthropic import AnthropicMessages
from remit.models.wires.openai_chat import OpenAIChat
from remit.models.wires.openai_responses import OpenAIResponses
from remit.models.wires.wire import Wire
from remit_testing.models import AnthropicSpeech, ChatSpeech, ModelServer, ResponsesSpeech, Speech, Streamed
from remit_testing.models.checks import ANSWER, ASK, CALLS, PAY
from remit_testing.models.scene import Scene, SceneCall

pytestmark = pytest.mark.slow  # the SDKs take seconds to import: not before they are needed
HISTORY = [
    system("Be brief."),
    user("Pay them."),
    Message("assistant", (Text("Both."), ToolCall("1-0", "bank__pay", '{"to":"bob","amount":1}', "call_1")), "x/y"),
    results(ToolMessage("1-0", "bank__pay", "no funds", failed=True)),
    user("And?"),
]
FULL = Ask(
    thread=thread_of(HISTORY),
    tools=toolset_of([PAY]),
    choice="required",
    sampling=Sampling(effort="low", max_output_tokens=100, parallel=False),
    output=OutputForm(
        name="sum", schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    ),
)
SCENES = [
    ANSWER,
    CALLS,
    Scene(calls=(SceneCall("bank__pay", '{"to":"bob","amo'),), stop="length"),
]


@asynccontextmanager
async def _served(events: list[bytes]) -> AsyncIterator[ModelServer]:
    async with ModelServer(lambda _: Streamed(events=events)).listening() as server:
        yield server


async def _ours(wire: Wire, name: str, url: str, ask: Ask = ASK) -> ModelReply:
    clock = SystemClock()
    async with http_client(10) as client:
        limiter = Limiter(clock, 1)
        model = RemoteModel(parse(name), wire, url=url, key="k", client=client, limiter=limiter, clock=clock)
        return await model.send(model.prepare(ask), unwatched)


def _calls(reply: ModelReply) -> list[tuple[str, str, str]]:
    return [(call.wire_id, call.name, call.arguments) for call in reply.message.calls]


@asynccontextmanager
async def _openai(server: ModelServer) -> AsyncIterator[Any]:
    openai = pytest.importorskip("openai")
    async with openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        yield client


@asynccontextmanager
async def _anthropic(server: ModelServer) -> AsyncIterator[Any]:
    anthropic = pytest.importorskip("anthropic")
    async with anthropic.AsyncAnthropic(base_url=server.url, api_key="k", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.stop)
async def test_chat_reads_as_the_sdk_reads_it(scene: Scene) -> None:
    async with _served(ChatSpeech().events(scene)) as server, _openai(server) as client:
        ours = await _ours(OpenAIChat("openai"), "openai:m", server.url)
        text, usage, finish = "", None, None
        calls: dict[int, list[str]] = {}
        async for chunk in await client.chat.completions.create(model="m", messages=[], stream=True):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish = choice.finish_reason or finish
                for call in choice.delta.tool_calls or ():
                    found = calls.setdefault(call.index, ["", "", ""])
                    pieces = (call.id, call.function.name, call.function.arguments)
                    calls[call.index] = [old + (new or "") for old, new in zip(found, pieces, strict=True)]
    assert (ours.text, ours.stop_raw) == (text, finish)
    assert _calls(ours) == [tuple(call) for call in calls.values()]
    assert ours.usage is not None
    assert usage is not None
    assert (ours.usage.input, ours.usage.output) == (usage.prompt_tokens, usage.completion_tokens)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.stop)
async def test_responses_read_as_the_sdk_reads_them(scene: Scene) -> None:
    async with _served(ResponsesSpeech().events(scene)) as server, _openai(server) as client:
        ours = await _ours(OpenAIResponses(), "openai:m", server.url)
        found = None
        async for event in await client.responses.create(model="m", input="x", stream=True):
            if event.type in {"response.completed", "response.incomplete"}:
                found = event.response
    assert found is not None
    assert ours.text == found.output_text
    called = [item for item in found.output if item.type == "function_call"]
    assert _calls(ours) == [(item.call_id, item.name, item.arguments) for item in called]
    assert ours.usage is not None
    assert (ours.usage.input, ours.usage.output) == (found.usage.input_tokens, found.usage.output_tokens)


@pytest.mark.parametrize("scene", SCENES[:2], ids=lambda scene: scene.stop)
async def test_messages_read_as_the_sdk_reads_them(scene: Scene) -> None:
    async with _served(AnthropicSpeech().events(scene)) as server, _anthropic(server) as client:
        ours = await _ours(AnthropicMessages(), "anthropic:m", server.url)
        async with client.messages.stream(model="m", max_tokens=9, messages=[]) as stream:
            found = await stream.get_final_message()
    assert ours.text == "".join(block.text for block in found.content if block.type == "text")
    theirs = [(block.id, block.name, block.input) for block in found.content if block.type == "tool_use"]
    assert [(one, name, msgspec.json.decode(args)) for one, name, args in _calls(ours)] == theirs
    assert ours.stop_raw == found.stop_reason
    assert ours.usage is not None
    assert ours.usage.output == found.usage.output_tokens
    assert ours.usage.input == found.usage.input_tokens + found.usage.cache_read_input_tokens


async def test_where_the_sdk_makes_valid_arguments_of_a_stream_that_was_cut_there_is_no_reply() -> None:
    speech = AnthropicSpeech()
    events = speech.events(Scene(calls=(SceneCall("bank__pay", '{"to":"bob","amount":100}'),), stop="tools"))
    cut = next(i for i, event in enumerate(events) if b'"amount' not in event and b"bob" in event) + 1
    async with _served(events[:cut]) as server, _anthropic(server) as client:
        async with client.messages.stream(model="m", max_tokens=9, messages=[]) as stream:
            message = await stream.get_final_message()
        assert message.content[0].input, "the SDK is expected to complete what was cut"
        with pytest.raises(CutAnswer):
            await _ours(AnthropicMessages(), "anthropic:m", server.url)


@pytest.mark.parametrize(
    ("speech", "wire", "name"),
    [(ChatSpeech(), lambda: OpenAIChat("openai"), "chat"), (ResponsesSpeech(), OpenAIResponses, "responses")],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_where_the_sdk_sees_no_error_in_a_stream_that_was_cut_there_is_no_reply(
    speech: Speech, wire: Callable[[], Wire], name: str
) -> None:
    events = speech.events(CALLS)
    async with _served(events[: len(events) // 2]) as server, _openai(server) as client:
        if name == "chat":
            stream = await client.chat.completions.create(model="m", messages=[], stream=True)
        else:
            stream = await client.responses.create(model="m", input="x", stream=True)
        assert [event async for event in stream]
        with pytest.raises(CutAnswer):
            await _ours(wire(), "openai:m", server.url)


def _opaque(ask: Ask, producer: str, data: dict[str, Any]) -> Ask:
    """The same with a block that only its producer understands."""
    sealed = Message("assistant", (Opaque(msgspec.json.encode(data).decode()), Text("So.")), producer)
    return msgspec.structs.replace(ask, thread=ask.thread.add(sealed, user("More.")))


async def test_the_sdks_send_the_same_request() -> None:
    """They take every field of ours by name, and what they send is what we send."""
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"}
    thinking = {"type": "thinking", "thinking": "hm", "signature": "abc"}
    async with _served(ChatSpeech().events(ANSWER)) as server, _openai(server) as client:
        await _ours(OpenAIChat("openai"), "openai:m", server.url, FULL)
        await client.chat.completions.create(**server.received[0].body)
        assert server.received[1].body == server.received[0].body
    async with _served(ResponsesSpeech().events(ANSWER)) as server, _openai(server) as client:
        await _ours(OpenAIResponses(), "openai:m", server.url, _opaque(FULL, "openai/m", reasoning))
        await client.responses.create(**server.received[0].body)
        assert server.received[1].body == server.received[0].body
        assert reasoning in server.received[0].body["input"]
    async with _served(AnthropicSpeech().events(ANSWER)) as server, _anthropic(server) as client:
        await _ours(AnthropicMessages(), "anthropic:m", server.url, _opaque(FULL, "anthropic/m", thinking))
        await client.messages.create(**server.received[0].body)
        assert server.received[1].body == server.received[0].body
        assert thinking in server.received[0].body["messages"][-2]["content"]


async def test_blocks_of_another_producer_are_left_out() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "abc"}
    async with _served(AnthropicSpeech().events(ANSWER)) as server:
        await _ours(AnthropicMessages(), "anthropic:m", server.url, _opaque(FULL, "anthropic/older", thinking))
        assert b"signature" not in server.received[0].raw
