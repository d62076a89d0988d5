"""What others leave in a job's inbox. All of these are ours."""

from __future__ import annotations

from typing import ClassVar, Literal

from remit.journal.kinds.payload import UNSET, OptionalRaw, OptionalRef, Payload


class SignalSent(Payload, frozen=True, kw_only=True):
    """Ours, in the job's inbox: something outside sent a signal."""

    KIND: ClassVar[str] = "signal_sent"
    name: str
    payload: OptionalRaw = UNSET
    payload_blob: OptionalRef = UNSET
    by: str = ""
    key: str = ""
    """Names the request that sent it: sent again, it is the same signal."""


class CancelRequested(Payload, frozen=True, kw_only=True):
    """Ours, in the job's inbox: someone wants the job to stop."""

    KIND: ClassVar[str] = "cancel_requested"
    by: str = ""
    reason: str = ""


class StepDecided(Payload, frozen=True, kw_only=True):
    """Ours, in the job's inbox: a person resolves a step whose outcome is unknown."""

    KIND: ClassVar[str] = "step_decided"
    step: str
    attempt: int = 1
    decision: Literal["done", "retry", "fail"]
    value: OptionalRaw = UNSET
    value_blob: OptionalRef = UNSET
    by: str = ""
    reason: str = ""
    replaces: int = 0
    """Sequence number of the decision that this one corrects; 0: it is the first."""
