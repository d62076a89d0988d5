"""Events of model calls."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from remit.journal.kinds.payload import (
    UNSET,
    ErrorInfo,
    OptionalRaw,
    OptionalRef,
    Payload,
    PolicyDigest,
    SharedDigest,
    holding,
)


class PromptNames(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt names by digest: the list of tools that is offered, and the form that the answer must have."""

    tools: SharedDigest = ""
    output: SharedDigest = ""


class MessageKept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message of a prompt, by digest; its body stands here the first time, unless it is a recorded answer."""

    digest: str
    body: OptionalRaw = UNSET
    body_blob: OptionalRef = UNSET


class CommandStarted(Payload, frozen=True, kw_only=True):
    """Ours: a model is about to be asked. Without a command_committed event, the answer did not arrive."""

    KIND: ClassVar[str] = "command_started"
    invocation_id: str
    step: str
    request_hash: str = ""
    """Binds everything the model is asked: messages, tools, limits and settings."""
    idempotency_key: str = ""
    llm_model: str = ""
    llm_provider: str = ""
    llm_url: str = ""
    """Where the server of an `openai-compatible` model listens."""
    llm_temperature: float | None = None
    prompt_hash: str = ""
    prompt: Annotated[OptionalRaw, holding(PromptNames)] = UNSET
    prompt_blob: OptionalRef = UNSET
    attempt: int = 1
    principal: str = ""
    rule_id: str = ""
    policy_hash: PolicyDigest = ""
    trace_id: str = ""
    span_id: str = ""
    api: str = ""
    """The wire format and its version."""
    wire_hash: str = ""
    """Digest of the exact bytes that are sent."""
    after: str = ""
    """The conversation, as an earlier event of this stream left it, that `added` continues; empty: from the start."""
    after_job: str = ""
    """The job that recorded `after`; empty: this one."""
    added: tuple[MessageKept, ...] = ()
    """Messages of the prompt that are new since then."""
    left_out: dict[str, str] = msgspec.field(default_factory=dict)
    """Tools that were not offered, for their provider would refuse the whole request, each with the reason."""
    confirmation: str = ""
    reserved_tokens: int = 0
    """The tokens that the answer may take at most, counted until it is recorded."""
    reserved_cost: float = 0.0
    """The same in US dollars."""
    skills: dict[str, str] = msgspec.field(default_factory=dict)
    """The skills that the question is under, with the digest of each."""
    policy_kept: bool = False
    """Whether the text of the rules is kept under `policy_hash`."""

    @property
    def name(self) -> str:
        """The model's one name, as settings, prices and sums have it."""
        place = f"{self.llm_url}#{self.llm_model}" if self.llm_url else self.llm_model
        return f"{self.llm_provider}:{place}"


class CommandCommitted(Payload, frozen=True, kw_only=True):
    """A model answered, or the attempt to ask it failed."""

    KIND: ClassVar[str] = "command_committed"
    step: str
    result: OptionalRaw = UNSET
    result_blob: OptionalRef = UNSET
    llm_model: str = ""
    llm_provider: str = ""
    llm_temperature: float | None = None
    prompt_hash: str = ""
    token_count: int = 0
    invocation_id: str = ""
    outcome: Literal["success", "failure", "timeout"] = "success"
    error: ErrorInfo | None = None
    request_hash: str = ""
    prompt: Annotated[OptionalRaw, holding(PromptNames)] = UNSET
    prompt_blob: OptionalRef = UNSET
    input_tokens: int = 0
    output_tokens: int = 0
    finish_reason: str = ""
    duration_ms: float = 0.0
    """The time that it took, in milliseconds, to the microsecond."""
    attempt: int = 1
    span_id: str = ""
    finish_raw: str = ""
    """The reason to finish in the provider's words."""
    cached_tokens: int = 0
    """Input tokens that were read from a cache."""
    cache_written_tokens: int = 0
    """Input tokens that were written to a cache."""
    reasoning_tokens: int = 0
    """Output tokens that were spent on reasoning."""
    usage: dict[str, Any] | None = None
    """Tokens in the provider's words."""
    cost: float | None = None
    """US dollars, estimated from prices; None: no price is known."""
    price_table: str = ""
    """Which prices: `genai-prices/` and the digest of its data, or `settings`."""
    first_token_ms: float | None = None
    """Milliseconds until the first piece of the answer."""
    response_id: str = ""
    request_id: str = ""
    uncertain: bool = False
    """Whether the answer may have been made and paid for without arriving: it counts as reserved."""
    again_ms: int | None = None
    """The attempt is to be made again after so many milliseconds, 0: its worker ended; None: this is the end."""

    @property
    def lost(self) -> bool:
        """Return whether the attempt did not fail, but ended with its worker."""
        return self.again_ms == 0
