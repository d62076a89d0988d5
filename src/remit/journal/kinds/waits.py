"""Events of waits, of what a step reads from clock and chance, and of a job's inbox."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from remit.journal.kinds.payload import UNSET, OptionalRaw, OptionalRef, Payload

WaitType = Literal["webhook", "human", "timer", "signal", "message"]
STUCK: Final = "stuck:"
"""The beginning of the key of a wait in which the installed code could not continue the job."""


class JobWaiting(Payload, frozen=True, kw_only=True):
    """A step waits for something outside the job; while every branch waits, no worker holds it."""

    KIND: ClassVar[str] = "job_waiting"
    step: str
    wait_type: WaitType
    correlation_key: str
    due_at: int | None = None
    reason: str = ""
    request_hash: str = ""
    turn_at: int = 0
    """When the turn of a step that waits for it in a limit was to come; the step looks again at `due_at`."""
    model_call: bool = False
    """Whether such a step is a question to a model."""


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


class TimeRecorded(Payload, frozen=True, kw_only=True):
    """The clock, as the recipe read it: microseconds since the Unix epoch."""

    KIND: ClassVar[str] = "time_recorded"
    step: str
    value: int


class RandomRecorded(Payload, frozen=True, kw_only=True):
    """A random number in [0, 1), as the recipe drew it."""

    KIND: ClassVar[str] = "random_recorded"
    step: str
    value: float


class UuidRecorded(Payload, frozen=True, kw_only=True):
    """A random UUID, as the recipe drew it."""

    KIND: ClassVar[str] = "uuid_recorded"
    step: str
    value: str


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
