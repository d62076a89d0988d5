"""Events of waits: what a step waits for, and what ended the wait."""

from __future__ import annotations

from typing import ClassVar, Literal

from remit.journal.kinds.payload import UNSET, OptionalRaw, OptionalRef, Payload

WaitType = Literal["webhook", "human", "timer", "signal", "message"]


class JobWaiting(Payload, frozen=True, kw_only=True):
    """A step waits for something outside the job; while every branch waits, no worker holds it."""

    KIND: ClassVar[str] = "job_waiting"
    step: str
    wait_type: WaitType
    correlation_key: str
    due_at: int | None = None
    reason: str = ""
    request_hash: str = ""


class WaitCompleted(Payload, frozen=True, kw_only=True):
    """What a step waited for has come; without a payload where time ran out first."""

    KIND: ClassVar[str] = "wait_completed"
    step: str
    wait_type: WaitType
    correlation_key: str
    payload: OptionalRaw = UNSET
    payload_blob: OptionalRef = UNSET
    by: str = ""
    timed_out: bool = False
    inbox_seq: int = 0
    """The event of the job's inbox that was consumed, so that no other wait gets it."""


class TimerFired(Payload, frozen=True, kw_only=True):
    """A timer a step waited for was due."""

    KIND: ClassVar[str] = "timer_fired"
    step: str
    correlation_key: str
    due_at: int
