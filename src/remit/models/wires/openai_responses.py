"""OpenAI's Responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from remit.canonical import sha256
from remit.models.arguments import sent, wire_ids
from remit.models.faults import CutAnswer, ModelFault
from remit.models.message import Block, Message, Opaque, Refusal, Text, ToolCall, ToolMessage
from remit.models.offers import Dialect, SentTool, offers_of
from remit.models.prompt import Ask
from remit.models.reply import Delta, ModelReply, Stop, Watch
from remit.models.strict import openai_strict
from remit.models.wires import openai_chat
from remit.models.wires.wire import WireFailure, event, json_text, obj, part, parts, place, said, text, written

_CONTENT: Final[Mapping[str, Any]] = {"system": "input_text", "user": "input_text", "assistant": "output_text"}


class OpenAIResponses:
    """The wire. Nothing is stored at the provider: what it needs of earlier turns is sent along."""

    api = "openai-responses/v1"
    dialect = Dialect(strict=True)

    def path(self, model: str) -> str:  # noqa: ARG002 - the port's
        return "/responses"

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, model: str, ask: Ask, producer: str) -> dict[str, Any]:
        ids = wire_ids(ask.messages, "openai")
        sampling = ask.sampling
        body: dict[str, Any] = {
            "model": model,
            "input": [item for message in ask.messages for item in _items(message, ids, producer)],
            "stream": True,
            "store": False,
        }
        if offers := offers_of(ask, self.dialect).tools:
            body["tools"] = [_tool(offer) for offer in offers]
            body["tool_choice"] = _choice(ask.choice)
            if sampling.parallel is not None:
                body["parallel_tool_calls"] = sampling.parallel
        if sampling.temperature is not None:
            body["temperature"] = sampling.temperature
        if sampling.effort is not None:
            body["reasoning"] = {"effort": sampling.effort}
            if sampling.effort != "none":  # models that do not reason refuse this
                body["include"] = ["reasoning.encrypted_content"]
        if sampling.cache in {"short", "long"}:
            body["prompt_cache_key"] = _shared(ask)
        if sampling.cache == "long":
            body["prompt_cache_retention"] = "24h"
        if sampling.max_output_tokens is not None:
            body["max_output_tokens"] = sampling.max_output_tokens
        if ask.output is not None:
            strict = openai_strict(ask.output.schema)
            form = {"name": ask.output.name, "schema": strict or ask.output.schema, "strict": strict is not None}
            body["text"] = {"format": {"type": "json_schema", **form}}
        return body

    def reducer(self, ask: Ask, producer: str) -> ResponsesReducer:
        return ResponsesReducer(ask.id, producer)

    def fault(self, failure: WireFailure) -> ModelFault:
        return openai_chat.fault(failure)


def _shared(ask: Ask) -> str:
    """Name what questions have in common that begin alike: their tools, and the words before the conversation."""
    first = ask.messages[0] if ask.messages and ask.messages[0].role == "system" else None
    return sha256(f"{ask.tools.digest}\0{first.text if first is not None else ''}".encode())[-64:]


def _tool(offer: SentTool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": offer.name,
        "description": offer.description,
        "parameters": offer.schema,
        "strict": offer.strict,
    }


def _choice(choice: str) -> Any:
    return choice if choice in {"auto", "none", "required"} else {"type": "function", "name": choice}


def _items(message: Message, ids: Mapping[str, str], producer: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for block in message.blocks:
        match block:
            case Text(text=words):
                items.append({"role": message.role, "content": [{"type": _CONTENT[message.role], "text": words}]})
            case Refusal(text=words):
                items.append({"role": "assistant", "content": [{"type": "refusal", "refusal": words}]})
            case ToolCall():
                called = {"name": block.name, "arguments": sent(block.arguments)}
                items.append({"type": "function_call", "call_id": ids[block.id], **called})
            case ToolMessage():
                call_id = ids.get(block.id, block.id)
                items.append({"type": "function_call_output", "call_id": call_id, "output": block.text})
            case Opaque(data=data):
                if message.producer == producer:
                    items.append(msgspec.json.decode(data))
    return items


class ResponsesReducer:
    """Makes a reply of events; `response.completed` or `response.incomplete` is what ends it."""

    def __init__(self, ask_id: str, producer: str) -> None:
        self.done = False
        self._ask_id = ask_id
        self._producer = producer
        self._items: dict[int, dict[str, Any]] = {}
        self._pieces: dict[int, list[str]] = {}
        self._response: dict[str, Any] = {}

    def feed(self, data: bytes, watch: Watch) -> None:
        if data == b"[DONE]":  # some servers of other makes say it
            return
        message = event(data)
        index = place(message.get("output_index"))
        match text(message.get("type")):
            case "response.output_text.delta" | "response.refusal.delta":
                watch(Delta("text", text(message.get("delta"))))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                watch(Delta("reasoning", text(message.get("delta"))))
            case "response.function_call_arguments.delta" if index is not None:
                self._pieces.setdefault(index, []).append(text(message.get("delta")))
                watch(Delta("call", text(message.get("delta"))))
            case "response.output_item.done" if index is not None:
                self._items[index] = part(message.get("item"), "an item")
            case "response.completed" | "response.incomplete":
                self._response, self.done = obj(message.get("response")), True
            case "response.failed":
                raise openai_chat.stream_fault(obj(obj(message.get("response")).get("error")))
            case "error":
                raise openai_chat.stream_fault(obj(message.get("error")) or message)
            case _:
                pass

    def reply(self) -> ModelReply:
        if not self.done:
            raise CutAnswer("the answer broke off before it was complete")
        response = self._response
        items = parts(response.get("output"), "output") or [self._items[index] for index in sorted(self._items)]
        reason = text(obj(response.get("incomplete_details")).get("reason"))
        message = Message("assistant", tuple(self._blocks(items)), self._producer)
        stop = _stop(text(response.get("status")), reason, message)
        if stop == "tools":
            self._check_whole(items)
        usage = obj(response.get("usage")) or None
        return ModelReply(
            message=message,
            stop=stop,
            stop_raw=reason or text(response.get("status")),
            usage=openai_chat.usage_of(usage, "input_tokens", "output_tokens"),
            usage_raw=usage,
            model=text(response.get("model")),
            response_id=text(response.get("id")),
        )

    def _blocks(self, items: list[dict[str, Any]]) -> list[Block]:
        blocks: list[Block] = []
        for item in items:
            match text(item.get("type")):
                case "message":
                    blocks += [_part(content_part) for content_part in parts(item.get("content"), "content")]
                case "function_call":
                    number = sum(isinstance(block, ToolCall) for block in blocks)
                    name = spaced(item, said(item.get("name"), "the name of a tool"))
                    arguments = written(item.get("arguments"))
                    blocks.append(ToolCall(f"{self._ask_id}-{number}", name, arguments, text(item.get("call_id"))))
                case "reasoning" if not item.get("encrypted_content"):
                    pass  # it refers to what the provider would have had to store
                case _:
                    blocks.append(Opaque(json_text(item)))
        return blocks

    def _check_whole(self, items: list[dict[str, Any]]) -> None:
        """Refuse calls whose arguments are not what was streamed: servers say `completed` over calls that were cut."""
        for index, item in enumerate(items):
            if text(item.get("type")) != "function_call":
                continue
            arguments = written(item.get("arguments"))
            streamed = "".join(self._pieces.get(index, ())) or arguments
            done = written(self._items.get(index, item).get("arguments"))
            if text(item.get("status")) not in {"", "completed"} or not streamed == done == arguments:
                raise CutAnswer(f"the call of {text(item.get('name'))} is incomplete in an answer marked as complete")


def spaced(item: dict[str, Any], name: str) -> str:
    """Return the name of a called tool with that of its namespace, if it has one."""
    space = text(item.get("namespace"))
    return f"{space}.{name}" if space else name


def _part(piece: dict[str, Any]) -> Block:
    match text(piece.get("type")):
        case "output_text":
            return Text(said(piece.get("text"), "content"))
        case "refusal":
            return Refusal(said(piece.get("refusal"), "a refusal"))
        case _:
            return Opaque(json_text(piece))


def _stop(status: str, reason: str, message: Message) -> Stop:
    if status == "incomplete" or reason:
        return "length" if reason == "max_output_tokens" else "filtered" if reason == "content_filter" else "failed"
    if status != "completed":
        return "failed"
    if any(isinstance(block, Refusal) for block in message.blocks):
        return "refused"
    return "tools" if message.calls else "answer"
