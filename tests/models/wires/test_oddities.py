"""What servers of other makes do, and what their official makers did."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from remit.models.arguments import arguments_of
from remit.models.faults import CutAnswer, ServerFault
from remit.models.message import Opaque, Text, system, user
from remit.models.prompt import Ask, Sampling, toolset_of
from remit.models.reply import ModelReply, Stop, unwatched
from remit.models.thread import thread_of
from remit.models.wires.anthropic import AnthropicMessages
from remit.models.wires.gemini import Gemini, usage_of
from remit.models.wires.openai_chat import OpenAIChat
from remit.models.wires.openai_responses import OpenAIResponses
from remit.models.wires.wire import Wire
from remit_testing.models import AnthropicSpeech, ChatSpeech, ResponsesSpeech, Speech
from remit_testing.models.checks import CALLS, PAY
from remit_testing.models.scene import Scene

ASK = Ask(thread=thread_of([system("s"), user("u")]), tools=toolset_of([PAY]), id="1")


def _reduced(wire: Wire, events: list[Any]) -> ModelReply:
    reducer = wire.reducer(ASK, "p/m")
    for event in events:
        reducer.feed(event if isinstance(event, bytes) else msgspec.json.encode(event), unwatched)
    return reducer.reply()


def _fragments(*fragments: dict[str, Any], finish: str = "tool_calls") -> list[dict[str, Any]]:
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [fragment]}}]} for fragment in fragments]
    return [*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}]


def _part(arguments: str, **more: Any) -> dict[str, Any]:
    name = more.pop("name", None)
    return {"function": {"arguments": arguments} | ({"name": name} if name else {}), **more}


@pytest.mark.parametrize(
    "fragments",
    [
        pytest.param(
            (_part("{}", index=0, id="a", name="t"), _part("[]", index=0, id="b", name="u")), id="index always 0"
        ),
        pytest.param((_part("{}", id="a", name="t"), _part("[]", id="b", name="u")), id="no index"),
        pytest.param((_part("{", name="t"), _part("}"), _part("[", name="u"), _part("]")), id="no index and no id"),
        pytest.param(
            (
                _part("{", index=0, id="x", name="t"),
                _part("}", index=0, id="x"),
                _part("[]", index=1, id="x", name="u"),
            ),
            id="one id for all, in every chunk",
        ),
        pytest.param(
            (
                _part("{", index=0, id="a", name="t"),
                _part("[", index=1, id="b", name="u"),
                _part("}", index=0),
                _part("]", index=1),
            ),
            id="interleaved",
        ),
    ],
)
def test_calls_are_told_apart(fragments: tuple[dict[str, Any], ...]) -> None:
    reply = _reduced(OpenAIChat("openai"), _fragments(*fragments))
    assert [(call.name, call.arguments) for call in reply.calls] == [("t", "{}"), ("u", "[]")]


def test_a_server_that_says_stop_for_calls_means_them() -> None:
    assert len(_reduced(OpenAIChat("openai"), _fragments(_part("{}", name="t"), finish="stop")).calls) == 1


@pytest.mark.parametrize("finish", ["content_filter", "length", "insufficient_system_resource"])
def test_calls_of_any_other_end_are_not_given(finish: str) -> None:
    assert _reduced(OpenAIChat("openai"), _fragments(_part("{}", name="t"), finish=finish)).calls == ()


def test_responses_that_are_complete_over_calls_that_were_cut_give_no_reply() -> None:
    events = [msgspec.json.decode(event) for event in ResponsesSpeech().events(CALLS)]
    events[-1]["response"]["output"][-1]["arguments"] = '{"to":"eve"}'
    with pytest.raises(CutAnswer):
        _reduced(OpenAIResponses(), events)
    events = [msgspec.json.decode(event) for event in ResponsesSpeech().events(CALLS)]
    events[-1]["response"]["output"][-1]["status"] = "incomplete"
    with pytest.raises(CutAnswer):
        _reduced(OpenAIResponses(), events)


def test_a_call_of_a_namespace_has_its_name_before_its_own() -> None:
    call = {"type": "function_call", "call_id": "c", "namespace": "mcp__x", "name": "t", "arguments": "{}"}
    response = {"type": "response.completed", "response": {"status": "completed", "output": [call]}}
    assert [each.name for each in _reduced(OpenAIResponses(), [response]).message.calls] == ["mcp__x.t"]


def test_what_ended_for_another_reason_is_told_apart() -> None:
    wires: list[tuple[Wire, Speech]] = [(OpenAIChat("openai"), ChatSpeech()), (OpenAIResponses(), ResponsesSpeech())]
    for wire, speech in wires:
        assert _reduced(wire, speech.events(Scene(refusal="I will not."))).stop == "refused"
        assert _reduced(wire, speech.events(Scene(text=("x",), stop="filtered"))).stop == "filtered"
    stops: tuple[Stop, ...] = ("paused", "refused", "context_full", "length")
    for stop in stops:
        assert _reduced(AnthropicMessages(), AnthropicSpeech().events(Scene(text=("x",), stop=stop))).stop == stop
    blocked = {"promptFeedback": {"blockReason": "JAILBREAK"}, "usageMetadata": {"promptTokenCount": 3}}
    reply = _reduced(Gemini(), [blocked])
    assert (reply.stop, reply.stop_raw) == ("filtered", "JAILBREAK")


def test_thinking_is_kept_whole_and_verbatim() -> None:
    block = {"type": "thinking", "thinking": "", "signature": ""}
    deltas = [
        ("thinking_delta", "thinking", "Let "),
        ("thinking_delta", "thinking", "me."),
        ("signature_delta", "signature", "abc"),
    ]
    events: list[Any] = [
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": kind, name: value}}
            for kind, name, value in deltas
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    (found,) = _reduced(AnthropicMessages(), events).message.blocks
    assert isinstance(found, Opaque)
    assert msgspec.json.decode(found.data) == {"type": "thinking", "thinking": "Let me.", "signature": "abc"}


def test_signatures_go_back_to_the_model_that_gave_them_only() -> None:
    call = {"functionCall": {"name": "t", "args": {"x": 1}}, "thoughtSignature": "abc"}
    parts = [{"text": "Hm", "thought": True}, call, {"functionCall": {"name": "u", "args": {}}}, {"text": "So."}]
    events = [{"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}]
    reply = _reduced(Gemini(), events)
    assert reply.stop == "tools"
    assert reply.text == "So."
    ask = msgspec.structs.replace(ASK, thread=ASK.thread.add(reply.message))
    sent = Gemini().body("m", ask, "p/m")["contents"][-1]["parts"]
    assert sent == [call, {"functionCall": {"name": "u", "args": {}}}, {"text": "So."}]
    elsewhere = Gemini().body("m", ask, "p/other")["contents"][-1]["parts"]
    assert "thoughtSignature" not in elsewhere[0]


def test_reasoning_is_asked_for_only_if_an_effort_is() -> None:
    thinking = msgspec.structs.replace(ASK, sampling=Sampling(effort="high"))
    assert "include" not in OpenAIResponses().body("m", ASK, "p/m")
    assert OpenAIResponses().body("m", thinking, "p/m")["include"] == ["reasoning.encrypted_content"]


def test_nothing_is_to_be_stored_at_the_provider() -> None:
    assert OpenAIResponses().body("m", ASK, "p/m")["store"] is False


def test_reasoning_that_only_the_providers_store_holds_is_dropped() -> None:
    events = [msgspec.json.decode(event) for event in ResponsesSpeech().events(Scene(text=("x",)))]
    events[-1]["response"]["output"].insert(0, {"type": "reasoning", "id": "rs_1", "summary": []})
    assert _reduced(OpenAIResponses(), events).message.blocks == (Text("x"),)


def test_a_models_name_cannot_leave_its_place_in_the_path() -> None:
    assert Gemini().path("../x?y=ü") == "/v1beta/models/..%2Fx%3Fy%3D%C3%BC:streamGenerateContent?alt=sse"


def _chat(delta: Any, finish: Any = "stop") -> list[Any]:
    return [
        {"choices": [{"index": 0, "delta": delta}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
    ]


def _block(block: Any, stop: Any = "tool_use") -> list[Any]:
    return [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}},
        {"type": "message_stop"},
    ]


def _item(**item: Any) -> list[Any]:
    return [{"type": "response.completed", "response": {"status": "completed", "output": [item]}}]


def _candidate(*parts: Any, finish: Any = "STOP") -> list[Any]:
    return [{"candidates": [{"content": {"parts": list(parts)}, "finishReason": finish}]}]


def test_arguments_that_come_as_an_object_are_the_arguments() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "desk__wipe", "arguments": {"folder": "tmp"}}}
    replies = [
        _reduced(OpenAIChat("openai"), _chat({"tool_calls": [call]}, "tool_calls")),
        _reduced(OpenAIResponses(), _item(type="function_call", name="desk__wipe", arguments={"folder": "tmp"})),
        _reduced(AnthropicMessages(), _block({"type": "tool_use", "name": "desk__wipe", "input": {"folder": "tmp"}})),
        _reduced(Gemini(), _candidate({"functionCall": {"name": "desk__wipe", "args": {"folder": "tmp"}}})),
    ]
    for reply in replies:
        (found,) = reply.calls
        assert (found.name, arguments_of(found.arguments)) == ("desk__wipe", {"folder": "tmp"})


@pytest.mark.parametrize(
    ("wire", "events"),
    [
        (OpenAIChat("openai"), _chat({"tool_calls": [{"index": 0, "function": {"name": "t", "arguments": [1]}}]})),
        (OpenAIChat("openai"), _chat({"tool_calls": [{"index": 0, "function": {"name": 7, "arguments": "{}"}}]})),
        (OpenAIChat("openai"), _chat({"tool_calls": [{"index": 0, "function": "t"}]})),
        (OpenAIChat("openai"), _chat({"tool_calls": {"function": {"name": "t"}}})),
        (OpenAIChat("openai"), _chat({"tool_calls": ["t"]})),
        (OpenAIChat("openai"), _chat({"content": {"text": "x"}})),
        (OpenAIChat("openai"), _chat({"content": [{"type": "image", "url": "x"}]})),
        (OpenAIChat("openai"), _chat(["x"])),
        (OpenAIChat("openai"), _chat({"content": "x"}, finish=["stop"])),
        (OpenAIChat("openai"), [{"choices": {"delta": {}}}]),
        (OpenAIResponses(), _item(type="function_call", name="t", arguments=[1])),
        (OpenAIResponses(), _item(type="function_call", name={}, arguments="{}")),
        (OpenAIResponses(), _item(type="message", content="x")),
        (OpenAIResponses(), _item(type="message", content=[{"type": "output_text", "text": ["x"]}])),
        (AnthropicMessages(), _block({"type": "tool_use", "name": "t", "input": ["x"]})),
        (AnthropicMessages(), _block({"type": "tool_use", "name": 1, "input": {}})),
        (AnthropicMessages(), _block("text")),
        (AnthropicMessages(), _block({"type": "text", "text": "x"}, stop=1)),
        (Gemini(), _candidate({"functionCall": {"name": "t", "args": "x"}})),
        (Gemini(), _candidate({"functionCall": ["t"]})),
        (Gemini(), _candidate({"text": 7})),
        (Gemini(), [{"candidates": {"content": {}}}]),
    ],
)
def test_a_field_of_another_type_is_a_fault_and_never_absent(wire: Wire, events: list[Any]) -> None:
    with pytest.raises(ServerFault):
        _reduced(wire, events)


@pytest.mark.parametrize("finish", ["stop", "eos", "end_turn", "STOP", "stop_sequence", "eos_token"])
def test_an_answer_is_whole_in_the_words_of_other_makes(finish: str) -> None:
    reply = _reduced(OpenAIChat("openai"), _chat({"content": [{"type": "text", "text": "Hi."}]}, finish))
    assert (reply.stop, reply.text, reply.stop_raw) == ("answer", "Hi.", finish)


@pytest.mark.parametrize("finish", ["tool_calls", "tool_use", "function_call", "TOOL_CALLS", "end_turn", "eos"])
def test_calls_are_whole_in_the_words_of_other_makes(finish: str) -> None:
    assert len(_reduced(OpenAIChat("openai"), _fragments(_part("{}", name="t"), finish=finish)).calls) == 1


@pytest.mark.parametrize("finish", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"])
def test_a_call_that_gemini_could_not_read_is_a_fault_that_is_asked_again(finish: str) -> None:
    with pytest.raises(ServerFault) as caught:
        _reduced(Gemini(), _candidate(finish=finish))
    assert caught.value.retry == "now"


@pytest.mark.parametrize("blanks", ["", " ", "\n\t "])
def test_arguments_of_blanks_are_none_and_go_back_as_an_object(blanks: str) -> None:
    reply = _reduced(OpenAIChat("openai"), _fragments(_part(blanks, name="t")))
    assert arguments_of(reply.calls[0].arguments) == {}
    ask = msgspec.structs.replace(ASK, thread=ASK.thread.add(reply.message))
    assert OpenAIChat("openai").body("m", ask, "p/m")["messages"][-1]["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("wire", "events"),
    [
        (OpenAIChat("openai"), _chat({})),
        (OpenAIChat("openai"), _chat({"content": " \n"})),
        (OpenAIChat("openai"), _chat({"reasoning_content": "Hm."})),
        (OpenAIChat("openai"), _chat({}, "tool_calls")),
        (OpenAIChat("openai"), _chat({"content": "I will call it."}, "tool_calls")),
        (OpenAIResponses(), _item(type="reasoning", encrypted_content="x")),
        (AnthropicMessages(), _block({"type": "text", "text": ""}, "end_turn")),
        (AnthropicMessages(), _block({"type": "text", "text": "x"}, "tool_use")),
        (Gemini(), _candidate()),
    ],
)
def test_a_reply_with_nothing_in_it_is_no_answer(wire: Wire, events: list[Any]) -> None:
    reply = _reduced(wire, events).checked()
    assert (reply.stop, reply.calls) == ("empty", ())


def test_an_answer_of_gemini_that_counts_its_sum_alone_has_what_is_left_of_it() -> None:
    usage = usage_of({"promptTokenCount": 10, "thoughtsTokenCount": 5, "totalTokenCount": 40})
    assert usage is not None
    assert (usage.input, usage.output, usage.reasoning) == (10, 30, 5)
