"""Errors and usage on OpenAI's two wires, which servers of other makes copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from remit.http.retry import retry_after
from remit.models.faults import (
    Auth,
    Busy,
    ContextFull,
    ModelFault,
    Overloaded,
    Quota,
    Rejected,
    ServerFault,
    UnknownModel,
    by_status,
)
from remit.models.reply import TokenUsage
from remit.models.wires.wire import WireFailure, body, count, obj, text

_CODES: Final[Mapping[str, type[ModelFault]]] = {
    "rate_limit_exceeded": Busy,
    "rate_limit_error": Busy,
    "slow_down": Busy,
    "insufficient_quota": Quota,
    "credit_balance_exhausted": Quota,
    "billing_hard_limit_reached": Quota,
    "server_is_overloaded": Overloaded,
    "server_error": ServerFault,
    "invalid_prompt": Rejected,
    "bio_policy": Rejected,
    "misalignment_policy_violation": Rejected,
    "context_length_exceeded": ContextFull,
    "string_above_max_length": ContextFull,
    "invalid_api_key": Auth,
    "model_not_found": UnknownModel,
    "invalid_request_error": Rejected,
}


def fault(failure: WireFailure) -> ModelFault:
    """Return what a failed response means: its code or type says more than its status."""
    error = obj(body(failure.body).get("error"))
    kind = _kind(error) or by_status(failure.status)
    reason = text(error.get("message")) or f"HTTP {failure.status} without an explanation"
    return kind(
        reason,
        after_s=retry_after(failure.headers, failure.now),
        status=failure.status,
        request_id=failure.headers.get("x-request-id", ""),
    )


def stream_fault(error: dict[str, Any]) -> ModelFault:
    """Return what an error within a stream means."""
    return (_kind(error) or ServerFault)(
        text(error.get("message")) or "the provider reported an error without a message"
    )


def _kind(error: dict[str, Any]) -> type[ModelFault] | None:
    return _CODES.get(text(error.get("code"))) or _CODES.get(text(error.get("type")))


def usage_of(raw: dict[str, Any] | None, inputs: str, outputs: str) -> TokenUsage | None:
    """Return usage in our terms, by what a wire calls its tokens; inputs include what was cached, outputs reasoning."""
    if raw is None:
        return None
    read, made = obj(raw.get(f"{inputs}_details")), obj(raw.get(f"{outputs}_details"))
    return TokenUsage(
        input=count(raw.get(inputs)),
        output=count(raw.get(outputs)),
        cached=count(read.get("cached_tokens")),
        cache_written=count(read.get("cache_write_tokens")),
        reasoning=count(made.get("reasoning_tokens")),
    )
