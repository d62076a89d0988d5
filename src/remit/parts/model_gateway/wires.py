"""The wires of providers as programs speak them: where they answer, how they refuse, and how an answer is read.

What a provider's stream says is read by the reducers of remit.models.wires, the same that read answers to Remit itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from remit.jsonrpc.stream import EventReader
from remit.models.names import Provider as ProviderName
from remit.models.wires.anthropic import AnthropicMessages, AnthropicReducer
from remit.models.wires.gemini import Gemini, GeminiReducer
from remit.models.wires.openai_chat import ChatReducer, OpenAIChat
from remit.models.wires.openai_responses import OpenAIResponses, ResponsesReducer
from remit.models.wires.wire import Reducer, Wire, obj, objs, text
from remit.regex import regex

Kind = Literal["model", "count", "aside", "other"]
"""A question to a model; a count of its tokens, which is free; a look at a list; anything else of the provider's."""
_LIMITED: Final = 429
_GEMINI_MODEL: Final = regex(r"models/([^/:]+):(stream)?[gG]enerateContent")
_encode: Final = msgspec.json.Encoder().encode


class Family(NamedTuple):
    """A provider's address here, the form of its errors, and the headers of its key."""

    prefix: str
    provider: ProviderName
    version: str
    """The part of the path that some clients leave out, such as `/v1`."""
    based: str
    """The part of the path that its base URL in the settings has already."""
    key_header: str
    refusal: Callable[[int, str, str, str], bytes]
    """Makes the body of an error: from a status, the kind of error, words and Remit's code."""


class Provider(NamedTuple):
    """Where the requests of one family go."""

    url: str
    key: str


class WireRow(NamedTuple):
    """One wire."""

    name: str
    wire: Wire
    reducer: Callable[[str, str], Reducer]
    whole: Callable[[dict[str, Any]], list[dict[str, Any]]]
    """Makes the events of an answer that came in one piece."""


class WireRoute(NamedTuple):
    """A request as its path says it."""

    family: Family
    path: str
    """The path below the provider's base URL, with its version."""
    kind: Kind
    row: WireRow | None
    """The wire of a question; None for anything else."""
    model: str = ""
    """The model that the path names, if it does."""
    streams: bool | None = None
    """Whether the path asks for a stream; None: the body says so."""


class Request(NamedTuple):
    """A request of a program, whole."""

    method: str
    route: WireRoute
    query: str
    headers: dict[str, str]
    body: bytes


def _openai_refusal(_status: int, kind: str, words: str, code: str) -> bytes:
    return _encode({"error": {"message": words, "type": kind, "param": None, "code": code}})


def _anthropic_refusal(_status: int, kind: str, words: str, _code: str) -> bytes:
    return _encode({"type": "error", "error": {"type": kind, "message": words}})


_GEMINI_KINDS: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    426: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def _gemini_refusal(status: int, _kind: str, words: str, _code: str) -> bytes:
    error = {"code": status, "message": words, "status": _GEMINI_KINDS.get(status, "INTERNAL")}
    return _encode({"error": error})


KINDS: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    426: "invalid_request_error",
    429: "rate_limit_error",
    502: "api_error",
    503: "overloaded_error",
    504: "timeout_error",
}
"""The provider's word for an error, by its status: the word decides whether a client asks again."""

OPENAI: Final = Family("/openai", "openai", "/v1", "/v1", "authorization", _openai_refusal)
ANTHROPIC: Final = Family("/anthropic", "anthropic", "/v1", "", "x-api-key", _anthropic_refusal)
GEMINI: Final = Family("/gemini", "google", "/v1beta", "", "x-goog-api-key", _gemini_refusal)
FAMILIES: Final = (OPENAI, ANTHROPIC, GEMINI)


def _chat_whole(answer: dict[str, Any]) -> list[dict[str, Any]]:
    choices = [{**choice, "delta": choice.get("message")} for choice in objs(answer.get("choices"))]
    return [{**answer, "choices": choices}]


def _responses_whole(answer: dict[str, Any]) -> list[dict[str, Any]]:
    status = answer.get("status") or "completed"
    return [{"type": f"response.{status}", "response": answer}]


def _anthropic_whole(answer: dict[str, Any]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": answer}]
    for index, block in enumerate(objs(answer.get("content"))):
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_stop", "index": index},
        ]
    delta = {"stop_reason": answer.get("stop_reason")}
    return [*events, {"type": "message_delta", "delta": delta, "usage": {}}, {"type": "message_stop"}]


