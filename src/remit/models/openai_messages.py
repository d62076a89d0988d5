"""Conversations in the format of OpenAI's Chat Completions, which most programs read."""

from __future__ import annotations

from typing import Any, Final

from remit.errors import UsageError
from remit.models.arguments import wire_ids
from remit.models.message import Block, Message, Refusal, Text, ToolCall, ToolMessage
from remit.models.wires.openai_chat import calls_of

_FORM: Final = "Give a list of messages as the Chat Completions API takes them."
_MAX_MESSAGES: Final = 100_000


def to_openai(messages: list[Message]) -> list[dict[str, Any]]:
    """The messages; blocks that only their producer understands are left out."""
    ids = wire_ids(messages, "")
    items: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "tool":
            results = [block for block in message.blocks if isinstance(block, ToolMessage)]
            items += [
                {"role": "tool", "tool_call_id": ids.get(result.id, result.id), "content": result.text}
                for result in results
            ]
            continue
        item: dict[str, Any] = {"role": message.role, "content": message.text}
        refusal = "".join(block.text for block in message.blocks if isinstance(block, Refusal))
        if refusal:
            item["refusal"] = refusal
        if message.calls:
            item["tool_calls"] = calls_of(message, ids)
        items.append(item)
    return items


def from_openai(data: Any) -> list[Message]:
    """The messages of a list in this format. Raises UsageError, which says which one is not in it."""
    if not isinstance(data, list) or len(data) > _MAX_MESSAGES:
        raise UsageError("a conversation is a list of messages", remedy=_FORM)
    messages: list[Message] = []
    names: dict[str, ToolCall] = {}
    for place, item in enumerate(data):
        try:
            message = _message(item, place, names)
        except KeyError as error:
            raise UsageError(f"message {place} has no field {error.args[0]!r}", remedy=_FORM) from error
        except ValueError as error:
            raise UsageError(f"message {place}: {error}", remedy=_FORM) from error
        except (TypeError, AttributeError) as error:
            raise UsageError(f"message {place} has a field of the wrong type: {error}", remedy=_FORM) from error
        if message.role == "tool" and messages and messages[-1].role == "tool":
            messages[-1] = Message("tool", (*messages[-1].blocks, *message.blocks))
        else:
            messages.append(message)
    _check_paired(messages)
    return messages


def _message(item: Any, place: int, names: dict[str, ToolCall]) -> Message:
    role, text = item["role"], _text(item.get("content"))
    match role:
        case "system" | "developer":
            if place:
                raise ValueError("only the first message may be the system's")
            return Message("system", (Text(text),))
        case "user":
            return Message("user", (Text(text),))
        case "tool":
            call = names.pop(wire_id := item["tool_call_id"], None)
            if call is None:
                raise ValueError(f"it is a result for the call {wire_id!r}, which has one already, or is not before it")
            return Message("tool", (ToolMessage(call.id, call.name, text),))
        case "assistant":
            blocks: list[Block] = [Text(text)] if text else []
            if item.get("refusal"):
                blocks.append(Refusal(_text(item["refusal"])))
            for number, tool_call in enumerate(item.get("tool_calls") or ()):
                function = tool_call["function"]
                call = ToolCall(f"m{place}-{number}", function["name"], function["arguments"], tool_call["id"])
                names[tool_call["id"]] = call
                blocks.append(call)
            return Message("assistant", tuple(blocks), "imported/openai")
        case _:
            raise ValueError(f"{role!r} is not a role")


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content)


def _check_paired(messages: list[Message]) -> None:
    """Every call has its result in the message after it. Raises UsageError."""
    for place, message in enumerate(messages):
        wanted = {call.id for call in message.calls}
        after = messages[place + 1].blocks if place + 1 < len(messages) else ()
        if wanted - {block.id for block in after if isinstance(block, ToolMessage)}:
            raise UsageError(f"message {place} has a call without a result after it", remedy=_FORM)
