"""Makes room in a conversation: results of tools first, then older turns by a summary; always at whole turns.

Nothing is left out silently: the model reads where something was, and can read results again by their identifier.
"""

from __future__ import annotations

from typing import Final

import msgspec

from remit.models.message import Message, Text, ToolResult, user
from remit.models.thread import EMPTY, Thread

KEPT_TURNS: Final = 4
"""Turns at the end that stay as they are."""
_SHORT: Final = 400
"""Characters of an old result that stay."""
BRIEF: Final = (
    "Summarise the conversation so far for yourself: the task, what was found and done, what failed, what is left, and "
    "every name, path and number that is still needed. Only this summary will be kept of it."
)
HEAD: Final = "Summary of the conversation so far, which was shortened:\n"


def is_brief(message: Message | None) -> bool:
    """Return whether a message asks for a summary."""
    return message is not None and message.role == "user" and message.text == BRIEF


def turns_of(thread: Thread) -> list[int]:
    """Return where turns begin: the place of every answer of the model."""
    return [place for place, message in enumerate(thread.messages()) if message.role == "assistant"]


def size_of(thread: Thread) -> int:
    """Bytes of all messages."""
    return sum(len(node.encoded) for node in thread.since(lambda _: False))


def without_old_results(thread: Thread) -> Thread:
    """The conversation with the results of all but the newest turns cut; the same one if there is nothing to cut."""
    starts = turns_of(thread)
    if len(starts) <= KEPT_TURNS:
        return thread
    messages = thread.messages()
    changed = [_brief(message) if place < starts[-KEPT_TURNS] else message for place, message in enumerate(messages)]
    return thread if changed == messages else EMPTY.add(*changed)


def _brief(message: Message) -> Message:
    if message.role != "tool":
        return message
    blocks = tuple(_cut(block) if isinstance(block, ToolResult) else block for block in message.blocks)
    return msgspec.structs.replace(message, blocks=blocks)


def _cut(result: ToolResult) -> ToolResult:
    if len(result.text) <= 2 * _SHORT:
        return result
    note = f'[left out to make room; read it with id "{result.id}" and offset 0]'
    return msgspec.structs.replace(result, text=f"{result.text[:_SHORT]}\n{note}")


def to_summarise(thread: Thread) -> tuple[Thread, list[Message]] | None:
    """Return what to ask for a summary, and the messages that stay after it; None if there is nothing older."""
    starts = turns_of(thread)
    if len(starts) <= KEPT_TURNS:
        return None
    kept = starts[-KEPT_TURNS]
    messages = thread.messages()
    return EMPTY.add(*messages[:kept], user(BRIEF)), messages[kept:]


def summarised(thread: Thread, kept: list[Message], summary: str) -> Thread:
    """The conversation with a summary in the place of its older turns."""
    messages = thread.messages()
    first = [message for message in messages[:1] if message.role == "system"]
    older = messages[: len(messages) - len(kept)]
    answers = sum(message.replaces + (message.role == "assistant") for message in older)
    note = Message("user", (Text(HEAD + summary),), replaces=answers)
    return EMPTY.add(*first, note, *kept)