def _gemini_whole(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [answer]


CHAT: Final = WireRow("openai-chat", OpenAIChat("openai"), ChatReducer, _chat_whole)
RESPONSES: Final = WireRow("openai-responses", OpenAIResponses(), ResponsesReducer, _responses_whole)
MESSAGES: Final = WireRow("anthropic-messages", AnthropicMessages(), AnthropicReducer, _anthropic_whole)
CONTENT: Final = WireRow("gemini-content", Gemini(), GeminiReducer, _gemini_whole)
_QUESTIONS: Final[Mapping[str, WireRow]] = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/messages": MESSAGES,
}
_COUNTS: Final = ("/count_tokens", ":countTokens", "/input_tokens")


def route_of(method: str, path: str) -> WireRoute | None:
    """Return what a path asks for; None below no prefix. Both forms are known, with the version and without."""
    family = next((each for each in FAMILIES if path == each.prefix or path.startswith(f"{each.prefix}/")), None)
    if family is None:
        return None
    rest = path[len(family.prefix) :]
    if not (rest == family.version or rest.startswith(f"{family.version}/")) and not _versioned(family, rest):
        rest = f"{family.version}{rest}"
    if method in {"GET", "HEAD"}:
        return WireRoute(family, rest, "aside", None)
    if rest.endswith(_COUNTS):
        return WireRoute(family, rest, "count", None)
    if family is GEMINI and (named := _GEMINI_MODEL.search(rest)) is not None:
        return WireRoute(family, rest, "model", CONTENT, named[1], bool(named[2]))
    row = _QUESTIONS.get(rest) if family is not GEMINI else None
    return WireRoute(family, rest, "model" if row is not None else "other", row)


def _versioned(family: Family, rest: str) -> bool:
    """Return whether a path of Gemini's names another version, such as `/v1` or `/v1alpha`."""
    return family is GEMINI and re.match(r"/v\d\w*/", rest) is not None


def refusal_of(family: Family, status: int, words: str, code: str) -> bytes:
    """Return an error in the words of a provider."""
    return family.refusal(status, KINDS.get(status, "api_error"), words, code)


def whole_events(row: WireRow, body: bytes) -> list[bytes]:
    """Return an answer that came in one piece as data of events. Raise msgspec.DecodeError."""
    answer = msgspec.json.decode(body)
    answers = answer if isinstance(answer, list) else [answer]  # Gemini's stream, where it is not one of events
    return [_encode(event) for each in answers for event in row.whole(obj(each))]


def closed_calls(row: WireRow | None, answer: bytes) -> list[str]:
    """Return the calls that stand whole in a stream that broke off."""
    return _CLOSED[row.name](_events(answer)) if row is not None else []


def _messages_closed(events: list[dict[str, Any]]) -> list[str]:
    closed, begun = list[str](), dict[Any, str]()
    for event in events:
        block, index = obj(event.get("content_block")), event.get("index")
        if block.get("type") == "tool_use":
            begun[index] = text(block.get("id"))
        elif event.get("type") == "content_block_stop" and index in begun:
            closed.append(begun.pop(index))
    return closed


def _responses_closed(events: list[dict[str, Any]]) -> list[str]:
    items = [obj(event.get("item")) for event in events if event.get("type") == "response.output_item.done"]
    return [text(item.get("call_id")) for item in items if item.get("type") == "function_call"]


def _content_closed(events: list[dict[str, Any]]) -> list[str]:
    answers = [obj(candidate.get("content")) for event in events for candidate in objs(event.get("candidates"))]
    calls = [obj(part.get("functionCall")) for answer in answers for part in objs(answer.get("parts"))]
    return [text(call.get("id")) or text(call.get("name")) for call in calls if call]


def _chat_closed(events: list[dict[str, Any]]) -> list[str]:
    """A call ends where the next begins, or with the reason to finish."""
    closed, begun = list[str](), list[str]()
    for choice in (choice for event in events for choice in objs(event.get("choices"))):
        fresh = [text(call["id"]) for call in objs(obj(choice.get("delta")).get("tool_calls")) if call.get("id")]
        if fresh or choice.get("finish_reason"):
            closed, begun = [*closed, *begun], fresh
    return closed


_CLOSED: Final[Mapping[str, Callable[[list[dict[str, Any]]], list[str]]]] = {
    MESSAGES.name: _messages_closed,
    RESPONSES.name: _responses_closed,
    CONTENT.name: _content_closed,
    CHAT.name: _chat_closed,
}


def _events(answer: bytes) -> list[dict[str, Any]]:
    """The events of a stream that can be read."""
    events = list[dict[str, Any]]()
    for event in EventReader(len(answer) + 1).feed(answer):
        try:
            events.append(obj(msgspec.json.decode(event.data)))
        except (msgspec.DecodeError, RecursionError):
            continue
    return events
