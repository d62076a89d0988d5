"""Requests of programs, read as far as the gate needs it: the conversation, tools, limits, and where messages stand.

No request is written again: what is read here is judged and recorded, and the bytes that came are those that leave.
Messages are read once: the next request of a conversation differs from the last one by what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

import msgspec

from remit.canonical import sha256
from remit.errors import NotCanonicalError
from remit.models.message import Block, Message, Opaque, Role, Text, ToolCall, ToolMessage
from remit.models.prompt import NO_TOOLS, OfferedTools, Sampling, ToolSpec, toolset_of
from remit.models.thread import EMPTY, Thread
from remit.models.wires.openai_responses import spaced
from remit.models.wires.wire import json_text, obj, objs, text, written
from remit.parts.model_gateway.wires import CONTENT, MESSAGES, RESPONSES, WireRoute, WireRow

_MOST: Final = 20_000
"""Messages and lists of tools that are remembered of a run."""
_GAP: Final = 200
"""Bytes between two messages of a list at most."""
_ADDED: Final = b'"additional_tools"'


class UnreadableError(Exception):
    """A request cannot be read."""


class _Generation(msgspec.Struct):
    maxOutputTokens: int | None = None  # noqa: N815 - the wire's
    temperature: float | None = None


class _Body(msgspec.Struct):
    """The fields of all wires that decide something."""

    model: str = ""
    stream: bool | None = None
    messages: tuple[msgspec.Raw, ...] = ()
    input: msgspec.Raw = msgspec.Raw(b"null")
    contents: tuple[msgspec.Raw, ...] = ()
    system: msgspec.Raw = msgspec.Raw(b"null")
    instructions: msgspec.Raw = msgspec.Raw(b"null")
    systemInstruction: msgspec.Raw = msgspec.Raw(b"null")  # noqa: N815 - the wire's
    tools: msgspec.Raw = msgspec.Raw(b"null")
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    generationConfig: _Generation | None = None  # noqa: N815 - the wire's

    @property
    def limit(self) -> int | None:
        """Output tokens that the answer may have."""
        config = self.generationConfig
        limits = (self.max_tokens, self.max_completion_tokens, self.max_output_tokens)
        wanted = [each for each in (*limits, config.maxOutputTokens if config else None) if each is not None]
        return max(0, *wanted) if wanted else None


class RequestReading(NamedTuple):
    """A request that was read."""

    model: str
    streams: bool
    thread: Thread
    tools: OfferedTools
    sampling: Sampling
    results: tuple[str, ...]
    """Calls whose results are new, by the provider's identifiers."""
    segments: tuple[bytes, ...]
    """The body in parts: what comes before the first message, each message with what stands before it, the rest."""


_decode: Final = msgspec.json.Decoder(_Body).decode
_plain: Final = msgspec.json.Decoder().decode
_list: Final = msgspec.json.Decoder(tuple[msgspec.Raw, ...]).decode


