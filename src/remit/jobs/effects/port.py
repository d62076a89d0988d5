"""The port between what a recipe asks for and what does it: `EffectHandler`, and the values that pass it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from remit.canonical import digest
from remit.errors import UsageError, VersionError
from remit.gateway.budget import Budget
from remit.gateway.conversation import Conversation
from remit.gateway.outcome import Outcome
from remit.jobs.state import TIMERS, TURN, CallRecord, ModelRecord, Value, WaitRecord
from remit.journal.event import Blob
from remit.journal.kinds import (
    ChildEnded,
    ChildStarted,
    CommandStarted,
    CompensationCompleted,
    ErrorInfo,
    JobLabeled,
    WaitType,
)
from remit.models.prompt import OutputForm, Sampling, ToolSpec, toolset_of
from remit.models.thread import Thread

MakeUndo = Callable[[Any], tuple[str, dict[str, Any]]]
"""Makes the call that undoes a step, as tool and arguments, from the step's value."""
Held = Callable[[], Awaitable[None]] | None
"""Raises LackingError if the job may begin nothing new for now; None: it always may."""
Refuse = Callable[[str], Awaitable[ErrorInfo | None]]
"""Returns why a recipe of this name may not begin within the job; None: it may."""
Undo = tuple[str, dict[str, Any]] | MakeUndo
"""The call that undoes a step, or what makes it."""


class CallRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call, as the recipe asked for it."""

    step: str
    tool: str
    args: dict[str, Any]
    hash: str
    """Digest of the arguments; empty if they have no canonical form."""
    encoded: bytes = b""
    """The arguments as JSON, where there is a digest; empty: to be encoded."""
    timeout_s: float | None
    undo: Undo | None = None
    needed: bool = True
    """True if the job waits for the tool where this process does not have it, rather than be refused."""
    conversation: Conversation | None = None
    """The knowledge of the model that wants the call."""
    barred: Outcome | None = None
    """The refusal that the recipe has for it: it is recorded, and not made."""
    attempts: int | None = None
    """The number of times that it may be made at most; None: as its tool says."""


class ModelQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a model, as the recipe asks it."""

    step: str
    model: str
    """Its name; empty: the default one. Another model than recorded is drift, not another question."""
    thread: Thread
    tools: tuple[str, ...] = ()
    """Names and patterns of tools; which ones they mean is found out when the model is asked."""
    extra: tuple[ToolSpec, ...] = ()
    """Tools that the recipe answers itself."""
    offered: tuple[ToolSpec, ...] = ()
    """The same; they are looked up when the model is asked, as the catalog's are, and do not count for `hash`."""
    choice: str = "auto"
    sampling: Sampling = Sampling()
    output: OutputForm | None = None
    budget: Budget = Budget()

    @property
    def hash(self) -> str:
        """Digest of what is asked."""
        return digest(
            {
                "thread": self.thread.tip,
                "tools": self.tools,
                "extra": toolset_of(self.extra).digest,
                "choice": self.choice,
                "sampling": msgspec.to_builtins(self.sampling),
                "output": self.output.digest if self.output else "",
            }
        )


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Something outside the job that a step waits for."""

    step: str
    type: WaitType
    key: str
    due_at: int | None = None
    """The time at which waiting ends without it; for a timer, at which it fires."""
    reason: str = ""
    question: dict[str, Any] | None = None
    """The question of a recipe to a person, to be opened as a confirmation named by `key`."""
    attempt: int | None = None
    """The attempt that a person has to decide on, if one has to; 0 for the undoing of a step."""
    request_hash: str = ""
    """Digest of what is asked, if that is more than the key says."""
    turn_at: int = 0
    """When the turn comes that a step waits for in a limit."""
    model_call: bool = False

    @property
    def words(self) -> str:
        """Return what is waited for, for people."""
        if self.type == "timer":
            return f"{TIMERS[2]}: {self.reason}" if self.key.startswith(TURN) else TIMERS[self.key.startswith("retry:")]
        if self.type == "signal":
            return f"signal {self.key}"
        return f"a decision on step {self.step}" if self.attempt is not None else f"confirmation {self.key}"


class WaitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a wait ended with."""

    payload: Any = None
    by: str = ""
    timed_out: bool = False


class EffectHandler(Protocol):
    """Does what is not recorded yet."""

    async def call(self, request: CallRequest, record: CallRecord) -> Outcome:
        """Make a call, or continue one that has begun."""
        ...

    default_model: str
    """Name of the model that is asked if a question names none; empty: not known."""

    async def ask(self, question: ModelQuestion, record: ModelRecord) -> Outcome:
        """Ask a model, or continue a question that was begun."""
        ...

    async def model_differs(self, started: CommandStarted, recorded: str, current: str) -> VersionError | None:
        """Report that a recorded question would go to another model now; the error to end with, if any."""
        ...

    async def value(self, step: str, kind: type[Value]) -> Value:
        """Read the clock or draw a random value, and record it."""
        ...

    async def wait(self, wait: Wait, record: WaitRecord | None) -> WaitAnswer:
        """Wait for something outside the job, and record that it came."""
        ...

    async def poll(self, wait: Wait) -> WaitAnswer | None:
        """Take a signal that has come already, and record that; None if none has."""
        ...

    async def child(self, started: ChildStarted, blobs: tuple[Blob, ...]) -> ErrorInfo | None:
        """Record that another recipe begins within this run, or that it may not, and why."""
        ...

    async def child_ended(self, ended: ChildEnded, blobs: tuple[Blob, ...]) -> None:
        """Record how that recipe ended."""
        ...

    async def patch(self, name: str) -> None:
        """Record that the recipe takes the new way of a change."""
        ...

    async def label(self, labeled: JobLabeled) -> None:
        """Give the job labels or a title, and record that."""
        ...

    async def declare(self, step: str, undo: tuple[str, dict[str, Any]]) -> None:
        """Record the call that undoes a step."""
        ...

    async def compensate(self, step: str) -> CompensationCompleted:
        """Undo what the job has done so far, because the recipe says so at a place."""
        ...

    def progress(self, done: float | None, total: float | None, message: str, /) -> None:
        """Show how far the run is."""
        ...

    def now(self) -> int:
        """Microseconds since the Unix epoch; for bounds of waits, which are recorded."""
        ...


def checked_undo(undo: object) -> tuple[str, dict[str, Any]]:
    """An undo call as a recipe gave it. Raises UsageError if it is not a tool's name and its arguments."""
    match undo:
        case (str() as tool, dict() as args) if tool:
            return tool, args
    raise UsageError(f"{undo!r:.80} is not an undo", remedy='Give ("tool", {"name": value}), or a function that does.')
