"""Messages of a conversation, in a form that belongs to no provider.

A message is identified by the digest of its canonical bytes, and those bytes are what is stored: texts are strings and
everything a provider worded is kept as the string it sent, so that any message has a canonical form.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from remit.canonical import canonical, sha256

Role = Literal["system", "user", "assistant", "tool"]


class Text(msgspec.Struct, frozen=True, tag="text", omit_defaults=True):
    """Plain text."""

    text: str
    seal: str = ""
    """A provider's signature over the block, sent back to the same model only."""


class Refusal(msgspec.Struct, frozen=True, tag="refusal"):
    """Text by which a model declines to answer."""

    text: str


class ToolCall(msgspec.Struct, frozen=True, tag="call", omit_defaults=True):
    """A model wants a tool to be called."""

    id: str
    """Ours: unique within the conversation."""
    name: str
    """The tool's name as models see it."""
    arguments: str
    """JSON text exactly as the model wrote it; it may be empty or invalid."""
    wire_id: str = ""
    """The provider's identifier, unique at most within the message."""
    seal: str = ""
    """As for text."""


class ToolMessage(msgspec.Struct, frozen=True, tag="result", omit_defaults=True):
    """What a call gave, as the model reads it."""

    id: str
    """The call's own identifier."""
    name: str
    text: str
    failed: bool = False


class Opaque(msgspec.Struct, frozen=True, tag="opaque"):
    """A block that only its producer understands, such as encrypted reasoning."""

    data: str
    """JSON text, verbatim."""


Block = Text | Refusal | ToolCall | ToolMessage | Opaque


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message."""

    role: Role
    blocks: tuple[Block, ...]
    producer: str = ""
    """`provider/model` of an assistant's message: opaque blocks and seals go back to that model only."""
    replaces: int = 0
    """The number of assistant messages this one summarises."""

    @property
    def text(self) -> str:
        """All plain text of the message."""
        return "".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls in the message, in the order the model made them."""
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))


_decode: Final = msgspec.json.Decoder(Message).decode


def system(text: str) -> Message:
    """Instructions; only the first message of a conversation may be one."""
    return Message("system", (Text(text),))


def user(text: str) -> Message:
    """Return what a person, or a program in their place, says."""
    return Message("user", (Text(text),))


def results(*messages: ToolMessage) -> Message:
    """The results of the calls of one assistant message, in the order of the calls."""
    return Message("tool", messages)


def encode(message: Message) -> bytes:
    """The message's canonical bytes. Raises NotCanonicalError for text that UTF-8 cannot hold."""
    return canonical(msgspec.to_builtins(message))


def decode(encoded: bytes) -> Message:
    """The message of canonical bytes. Raises msgspec.DecodeError."""
    return _decode(encoded)


def digest_of(message: Message) -> str:
    """The message's identity: the digest of its canonical bytes."""
    return sha256(encode(message))


def answer_digest(encoded: bytes) -> str:
    """Digest of a recorded answer without what is made up for each, and without its model.

    That is the identifiers of calls, seals, and blocks that only their producer understands.
    """
    return sha256(msgspec.json.encode(_plain(msgspec.json.decode(encoded)), order="deterministic"))


_MADE_UP: Final = frozenset({"id", "wire_id", "seal", "producer"})


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get("type") == "opaque":
            return {}
        return {key: _plain(each) for key, each in value.items() if key not in _MADE_UP}
    return [_plain(each) for each in value] if isinstance(value, list) else value
