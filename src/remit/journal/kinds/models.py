"""Events of model calls."""

from __future__ import annotations

from typing import ClassVar, Literal

from remit.journal.kinds.payload import UNSET, ErrorInfo, OptionalRaw, OptionalRef, Payload


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
    llm_temperature: float | None = None
    prompt_hash: str = ""
    prompt: OptionalRaw = UNSET
    prompt_blob: OptionalRef = UNSET
    attempt: int = 1
    principal: str = ""
    rule_id: str = ""
    policy_hash: str = ""
    trace_id: str = ""
    span_id: str = ""


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
    prompt: OptionalRaw = UNSET
    prompt_blob: OptionalRef = UNSET
    input_tokens: int = 0
    output_tokens: int = 0
    finish_reason: str = ""
    duration_ms: float = 0.0
    """How long it took, in milliseconds, to the microsecond."""
    attempt: int = 1
    span_id: str = ""
