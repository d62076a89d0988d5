"""The reply of a model. A reply exists only once the wire said that it is complete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from remit.models.message import Message, ToolCall

Stop = Literal["answer", "tools", "length", "refused", "filtered", "paused", "context_full", "empty", "failed"]
"""Why the model stopped. Calls count with `tools` only; `paused` wants the reply sent back unchanged."""


class TokenUsage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens, counted the same way for every provider."""

    input: int = 0
    """All input tokens, cached or not."""
    output: int = 0
    """All output tokens, reasoning included."""
    cached: int = 0
    """Input tokens read from a cache."""
    cache_written: int = 0
    """Input tokens written to a cache."""
    cache_written_hour: int = 0
    """Those of them that it keeps for an hour, at a price of their own."""
    reasoning: int = 0
    """Output tokens spent on reasoning."""

    @property
    def total(self) -> int:
        """Input and output."""
        return self.input + self.output


class ModelReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A complete answer."""

    message: Message
    stop: Stop
    stop_raw: str = ""
    """The reason in the provider's words."""
    usage: TokenUsage | None = None
    """None if the provider did not say."""
    usage_raw: dict[str, Any] | None = None
    model: str = ""
    """The model that answered, as its provider names it."""
    response_id: str = ""
    request_id: str = ""
    first_us: int | None = None
    """Microseconds from sending to the first piece of the answer; None if there was none."""
    duration_us: int = 0
    """Microseconds from sending to the end of the answer."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls to execute: none unless the model stopped in order to call them."""
        return self.message.calls if self.stop == "tools" else ()

    @property
    def text(self) -> str:
        """The plain text of the answer."""
        return self.message.text

    def checked(self) -> ModelReply:
        """This reply; `empty` in the place of an answer without text, or of `tools` without a call."""
        nothing = not self.text.strip() if self.stop == "answer" else self.stop == "tools" and not self.calls
        return msgspec.structs.replace(self, stop="empty") if nothing else self


class Delta(msgspec.Struct, frozen=True):
    """A piece of an answer that is still coming, for anyone who watches; nothing depends on it."""

    kind: Literal["text", "reasoning", "call"]
    text: str


Watch = Callable[[Delta], None]


def unwatched(delta: Delta) -> None:
    """Drop a piece that nothing listens to."""
