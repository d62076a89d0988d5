"""OpenAI's Chat Completions, as OpenAI and servers of other makes speak it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from remit.http.retry import retry_after
from remit.models.arguments import sent, wire_ids
from remit.models.faults import (
    Auth,
    Busy,
    ContextFull,
    CutAnswer,
    ModelFault,
    Overloaded,
    Quota,
    Rejected,
    ServerFault,
    UnknownModel,
    by_status,
)
from remit.models.message import Block, Message, Refusal, Text, ToolCall, ToolMessage
from remit.models.offers import Dialect, SentTool, offers_of
from remit.models.prompt import Ask
from remit.models.reply import Delta, ModelReply, Stop, TokenUsage, Watch
from remit.models.strict import openai_strict
from remit.models.wires.wire import WireFailure, body, count, event, obj, part, parts, place, said, text, written

_CODES: Final[Mapping[str, type[ModelFault]]] = {
    "rate_limit_exceeded": Busy,
    "rate_limit_error": Busy,
    "slow_down": Busy,
    "insufficient_quota": Quota,
    "credit_balance_exhausted": Quota,
    "billing_hard_limit_reached": Quota,
    "server_is_overloaded": Overloaded,
    "server_error": ServerFault,
    "invalid_prompt": Rejected,
    "bio_policy": Rejected,
    "misalignment_policy_violation": Rejected,
    "context_length_exceeded": ContextFull,
    "string_above_max_length": ContextFull,
    "invalid_api_key": Auth,
    "model_not_found": UnknownModel,
    "invalid_request_error": Rejected,
}


def fault(failure: WireFailure) -> ModelFault:
    """Return what a failed response means: its code or type says more than its status."""
    error = obj(body(failure.body).get("error"))
    kind = _kind(error) or by_status(failure.status)
    reason = text(error.get("message")) or f"HTTP {failure.status} without an explanation"
    return kind(
        reason,
        after_s=retry_after(failure.headers, failure.now),
        status=failure.status,
        request_id=failure.headers.get("x-request-id", ""),
    )


def stream_fault(error: dict[str, Any]) -> ModelFault:
    """Return what an error within a stream means."""
    return (_kind(error) or ServerFault)(
        text(error.get("message")) or "the provider reported an error without a message"
    )


def _kind(error: dict[str, Any]) -> type[ModelFault] | None:
    return _CODES.get(text(error.get("code"))) or _CODES.get(text(error.get("type")))


def usage_of(raw: dict[str, Any] | None, inputs: str, outputs: str) -> TokenUsage | None:
    """Return usage in our terms, by what a wire calls its tokens; inputs include what was cached, outputs reasoning."""
    if raw is None:
        return None
    read, output_details = obj(raw.get(f"{inputs}_details")), obj(raw.get(f"{outputs}_details"))
    return TokenUsage(
        input=count(raw.get(inputs)),
        output=count(raw.get(outputs)),
        cached=count(read.get("cached_tokens")),
        cache_written=count(read.get("cache_write_tokens")),
        reasoning=count(output_details.get("reasoning_tokens")),
    )


_STOPS: Final[Mapping[str, Stop]] = {
    "stop": "answer",
    "eos": "answer",
    "eos_token": "answer",
    "end_turn": "answer",
    "stop_sequence": "answer",
    "complete": "answer",
    "completed": "answer",
    "tool_calls": "tools",
    "tool_call": "tools",
    "tool_use": "tools",
    "function_call": "tools",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filtered",
    "safety": "filtered",
}
"""Reasons to finish in lower case: OpenAI's, and those that servers of other makes pass on."""


