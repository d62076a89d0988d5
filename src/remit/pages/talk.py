"""Messages of a conversation with a model, each call with its result beside it."""

from __future__ import annotations

import msgspec

from remit.models.message import Message, Opaque, Refusal, ToolCall, ToolMessage
from remit.pages.page import ShownValue, shown


class TalkCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a model wanted, and what it was told of it."""

    name: str
    args: ShownValue
    result: ShownValue | None
    """None: it has none yet."""
    failed: bool


class TalkMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message."""

    role: str
    by: str
    """The model; empty for another's words."""
    text: ShownValue
    calls: tuple[TalkCall, ...]
    sealed: int
    """Blocks that only their producer can read."""
    replaces: int
    """The number of its earlier messages a model's summary stands for."""


def talk_of(messages: list[Message]) -> tuple[TalkMessage, ...]:
    """The messages, each call with its result beside it."""
    results = {block.id: block for message in messages for block in message.blocks if isinstance(block, ToolMessage)}
    return tuple(_said(message, results) for message in messages if message.role != "tool")


def _said(message: Message, results: dict[str, ToolMessage]) -> TalkMessage:
    refusal = "".join(block.text for block in message.blocks if isinstance(block, Refusal))
    return TalkMessage(
        role=message.role,
        by=message.producer,
        text=shown("\n".join(part for part in (message.text, refusal) if part)),
        calls=tuple(_call(call, results.get(call.id)) for call in message.calls),
        sealed=sum(isinstance(block, Opaque) for block in message.blocks),
        replaces=message.replaces,
    )


def _call(call: ToolCall, result: ToolMessage | None) -> TalkCall:
    return TalkCall(
        name=call.name.replace("__", "."),
        args=shown(call.arguments or "{}"),
        result=shown(result.text) if result is not None else None,
        failed=result is not None and result.failed,
    )
