"""The question to a model: a prompt made of references, and the values behind them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec

from remit.canonical import digest, sha256
from remit.models.message import Message
from remit.models.thread import Thread

Effort = Literal["none", "minimal", "low", "medium", "high", "max"]


Cache = Literal["off", "short", "long"]


class Sampling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the model is to answer; None leaves it to the provider."""

    temperature: float | None = None
    effort: Effort | None = None
    """The effort with which the model should reason."""
    max_output_tokens: int | None = None
    parallel: bool | None = None
    """True if one answer may hold several calls."""
    cache: Cache | None = None
    """Whether the provider is to keep the beginning of the prompt for other questions, and for how long."""


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as it is offered to a model."""

    name: str
    """The name that models see."""
    description: str
    schema: dict[str, Any]
    """JSON schema of the arguments, as the tool's owner wrote it."""


class OfferedTools(msgspec.Struct, frozen=True, kw_only=True):
    """The tools that are offered, in their order."""

    specs: tuple[ToolSpec, ...] = ()
    encoded: bytes = b"[]"
    """The list as JSON, as it is kept."""
    digest: str = ""
    """Its identity; empty if there are no tools."""


NO_TOOLS: Final = OfferedTools()


def toolset_of(specs: Iterable[ToolSpec]) -> OfferedTools:
    """The tools, hashed once for all the prompts that offer them."""
    offered = tuple(specs)
    if not offered:
        return NO_TOOLS
    encoded = msgspec.json.encode(offered)
    return OfferedTools(specs=offered, encoded=encoded, digest=sha256(encoded))


class OutputForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form an answer must have."""

    name: str
    schema: dict[str, Any]

    @property
    def encoded(self) -> bytes:
        """The form as JSON, as it is kept."""
        return msgspec.json.encode(self)

    @property
    def digest(self) -> str:
        """Its identity."""
        return sha256(self.encoded)


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, by reference; which model is asked is no part of it."""

    thread: str
    """Tip of the conversation (thread.py)."""
    tools: str = ""
    """Digest of the list of tools offered; empty if there are none."""
    choice: str = "auto"
    """`auto`, `none`, `required`, or the name of the one tool to call."""
    sampling: Sampling = Sampling()
    output: str = ""
    """Digest of the form the answer must have."""

    @property
    def hash(self) -> str:
        """The prompt's identity, the same for every provider."""
        return digest(msgspec.to_builtins(self))


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt with the values that it refers to."""

    thread: Thread
    tools: OfferedTools = NO_TOOLS
    choice: str = "auto"
    sampling: Sampling = Sampling()
    output: OutputForm | None = None
    id: str = "0"
    """Prefix of the identifiers that calls in the answer get: unique within the conversation."""
    attempt: int = 1
    """The number of the attempt at this question; no part of the prompt, nor of what is sent."""

    @property
    def prompt(self) -> Prompt:
        """The references alone."""
        return Prompt(
            thread=self.thread.tip,
            tools=self.tools.digest,
            choice=self.choice,
            sampling=self.sampling,
            output=self.output.digest if self.output else "",
        )

    @property
    def messages(self) -> list[Message]:
        """The conversation, oldest first."""
        return self.thread.messages()

    @property
    def turn(self) -> int:
        """Return how many times a model has answered in this conversation."""
        return self.thread.answers