class OpenAIChat:
    """The wire, for a provider whose servers say yes to `strict` or not."""

    api = "openai-chat/v1"

    def __init__(self, provider: str, *, limit_field: str = "max_completion_tokens", strict: bool = True) -> None:
        self._provider = provider
        self._limit_field = limit_field
        self.dialect = Dialect(strict=strict)

    def path(self, model: str) -> str:  # noqa: ARG002 - the port's
        return "/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, model: str, ask: Ask, producer: str) -> dict[str, Any]:  # noqa: ARG002 - it has no sealed blocks
        ids = wire_ids(ask.messages, self._provider)
        body: dict[str, Any] = {
            "model": model,
            "messages": [item for message in ask.messages for item in _items(message, ids)],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if offers := offers_of(ask, self.dialect).tools:
            body["tools"] = [_tool(offer) for offer in offers]
            body["tool_choice"] = _choice(ask.choice)
            if ask.sampling.parallel is not None:
                body["parallel_tool_calls"] = ask.sampling.parallel
        if ask.sampling.temperature is not None:
            body["temperature"] = ask.sampling.temperature
        if ask.sampling.effort is not None:
            body["reasoning_effort"] = ask.sampling.effort
        if ask.sampling.max_output_tokens is not None:
            body[self._limit_field] = ask.sampling.max_output_tokens
        if ask.output is not None:
            strict = openai_strict(ask.output.schema) if self.dialect.strict else None
            schema = {"name": ask.output.name, "schema": strict or ask.output.schema, "strict": strict is not None}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def reducer(self, ask: Ask, producer: str) -> ChatReducer:
        return ChatReducer(ask.id, producer)

    def fault(self, failure: WireFailure) -> ModelFault:
        return fault(failure)


def _tool(offer: SentTool) -> dict[str, Any]:
    function = {"name": offer.name, "description": offer.description, "parameters": offer.schema}
    return {"type": "function", "function": function | ({"strict": True} if offer.strict else {})}


def _choice(choice: str) -> Any:
    if choice in {"auto", "none", "required"}:
        return choice
    return {"type": "function", "function": {"name": choice}}


def _items(message: Message, ids: Mapping[str, str]) -> list[dict[str, Any]]:
    if message.role == "tool":
        blocks = [block for block in message.blocks if isinstance(block, ToolMessage)]
        return [
            {"role": "tool", "tool_call_id": ids.get(result.id, result.id), "content": result.text} for result in blocks
        ]
    item: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.role == "assistant":
        refusal = "".join(block.text for block in message.blocks if isinstance(block, Refusal))
        if refusal:
            item["refusal"] = refusal
        if message.calls:
            item["content"] = message.text or None
            item["tool_calls"] = calls_of(message, ids)
    return [item]


def calls_of(message: Message, ids: Mapping[str, str]) -> list[dict[str, Any]]:
    """The calls of a message, as the API has them."""
    return [
        {
            "id": ids[call.id],
            "type": "function",
            "function": {"name": call.name, "arguments": sent(call.arguments)},
        }
        for call in message.calls
    ]


class _Call:
    """A call that is still coming."""

    __slots__ = ("id", "name", "pieces")

    def __init__(self) -> None:
        self.id = self.name = ""
        self.pieces: list[str] = []


class _TextDelta(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    content: str
    role: str | None = None


class _TextChoice(msgspec.Struct, frozen=True, gc=False):
    delta: _TextDelta
    index: Literal[0] = 0
    finish_reason: None = None


class _TextChunk(msgspec.Struct, frozen=True, gc=False):
    """A chunk that is a piece of text and nothing else, as most are: it is read at a fifth of the time."""

    choices: tuple[_TextChoice]
    id: str = ""
    model: str = ""
    usage: None = None
    error: None = None


_text_chunk: Final = msgspec.json.Decoder(_TextChunk).decode


class ChatReducer:
    """Makes a reply of chunks; the reason to finish is what ends it, for some servers send no `[DONE]`."""

    def __init__(self, ask_id: str, producer: str) -> None:
        self.done = False
        self._ask_id = ask_id
        self._producer = producer
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._finish = self._id = self._model = ""
        self._usage: dict[str, Any] | None = None

    def feed(self, data: bytes, watch: Watch) -> None:
        if data == b"[DONE]":
            self.done = True
            return
        try:
            plain = _text_chunk(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._read(event(data), watch)
            return
        self._id, self._model = plain.id or self._id, plain.model or self._model
        if piece := plain.choices[0].delta.content:
            self._text.append(piece)
            watch(Delta("text", piece))

    def _read(self, chunk: dict[str, Any], watch: Watch) -> None:
        if chunk.get("error"):
            raise stream_fault(obj(chunk["error"]))
        self._id = text(chunk.get("id")) or self._id
        self._model = text(chunk.get("model")) or self._model
        self._usage = obj(chunk.get("usage")) or self._usage
        for choice in parts(chunk.get("choices"), "choices"):
            if not place(choice.get("index")):
                self._take(part(choice.get("delta"), "a delta"), watch)
                self._finish = said(choice.get("finish_reason"), "a reason to finish") or self._finish

    def reply(self) -> ModelReply:
        if not self._finish:
            raise CutAnswer("the answer broke off before it was complete")
        blocks: list[Block] = []
        if self._text:
            blocks.append(Text("".join(self._text)))
        if self._refusal:
            blocks.append(Refusal("".join(self._refusal)))
        calls = [
            ToolCall(f"{self._ask_id}-{number}", call.name, "".join(call.pieces), call.id)
            for number, call in enumerate(self._calls)
        ]
        return ModelReply(
            message=Message("assistant", (*blocks, *calls), self._producer),
            stop=self._stop(),
            stop_raw=self._finish,
            usage=usage_of(self._usage, "prompt_tokens", "completion_tokens"),
            usage_raw=self._usage,
            model=self._model,
            response_id=self._id,
        )

    def _stop(self) -> Stop:
        stop = _STOPS.get(self._finish.lower(), "failed")
        if stop in {"answer", "tools"} and self._refusal:
            return "refused"
        return "tools" if stop == "answer" and self._calls else stop  # servers of other makes say `stop` for both

    def _take(self, delta: dict[str, Any], watch: Watch) -> None:
        if piece := _content(delta.get("content")):
            self._text.append(piece)
            watch(Delta("text", piece))
        if piece := said(delta.get("refusal"), "a refusal"):
            self._refusal.append(piece)
            watch(Delta("text", piece))
        if piece := text(delta.get("reasoning_content")) or text(delta.get("reasoning")):
            watch(Delta("reasoning", piece))
        for fragment in parts(delta.get("tool_calls"), "calls"):
            function = part(fragment.get("function"), "a function")
            name = said(function.get("name"), "the name of a tool")
            call = self._call_of(fragment, name)
            call.id = call.id or text(fragment.get("id"))
            call.name = call.name or name
            if piece := written(function.get("arguments")):
                call.pieces.append(piece)
                watch(Delta("call", piece))

    def _call_of(self, fragment: dict[str, Any], name: str) -> _Call:
        """The call a fragment belongs to: a changed id begins another one, as does a name if there is no index."""
        index, wire_id = place(fragment.get("index")), text(fragment.get("id"))
        if index is None:
            call = self._calls[-1] if self._calls else None
            begins = bool(name) and not (call is not None and wire_id and wire_id == call.id)
        else:
            call, begins = self._by_index.get(index), False
        if call is None or begins or (wire_id and call.id and wire_id != call.id):
            call = _Call()
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call


def _content(value: Any) -> str:
    """The text of a piece; some servers send a list of parts. Raises Server for what is neither."""
    if not isinstance(value, list):
        return said(value, "content")
    pieces = []
    for item in parts(value, "content"):
        match text(item.get("type")):
            case "text" | "output_text":
                pieces.append(said(item.get("text"), "content"))
            case "thinking" | "reasoning":
                pass
            case other:
                raise ServerFault(f"the provider sent content of the type {other!r}, which is not text")
    return "".join(pieces)
