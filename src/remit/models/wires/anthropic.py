"""Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from remit.http.retry import retry_after
from remit.models.arguments import InvalidArgumentsError, arguments_of, wire_ids
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
    Timeout,
    UnknownModel,
    by_status,
)
from remit.models.message import Block, Message, Opaque, Refusal, Text, ToolCall, ToolMessage
from remit.models.offers import Dialect, offers_of
from remit.models.prompt import Ask, Cache
from remit.models.reply import Delta, ModelReply, Stop, TokenUsage, Watch
from remit.models.wires.wire import WireFailure, count, event, json_text, obj, part, place, said, text
from remit.models.wires.wire import body as json_body

_VERSION: Final = "2023-06-01"
_MAX_TOKENS: Final = 16_384
"""The wire wants a limit; this one if the caller has none."""
_CACHED: Final[Mapping[Cache | None, dict[str, Any]]] = {
    None: {"cache_control": {"type": "ephemeral"}},
    "short": {"cache_control": {"type": "ephemeral"}},
    "long": {"cache_control": {"type": "ephemeral", "ttl": "1h"}},
}
"""Marks of the end of a part that is to be kept, by the length of time: five minutes, or an hour."""
_STOPS: Final[Mapping[str, Stop]] = {
    "end_turn": "answer",
    "stop_sequence": "answer",
    "max_tokens": "length",
    "tool_use": "tools",
    "pause_turn": "paused",
    "refusal": "refused",
    "model_context_window_exceeded": "context_full",
}
_FAULTS: Final[Mapping[str, type[ModelFault]]] = {
    "invalid_request_error": Rejected,
    "authentication_error": Auth,
    "billing_error": Quota,
    "permission_error": Auth,
    "not_found_error": UnknownModel,
    "request_too_large": ContextFull,
    "rate_limit_error": Busy,
    "api_error": ServerFault,
    "timeout_error": Timeout,
    "overloaded_error": Overloaded,
}
_BOUNDS: Final = frozenset(
    {
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
    }
)
_TOO_LONG: Final = "prompt is too long"
_SPENT: Final = "enforced_spend_limit_reached"


class AnthropicMessages:
    """The wire."""

    api = f"anthropic-messages/{_VERSION}"
    dialect = Dialect(keys="[a-zA-Z0-9_.-]{1,64}")

    def path(self, model: str) -> str:  # noqa: ARG002 - the port's
        return "/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": _VERSION} | ({"x-api-key": key} if key else {})

    def body(self, model: str, ask: Ask, producer: str) -> dict[str, Any]:
        ids = wire_ids(ask.messages, "anthropic")
        sampling = ask.sampling
        body: dict[str, Any] = {"model": model, "max_tokens": sampling.max_output_tokens or _MAX_TOKENS, "stream": True}
        mark = _CACHED.get(sampling.cache, {})
        first = ask.messages[0] if ask.messages and ask.messages[0].role == "system" else None
        if first is not None:
            body["system"] = [{"type": "text", "text": first.text} | (mark if sampling.cache else {})]
        body["messages"] = _turns(ask.messages[first is not None :], ids, producer, mark)
        if offers := offers_of(ask, self.dialect).tools:
            body["tools"] = [
                {"name": offer.name, "description": offer.description, "input_schema": offer.schema} for offer in offers
            ]
            body["tool_choice"] = _choice(ask.choice, sampling.parallel)
        if sampling.temperature is not None:
            body["temperature"] = sampling.temperature
        config: dict[str, Any] = {}
        if sampling.effort not in {None, "none"}:
            config["effort"] = "low" if sampling.effort == "minimal" else sampling.effort
        if ask.output is not None:
            config["format"] = {"type": "json_schema", "schema": _form(ask.output.schema)}
        if config:
            body["output_config"] = config
        return body

    def reducer(self, ask: Ask, producer: str) -> AnthropicReducer:
        return AnthropicReducer(ask.id, producer)

    def fault(self, failure: WireFailure) -> ModelFault:
        body = json_body(failure.body)
        error = obj(body.get("error"))
        kind = _kind(error) or by_status(failure.status)
        return kind(
            text(error.get("message")) or f"HTTP {failure.status} without an explanation",
            after_s=retry_after(failure.headers, failure.now),
            status=failure.status,
            request_id=failure.headers.get("request-id", "") or text(body.get("request_id")),
        )


def _form(schema: Any) -> Any:
    """The form of an answer as the wire takes it: objects closed, and no bounds, which are checked here anyway."""
    if isinstance(schema, list):
        return [_form(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    form = {
        word: {name: _form(entry) for name, entry in value.items()}
        if word in {"properties", "$defs"} and isinstance(value, dict)
        else _form(value)
        if word in {"items", "anyOf", "allOf"}
        else value
        for word, value in schema.items()
        if word not in _BOUNDS
    }
    return {"additionalProperties": False} | form if "properties" in form else form


def _kind(error: dict[str, Any]) -> type[ModelFault] | None:
    if text(obj(error.get("details")).get("error_code")) == _SPENT:
        return Quota
    kind = _FAULTS.get(text(error.get("type")))
    return ContextFull if kind is Rejected and _TOO_LONG in text(error.get("message")) else kind


def _choice(choice: str, parallel: bool | None) -> dict[str, Any]:
    names = {"auto": "auto", "none": "none", "required": "any"}
    wire_choice: dict[str, Any] = {"type": names[choice]} if choice in names else {"type": "tool", "name": choice}
    if parallel is not None and choice != "none":
        wire_choice["disable_parallel_tool_use"] = not parallel
    return wire_choice


def _turns(
    messages: list[Message], ids: Mapping[str, str], producer: str, mark: dict[str, Any]
) -> list[dict[str, Any]]:
    """User and assistant in turn: all results of a turn in one user message, before what a person adds to them."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        content = [item for block in message.blocks if (item := _content(block, ids, own=message.producer == producer))]
        if not content:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += content
        else:
            turns.append({"role": role, "content": content})
    if turns:
        last = turns[-1]["content"]
        last[-1] = last[-1] | mark
    return turns