class Reader:
    """Reads the requests of one run."""

    def __init__(self) -> None:
        self._threads: dict[tuple[str, str], Thread] = {}
        self._tools: dict[str, OfferedTools] = {}

    def read(self, route: WireRoute, body: bytes) -> RequestReading:
        """Read a request. Raise UnreadableError."""
        if route.row is None:
            raise UnreadableError("it is no question that is known")
        try:
            parsed = _decode(body)
            messages = _messages(route.row, parsed)
            thread, results = self._thread(route.row, parsed, messages)
            tools = self._toolset((bytes(parsed.tools), *_added_tools(route.row, messages)))
        except (msgspec.DecodeError, UnicodeError, RecursionError, NotCanonicalError, ValueError) as error:
            raise UnreadableError(str(error)) from error
        config = parsed.generationConfig
        temperature = parsed.temperature if config is None else config.temperature
        return RequestReading(
            model=route.model or parsed.model,
            streams=bool(parsed.stream) if route.streams is None else route.streams,
            thread=thread,
            tools=tools,
            sampling=Sampling(temperature=temperature, max_output_tokens=parsed.limit),
            results=results,
            segments=segments_of(body, messages),
        )

    def _thread(self, row: WireRow, body: _Body, messages: tuple[msgspec.Raw, ...]) -> tuple[Thread, tuple[str, ...]]:
        """Return the conversation, and the calls whose results were not read before."""
        thread, results = EMPTY, list[str]()
        instructions = next(
            (raw for raw in (body.system, body.instructions, body.systemInstruction) if raw != _NULL), None
        )
        if instructions is not None:
            thread = self._add(thread, bytes(instructions), _instructions, results)
        for raw in messages:
            thread = self._add(thread, bytes(raw), _CONVERT[row.name], results)
        return thread, tuple(results)

    def _add(self, thread: Thread, raw: bytes, convert: Callable[[Any], list[Message]], results: list[str]) -> Thread:
        key = (thread.tip, sha256(raw))
        known = self._threads.get(key)
        if known is None:
            messages = convert(_plain(raw))
            known = self._threads[key] = thread.add(*messages)
            results += [block.id for message in messages for block in message.blocks if isinstance(block, ToolMessage)]
            if len(self._threads) > _MOST:
                self._threads.clear()
        return known

    def _toolset(self, lists: tuple[bytes, ...]) -> OfferedTools:
        if lists == (b"null",):
            return NO_TOOLS
        key = sha256(b"".join(lists))
        known = self._tools.get(key)
        if known is None:
            known = self._tools[key] = toolset_of(spec for raw in lists for spec in _tools(_plain(raw)))
            if len(self._tools) > _MOST:
                self._tools.clear()
        return known


_NULL: Final = msgspec.Raw(b"null")


def _messages(row: WireRow, body: _Body) -> tuple[msgspec.Raw, ...]:
    if row is CONTENT:
        return body.contents
    if row is not RESPONSES:
        return body.messages
    raw = bytes(body.input)
    return _list(raw) if raw.lstrip()[:1] == b"[" else (body.input,) if raw != b"null" else ()


def _added_tools(row: WireRow, messages: tuple[msgspec.Raw, ...]) -> list[bytes]:
    """Tools that stand among the items of the Responses wire, and not beside them."""
    if row is not RESPONSES:
        return []
    return [data for raw in messages if _ADDED in (data := bytes(raw))[:_GAP]]


def segments_of(body: bytes, messages: Iterable[msgspec.Raw]) -> tuple[bytes, ...]:
    """Cut a body at the ends of its messages; joined again it is the same bytes."""
    cuts, at = [0], 0
    for raw in messages:
        data = bytes(raw)
        begin = body.find(data, at)
        if begin < 0 or (len(cuts) > 1 and begin - at > _GAP):
            return (body,)
        if len(cuts) == 1:
            cuts.append(begin)
        at = begin + len(data)
        cuts.append(at)
    cuts.append(len(body))
    return tuple(body[begin:end] for begin, end in pairwise(cuts) if end > begin)


# --- messages, in the form that belongs to no provider; what has no place there stays as it is, in an opaque block


