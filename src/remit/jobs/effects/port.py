"""The port between what a recipe asks for and what does it: `EffectHandler`, and the values that pass it."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from remit.gateway.outcome import Outcome
from remit.jobs.state import CallRecord, Value, WaitRecord
from remit.journal.kinds import ChildStarted, WaitType


class CallRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call, as the recipe asked for it."""

    step: str
    tool: str
    args: dict[str, Any]
    hash: str
    """Digest of the arguments; empty if they have no canonical form."""
    timeout_s: float | None


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Something outside the job that a step waits for."""

    step: str
    type: WaitType
    key: str
    due_at: int | None = None
    """When waiting ends without it; for a timer, when it fires."""
    reason: str = ""
    question: dict[str, Any] | None = None
    """What a recipe asks a person, to be opened as a confirmation named by `key`."""
    attempt: int = 0
    """The attempt with an unknown outcome, if a person has to decide on one."""
    request_hash: str = ""
    """Digest of what is asked, if that is more than the key says."""

    @property
    def words(self) -> str:
        """What is waited for, for people."""
        if self.type == "timer":
            return "a timer" if not self.key.startswith("retry:") else "the next attempt"
        if self.type == "signal":
            return f"signal {self.key}"
        return f"a decision on step {self.step}" if self.attempt else f"confirmation {self.key}"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a wait ended with."""

    payload: Any = None
    by: str = ""
    timed_out: bool = False


class EffectHandler(Protocol):
    """Does what is not recorded yet."""

    async def call(self, request: CallRequest, record: CallRecord) -> Outcome:
        """Make a call, or go on with one that has begun."""
        ...

    async def value(self, step: str, kind: type[Value]) -> Value:
        """Read the clock or draw a random value, and record it."""
        ...

    async def wait(self, wait: Wait, record: WaitRecord | None) -> Answer:
        """Wait for something outside the job, and record that it came."""
        ...

    async def child(self, started: ChildStarted) -> None:
        """Record that another recipe begins within this run."""
        ...

    def progress(self, done: float | None, total: float | None, message: str, /) -> None:
        """Show how far the run is."""
        ...

    def now(self) -> int:
        """Microseconds since the Unix epoch; for bounds of waits, which are recorded."""
        ...
