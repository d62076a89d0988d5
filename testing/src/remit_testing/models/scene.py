"""A model's answer in a test, in no wire's words, and how a wire says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from remit.models.faults import ModelFault
from remit.models.reply import Stop, TokenUsage

USAGE: Final = TokenUsage(input=28, output=14, cached=8, reasoning=4)


class SceneCall(msgspec.Struct, frozen=True):
    """A call the model makes."""

    name: str
    arguments: str
    """JSON text, sent in two pieces if the wire sends pieces."""
    id: str = ""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """One answer."""

    text: tuple[str, ...] = ()
    """Pieces."""
    calls: tuple[SceneCall, ...] = ()
    refusal: str = ""
    stop: Stop = "answer"
    usage: TokenUsage = USAGE
    model: str = "served-1"


class Canned(msgspec.Struct, frozen=True, kw_only=True):
    """A response that is not a stream."""

    status: int
    body: bytes
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


class Failing(msgspec.Struct, frozen=True, kw_only=True):
    """A failure, as the wire reports it, and the fault that it is."""

    canned: Canned
    fault: type[ModelFault]
    after_s: float | None = None


class Speech(Protocol):
    """The speech of one wire."""

    name: str
    whole_calls: bool
    """Whether arguments come in one piece, as a JSON value: the wire then cannot say invalid ones."""

    def events(self, scene: Scene) -> list[bytes]:
        """The answer as data of events, in order."""
        ...

    def complete_after(self, scene: Scene) -> int:
        """Return how many of these events make the answer complete."""
        ...

    def error_event(self) -> bytes:
        """An event that says, within a stream, that the provider is overloaded."""
        ...

    def unknown_event(self) -> bytes:
        """An event of a kind that does not exist yet."""
        ...

    def failures(self) -> list[Failing]:
        """Every kind of failure the wire reports by a status."""
        ...

    def pairs(self, body: Any) -> tuple[list[str], list[str]]:
        """The identifiers of the calls in a request, and of the results, in order; names if there are none."""
        ...


def sse(data: bytes) -> bytes:
    """An event of a stream. Its kind stands in the data of every wire, and is repeated here if there is one."""
    kind = msgspec.json.decode(data).get("type") if data.startswith(b"{") else None
    head = f"event: {kind}\n".encode() if isinstance(kind, str) else b""
    return head + b"data: " + data + b"\n\n"


def pieces(text: str) -> list[str]:
    """A text in two pieces; none for an empty one."""
    middle = (len(text) + 1) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def encode(value: Any) -> bytes:
    """JSON bytes."""
    return msgspec.json.encode(value)


def canned(status: int, body: Any, **headers: str) -> Canned:
    """A JSON response; `_` in a header's name stands for `-`."""
    return Canned(status=status, body=encode(body), headers={k.replace("_", "-"): v for k, v in headers.items()})
