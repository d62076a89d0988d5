"""Google's Gemini API: each event is a part of the response, whole in itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

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
from remit.models.prompt import Ask
from remit.models.reply import Delta, ModelReply, Stop, TokenUsage, Watch
from remit.models.wires.wire import WireFailure, count, event, json_text, obj, objs, part, parts, said, text
from remit.models.wires.wire import body as json_body
from remit.regex import regex

_STOPS: Final[Mapping[str, Stop]] = {
    "STOP": "answer",
    "MAX_TOKENS": "length",
    "CONTINUATION": "paused",
    "SAFETY": "filtered",
    "RECITATION": "filtered",
    "LANGUAGE": "filtered",
    "BLOCKLIST": "filtered",
    "PROHIBITED_CONTENT": "filtered",
    "SPII": "filtered",
    "MODEL_ARMOR": "filtered",
}
_FAULTS: Final[Mapping[str, type[ModelFault]]] = {
    "INVALID_ARGUMENT": Rejected,
    "FAILED_PRECONDITION": Rejected,
    "UNAUTHENTICATED": Auth,
    "PERMISSION_DENIED": Auth,
    "NOT_FOUND": UnknownModel,
    "RESOURCE_EXHAUSTED": Busy,
    "UNAVAILABLE": Overloaded,
    "INTERNAL": ServerFault,
    "DEADLINE_EXCEEDED": Timeout,
}
_LEVELS: Final = {
    "none": "minimal",
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "max": "high",
}
_AGAIN: Final = frozenset({"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"})
"""The model wrote what the provider could not read: another answer may be better."""
_SAFE: Final = regex(r"[^A-Za-z0-9._~-]")
_DELAY: Final = regex(r"(\d{1,9}(?:\.\d{1,9})?)s")
_TOO_LONG: Final = "input token count"
_DAILY: Final = "PerDay"


class Gemini:
    """The wire."""

    api = "gemini/v1beta"
    dialect = Dialect()

    def path(self, model: str) -> str:
        return f"/v1beta/models/{_SAFE.sub(_escaped, model)}:streamGenerateContent?alt=sse"

    def headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key} if key else {}

    def body(self, model: str, ask: Ask, producer: str) -> dict[str, Any]:  # noqa: ARG002 - the path names the model
        ids = wire_ids(ask.messages, "google")
        first = ask.messages[0] if ask.messages and ask.messages[0].role == "system" else None
        body: dict[str, Any] = {"contents": _contents(ask.messages[first is not None :], ids, producer)}
        if first is not None:
            body["systemInstruction"] = {"parts": [{"text": first.text}]}
        if offers := offers_of(ask, self.dialect).tools:
            declared = [
                {"name": offer.name, "description": offer.description, "parametersJsonSchema": offer.schema}
                for offer in offers
            ]
            body["tools"] = [{"functionDeclarations": declared}]
            body["toolConfig"] = {"functionCallingConfig": _choice(ask.choice)}
        if config := _config(ask):
            body["generationConfig"] = config
        return body

    def reducer(self, ask: Ask, producer: str) -> GeminiReducer:
        return GeminiReducer(ask.id, producer)

    def fault(self, failure: WireFailure) -> ModelFault:
        fault = _fault(obj(json_body(failure.body).get("error")), failure.status)
        fault.status = failure.status
        if fault.after_s is None:
            fault.after_s = retry_after(failure.headers, failure.now)
        return fault


def _escaped(match: re.Match[str]) -> str:
    """A character as a part of a path holds it (RFC 3986, 2.1)."""
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def _config(ask: Ask) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if ask.sampling.temperature is not None:
        config["temperature"] = ask.sampling.temperature
    if ask.sampling.max_output_tokens is not None:
        config["maxOutputTokens"] = ask.sampling.max_output_tokens
    if ask.sampling.effort is not None:
        config["thinkingConfig"] = {"thinkingLevel": _LEVELS[ask.sampling.effort]}
    if ask.output is not None:
        config |= {"responseMimeType": "application/json", "responseJsonSchema": ask.output.schema}
    return config


def _choice(choice: str) -> dict[str, Any]:
    modes = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
    return {"mode": modes[choice]} if choice in modes else {"mode": "ANY", "allowedFunctionNames": [choice]}


def _fault(error: dict[str, Any], status: int) -> ModelFault:
    kind = _FAULTS.get(text(error.get("status"))) or by_status(status)
    message = text(error.get("message")) or f"HTTP {status} without an explanation"
    after_s: float | None = None
    for detail in objs(error.get("details")):
        if match := _DELAY.fullmatch(text(detail.get("retryDelay"))):
            after_s = float(match[1])
        if kind is Busy and any(
            _DAILY in text(violation.get("quotaId")) for violation in objs(detail.get("violations"))
        ):
            kind = Quota
    if kind is Rejected and _TOO_LONG in message:
        kind = ContextFull
    return kind(message, after_s=after_s, status=status)


def _contents(messages: list[Message], ids: Mapping[str, str], producer: str) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = []
    own = {call.id for message in messages if message.producer == producer for call in message.calls if call.wire_id}
    for message in messages:
        role = "model" if message.role == "assistant" else "user"
        parts = [
            part for block in message.blocks if (part := _part(block, ids, own, sealed=message.producer == producer))
        ]
        if not parts:
            continue
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": role, "parts": parts})
    return contents


def _part(block: Block, ids: Mapping[str, str], own: set[str], *, sealed: bool) -> dict[str, Any] | None:
    match block:
        case Text(text=words, seal=seal):
            return {"text": words} | ({"thoughtSignature": seal} if seal and sealed else {})
        case Refusal(text=words):
            return {"text": words}
        case ToolCall():
            call = {"name": block.name, "args": _args(block.arguments)} | _id(block.id, ids, own)
            return {"functionCall": call} | ({"thoughtSignature": block.seal} if block.seal and sealed else {})
        case ToolMessage():
            response = {"error" if block.failed else "output": block.text}
            return {"functionResponse": {"name": block.name, "response": response} | _id(block.id, ids, own)}
        case Opaque(data=data):
            return event(data.encode()) if sealed else None


def _id(call_id: str, ids: Mapping[str, str], own: set[str]) -> dict[str, str]:
    """The identifier, if the provider gave one: it pairs by order otherwise."""
    return {"id": ids[call_id]} if call_id in own and call_id in ids else {}


def _args(arguments: str) -> dict[str, Any]:
    try:
        return arguments_of(arguments)
    except InvalidArgumentsError:
        return {"invalid_json": arguments}


class GeminiReducer:
    """Makes a reply of responses; a reason to finish, or to block the prompt, is what ends it."""

    def __init__(self, ask_id: str, producer: str) -> None:
        self.done = False
        self._ask_id = ask_id
        self._producer = producer
        self._blocks: list[Block] = []
        self._finish = self._blocked = self._model = self._id = ""
        self._usage: dict[str, Any] | None = None

    def feed(self, data: bytes, watch: Watch) -> None:
        message = event(data)
        if message.get("error"):
            raise _fault(obj(message["error"]), 500)
        self._model = text(message.get("modelVersion")) or self._model
        self._id = text(message.get("responseId")) or self._id
        self._usage = obj(message.get("usageMetadata")) or self._usage
        self._blocked = text(obj(message.get("promptFeedback")).get("blockReason")) or self._blocked
        for candidate in parts(message.get("candidates"), "candidates")[:1]:
            for content_part in parts(part(candidate.get("content"), "content").get("parts"), "parts"):
                self._take(content_part, watch)
            self._finish = said(candidate.get("finishReason"), "a reason to finish") or self._finish

    def reply(self) -> ModelReply:
        if not self._finish and not self._blocked:
            raise CutAnswer("the answer broke off before it was complete")
        if self._finish in _AGAIN:
            raise ServerFault(f"the model wrote an answer that its provider could not read ({self._finish})")
        message = Message("assistant", tuple(self._blocks), self._producer)
        stop: Stop = _STOPS.get(self._finish, "filtered" if self._blocked else "failed")
        if stop == "answer" and message.calls:
            stop = "tools"
        return ModelReply(
            message=message,
            stop=stop,
            stop_raw=self._finish or self._blocked,
            usage=usage_of(self._usage),
            usage_raw=self._usage,
            model=self._model,
            response_id=self._id,
        )

    def _take(self, piece: dict[str, Any], watch: Watch) -> None:
        seal, words = text(piece.get("thoughtSignature")), said(piece.get("text"), "text")
        if "functionCall" in piece:
            self._call(part(piece["functionCall"], "a call"), seal, watch)
        elif piece.get("thought") is True:
            watch(Delta("reasoning", words))
            if seal:
                self._blocks.append(Opaque(json_text(piece)))
        elif "text" in piece:
            watch(Delta("text", words))
            last = self._blocks[-1] if self._blocks else None
            if isinstance(last, Text) and not last.seal:
                self._blocks[-1] = Text(last.text + words, seal)
            else:
                self._blocks.append(Text(words, seal))
        else:
            self._blocks.append(Opaque(json_text(piece)))

    def _call(self, call: dict[str, Any], seal: str, watch: Watch) -> None:
        number = sum(isinstance(block, ToolCall) for block in self._blocks)
        arguments = json_text(args) if (args := part(call.get("args"), "arguments")) else ""
        watch(Delta("call", arguments))
        name, wire_id = said(call.get("name"), "the name of a tool"), text(call.get("id"))
        self._blocks.append(ToolCall(f"{self._ask_id}-{number}", name, arguments, wire_id, seal))


def usage_of(raw: dict[str, Any] | None) -> TokenUsage | None:
    """Usage in our terms; its input includes what was cached, its candidates leave out what was reasoned."""
    if raw is None:
        return None
    thoughts = count(raw.get("thoughtsTokenCount"))
    prompt = count(raw.get("promptTokenCount")) + count(raw.get("toolUsePromptTokenCount"))
    answered = raw.get("candidatesTokenCount")  # some answers have the sum alone
    return TokenUsage(
        input=prompt,
        output=max(count(raw.get("totalTokenCount")) - prompt, thoughts)
        if answered is None
        else count(answered) + thoughts,
        cached=count(raw.get("cachedContentTokenCount")),
        reasoning=thoughts,
    )
