"""A conversation as a chain of references: adding a message costs the same however long it is.

The tip is a digest over the tip before it and the new message's digest, so one digest names the whole list, and a
record of a prompt needs only the messages that were added since the last recorded one.

Makes room in a conversation: results of tools first, then older turns by a summary; always at whole turns.

Nothing is left out silently: the model reads where something was, and can read results again by their identifier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from remit.canonical import sha256
from remit.models.message import Message, Text, ToolMessage, encode, user

START: Final = ""
"""The tip of an empty thread."""


class KnownPrompts(msgspec.Struct, frozen=True):
    """What a stream holds of earlier prompts."""

    tips: set[str]
    """Conversations, as recorded prompts left them."""
    messages: set[str]
    """Messages by digest."""
    elsewhere: dict[str, str] = msgspec.field(default_factory=dict)
    """Those of `tips` that another job has recorded, with that job."""

    def adopt(self, tip: str, job: str) -> None:
        """Take a conversation that another job has recorded for known."""
        self.tips.add(tip)
        self.elsewhere[tip] = job


def tip_of(before: str, message: str) -> str:
    """The tip of a thread with one message more, from the tip before and the message's digest."""
    return sha256(f"{before}\0{message}".encode())


class Thread:
    """An immutable list of messages; each thread is the one before it and one message more."""

    __slots__ = ("_begun", "answers", "before", "digest", "encoded", "length", "message", "replies", "size", "tip")

    def __init__(self, before: Thread | None, message: Message | None) -> None:
        self.before = before
        self.message = message
        self.encoded, self.digest, self.tip, self.length = b"", "", START, 0
        self.size = 0
        """Bytes of all messages."""
        self.replies = self.answers = 0
        """Answers of models among the messages; with those that summaries stand for."""
        self._begun: set[str] | None = None
        if before is not None and message is not None:
            self.encoded = encode(message)
            self.digest = sha256(self.encoded)
            self.tip = tip_of(before.tip, self.digest)
            self.length = before.length + 1
            self.size = before.size + len(self.encoded)
            self.replies = before.replies + (message.role == "assistant")
            self.answers = before.answers + (message.role == "assistant") + message.replaces

    def __len__(self) -> int:
        return self.length

    def add(self, *messages: Message) -> Thread:
        """This thread with more messages."""
        thread = self
        for message in messages:
            thread = Thread(thread, message)
        return thread

    def messages(self) -> list[Message]:
        """All messages, oldest first."""
        return [node.message for node in self.since(lambda _: False) if node.message is not None]

    def has_calls_of(self, beginning: str) -> bool:
        """Return whether a call's identifier in it begins so, and goes on after a hyphen.

        What was found for the thread before goes on to this one: a turn costs what is new in it.
        """
        fresh: list[Message | None] = []
        node = self
        while node.before is not None and node._begun is None:
            fresh.append(node.message)
            node = node.before
        begun = node._begun if node._begun is not None else set()  # noqa: SLF001 - its own kind
        node._begun = None  # noqa: SLF001 - its own kind
        for message in fresh:
            for call in message.calls if message is not None else ():
                begun.update(call.id[:place] for place, letter in enumerate(call.id) if letter == "-")
        if self.before is not None:
            self._begun = begun
        return beginning in begun

    def since(self, known: Callable[[str], bool]) -> list[Thread]:
        """Return what was added after the newest tip that is known, oldest first."""
        nodes: list[Thread] = []
        node: Thread = self
        while node.before is not None and not known(node.tip):
            nodes.append(node)
            node = node.before
        nodes.reverse()
        return nodes


EMPTY: Final = Thread(None, None)
"""The thread that every other begins with."""


def thread_of(messages: Iterable[Message]) -> Thread:
    """The thread of these messages."""
    return EMPTY.add(*messages)


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
    blocks = tuple(_cut(block) if isinstance(block, ToolMessage) else block for block in message.blocks)
    return msgspec.structs.replace(message, blocks=blocks)


def _cut(result: ToolMessage) -> ToolMessage:
    if len(result.text) <= 2 * _SHORT:
        return result
    note = f'[left out to make room; read it with id "{result.id}" and offset 0]'
    return msgspec.structs.replace(result, text=f"{result.text[:_SHORT]}\n{note}")


def to_summarise(thread: Thread) -> tuple[Thread, list[Message]] | None:
    """Return what to ask for a summary, and the messages that stay after it; None if there is nothing older."""
    starts = turns_of(thread)
    if len(starts) <= KEPT_TURNS:
        return None
    start = starts[-KEPT_TURNS]
    messages = thread.messages()
    return EMPTY.add(*messages[:start], user(BRIEF)), messages[start:]


def summarised(thread: Thread, newest: list[Message], summary: str) -> Thread:
    """The conversation with a summary in the place of its older turns."""
    messages = thread.messages()
    first = [message for message in messages[:1] if message.role == "system"]
    older = messages[: len(messages) - len(newest)]
    answers = sum(message.replaces + (message.role == "assistant") for message in older)
    note = Message("user", (Text(HEAD + summary),), replaces=answers)
    return EMPTY.add(*first, note, *newest)