def _content(block: Block, ids: Mapping[str, str], *, own: bool) -> dict[str, Any] | None:
    match block:
        case Text(text=words) | Refusal(text=words):
            return {"type": "text", "text": words} if words else None
        case ToolCall():
            return {"type": "tool_use", "id": ids[block.id], "name": block.name, "input": _input(block.arguments)}
        case ToolMessage():
            result = {"type": "tool_result", "tool_use_id": ids.get(block.id, block.id), "content": block.text}
            return result | ({"is_error": True} if block.failed else {})
        case Opaque(data=data):
            return obj(msgspec.json.decode(data)) if own else None


def _input(arguments: str) -> dict[str, Any]:
    """Arguments as an object, which the wire wants even of a call that could not be executed for their form."""
    try:
        return arguments_of(arguments)
    except InvalidArgumentsError:
        return {"invalid_json": arguments}


class _Block:
    """A block that is still coming."""

    __slots__ = ("closed", "json", "start", "texts")

    def __init__(self, start: dict[str, Any]) -> None:
        self.start = start
        self.json: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.closed = False

    def whole(self) -> dict[str, Any]:
        """The block with all its deltas, as its producer wants it back."""
        return self.start | {name: text(self.start.get(name)) + "".join(pieces) for name, pieces in self.texts.items()}