def _text_of(value: Any) -> str:
    """The text of a content: a string, or parts with a text each."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return _text_of(value.get("text") if "text" in value else value.get("parts"))
    return "".join(_text_of(part) for part in objs(value))


def _instructions(value: Any) -> list[Message]:
    return [Message("system", (Text(_text_of(value)),))]


def _role(name: str) -> Role:
    match name:
        case "assistant" | "model":
            return "assistant"
        case "system" | "developer":
            return "system"
        case "tool" | "function":
            return "tool"
        case _:
            return "user"


def _parts(value: Any) -> list[Block]:
    """Blocks of a content that is a text or a list of parts."""
    if value is None:
        return []
    if isinstance(value, str):
        return [Text(value)]
    return [
        Text(part["text"]) if isinstance(part.get("text"), str) else Opaque(json_text(part)) for part in objs(value)
    ]


def _chat(item: Any) -> list[Message]:
    item = obj(item)
    role = _role(text(item.get("role")))
    if role == "tool":
        called = text(item.get("tool_call_id"))
        return [Message("tool", (ToolMessage(called, text(item.get("name")), _text_of(item.get("content"))),))]
    blocks = _parts(item.get("content"))
    for call in objs(item.get("tool_calls")):
        function = obj(call.get("function"))
        blocks.append(ToolCall(text(call.get("id")), text(function.get("name")), written(function.get("arguments"))))
    return [Message(role, tuple(blocks))]


def _responses(item: Any) -> list[Message]:
    if isinstance(item, str):
        return [Message("user", (Text(item),))]
    item = obj(item)
    called = text(item.get("call_id"))
    match text(item.get("type")):
        case "function_call" | "custom_tool_call":
            name = spaced(item, text(item.get("name")))
            arguments = written(item.get("arguments") or item.get("input"))
            return [Message("assistant", (ToolCall(called, name, arguments),))]
        case "function_call_output" | "custom_tool_call_output":
            return [Message("tool", (ToolMessage(called, "", _text_of(item.get("output"))),))]
        case "message" | "":
            return [Message(_role(text(item.get("role"))), tuple(_parts(item.get("content"))))]
        case _:
            return [Message("assistant", (Opaque(json_text(item)),))]


def _anthropic(item: Any) -> list[Message]:
    """Results stand in a user's message there; here they are a message of their own, before what a person adds."""
    item = obj(item)
    results, blocks = list[Block](), list[Block]()
    content = item.get("content")
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else objs(content):
        match text(part.get("type")):
            case "text":
                blocks.append(Text(text(part.get("text"))))
            case "tool_use":
                call = ToolCall(text(part.get("id")), text(part.get("name")), written(part.get("input")))
                blocks.append(call)
            case "tool_result":
                failed = part.get("is_error") is True
                results.append(ToolMessage(text(part.get("tool_use_id")), "", _text_of(part.get("content")), failed))
            case _:
                fields = {name: value for name, value in part.items() if name != "cache_control"}
                blocks.append(Opaque(json_text(fields)))
    messages_after = [Message("tool", tuple(results))] if results else []
    return [
        *messages_after,
        *([Message(_role(text(item.get("role"))), tuple(blocks))] if blocks or not messages_after else []),
    ]


def _gemini(item: Any) -> list[Message]:
    item = obj(item)
    results, blocks = list[Block](), list[Block]()
    for part in objs(item.get("parts")):
        if isinstance(response := part.get("functionResponse"), dict):
            name = text(response.get("name"))
            result_text = json_text(response.get("response"))
            results.append(ToolMessage(text(response.get("id")) or name, name, result_text))
        elif isinstance(call := part.get("functionCall"), dict):
            name = text(call.get("name"))
            blocks.append(ToolCall(text(call.get("id")) or name, name, written(call.get("args") or {})))
        elif isinstance(part.get("text"), str) and part.get("thought") is not True:
            blocks.append(Text(part["text"]))
        else:
            blocks.append(Opaque(json_text(part)))
    told_of = [Message("tool", tuple(results))] if results else []
    role = _role(text(item.get("role")))
    return [*told_of, *([Message(role, tuple(blocks))] if blocks or not told_of else [])]


_CONVERT: Final[Mapping[str, Callable[[Any], list[Message]]]] = {
    MESSAGES.name: _anthropic,
    CONTENT.name: _gemini,
    RESPONSES.name: _responses,
    "openai-chat": _chat,
}


def _tools(value: Any) -> list[ToolSpec]:
    """The tools on offer, on any wire; those of a namespace by its name and theirs."""
    specs = list[ToolSpec]()
    for tool in objs(value.get("tools") if isinstance(value, dict) else value):
        declared = tool.get("functionDeclarations", tool.get("function_declarations"))
        if declared is not None:
            specs += [_spec(each) for each in objs(declared)]
        elif tool.get("type") == "namespace":
            specs += [_spec(each, f"{text(tool.get('name'))}.") for each in objs(tool.get("tools"))]
        else:
            specs.append(_spec(obj(tool.get("function")) or tool))
    return specs


def _spec(tool: dict[str, Any], space: str = "") -> ToolSpec:
    schema = next(
        (obj(tool[name]) for name in ("input_schema", "parameters", "parametersJsonSchema") if name in tool), {}
    )
    name = text(tool.get("name")) or text(tool.get("type"))
    return ToolSpec(name=f"{space}{name}", description=text(tool.get("description")), schema=schema)
