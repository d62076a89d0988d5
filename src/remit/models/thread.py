"""A conversation as a chain of references: adding a message costs the same however long it is.

The tip is a digest over the tip before it and the new message's digest, so one digest names the whole list, and a
record of a prompt needs only the messages that were added since the last recorded one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from remit.canonical import sha256
from remit.models.message import Message, encode

START: Final = ""
"""The tip of an empty thread."""


class Known(msgspec.Struct, frozen=True):
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

    __slots__ = ("before", "digest", "encoded", "length", "message", "tip")

    def __init__(self, before: Thread | None, message: Message | None) -> None:
        self.before = before
        self.message = message
        self.encoded, self.digest, self.tip, self.length = b"", "", START, 0
        if before is not None and message is not None:
            self.encoded = encode(message)
            self.digest = sha256(self.encoded)
            self.tip = tip_of(before.tip, self.digest)
            self.length = before.length + 1

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