class AnthropicReducer:
    """Makes a reply of events; `message_stop` is what ends it. Arguments stay the text that was sent."""

    def __init__(self, ask_id: str, producer: str) -> None:
        self.done = False
        self._ask_id = ask_id
        self._producer = producer
        self._blocks: dict[int, _Block] = {}
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._stop = ""

    def feed(self, data: bytes, watch: Watch) -> None:
        message = event(data)
        index = place(message.get("index"))
        match text(message.get("type")):
            case "message_start":
                self._message = obj(message.get("message"))
                self._usage = obj(self._message.get("usage"))
            case "content_block_start" if index is not None:
                self._blocks[index] = _Block(part(message.get("content_block"), "a block"))
            case "content_block_delta" if index in self._blocks:
                _take(self._blocks[index], part(message.get("delta"), "a delta"), watch)
            case "content_block_stop" if index in self._blocks:
                self._blocks[index].closed = True
            case "message_delta":
                self._stop = said(obj(message.get("delta")).get("stop_reason"), "a reason to stop") or self._stop
                newer = {name: value for name, value in obj(message.get("usage")).items() if value is not None}
                self._usage = self._usage | newer  # cumulative
            case "message_stop":
                self.done = True
            case "error":
                error = obj(message.get("error"))
                kind = _kind(error) or ServerFault
                raise kind(text(error.get("message")), request_id=text(message.get("request_id")))
            case _:
                pass

    def reply(self) -> ModelReply:
        if not self.done or not self._stop or not all(block.closed for block in self._blocks.values()):
            raise CutAnswer("the answer broke off before it was complete")
        blocks: list[Block] = []
        for index in sorted(self._blocks):
            number = sum(isinstance(block, ToolCall) for block in blocks)
            blocks.append(_block(self._blocks[index], f"{self._ask_id}-{number}"))
        return ModelReply(
            message=Message("assistant", tuple(blocks), self._producer),
            stop=_STOPS.get(self._stop, "failed"),
            stop_raw=self._stop,
            usage=usage_of(self._usage),
            usage_raw=self._usage or None,
            model=text(self._message.get("model")),
            response_id=text(self._message.get("id")),
        )


def _take(block: _Block, delta: dict[str, Any], watch: Watch) -> None:
    match text(delta.get("type")):
        case "text_delta":
            _add(block, "text", delta)
            watch(Delta("text", text(delta.get("text"))))
        case "thinking_delta":
            _add(block, "thinking", delta)
            watch(Delta("reasoning", text(delta.get("thinking"))))
        case "signature_delta":
            _add(block, "signature", delta)
        case "input_json_delta":
            block.json.append(said(delta.get("partial_json"), "arguments"))
            watch(Delta("call", text(delta.get("partial_json"))))
        case _:
            pass


def _add(block: _Block, name: str, delta: dict[str, Any]) -> None:
    block.texts.setdefault(name, []).append(said(delta.get(name), "content"))


def _block(block: _Block, call_id: str) -> Block:
    start = block.start
    match text(start.get("type")):
        case "text":
            return Text(said(block.whole().get("text"), "content"))
        case "tool_use":
            arguments_text = json_text(whole) if (whole := part(start.get("input"), "arguments")) else ""
            name = said(start.get("name"), "the name of a tool")
            return ToolCall(call_id, name, "".join(block.json) or arguments_text, text(start.get("id")))
        case _:
            whole = block.whole()
            if block.json:  # a call that the provider executes itself
                whole["input"] = _input("".join(block.json))
            return Opaque(json_text(whole))


def usage_of(raw: dict[str, Any]) -> TokenUsage | None:
    """Usage in our terms; its input leaves out what was read from a cache or written to it."""
    if not raw:
        return None
    cached, written = count(raw.get("cache_read_input_tokens")), count(raw.get("cache_creation_input_tokens"))
    return TokenUsage(
        input=count(raw.get("input_tokens")) + cached + written,
        output=count(raw.get("output_tokens")),
        cached=cached,
        cache_written=written,
        cache_written_hour=min(written, count(obj(raw.get("cache_creation")).get("ephemeral_1h_input_tokens"))),
        reasoning=count(obj(raw.get("output_tokens_details")).get("thinking_tokens")),
    )
