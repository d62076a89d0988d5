"""Records of single effects: a call, a question to a model, a wait. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from remit.journal import kinds as k

PROGRESS: Final[frozenset[type]] = frozenset(
    {
        k.ToolInvocationFinished,
        k.GateRefused,
        k.CommandCommitted,
        k.TimeRecorded,
        k.RandomRecorded,
        k.UuidRecorded,
        k.JobWaiting,
        k.WaitCompleted,
        k.TimerFired,
        k.StepCompensated,
    }
)
"""Events that a pass gets done, or leaves for later; to announce a call is not yet to get it done."""


class Turns(msgspec.Struct, eq=False, gc=False):
    """Waits of a step for its turn in a limit."""

    turns: int = 0
    turn_at: int = 0
    """When the turn was to come, by the last of them."""


class CallRecord(Turns, eq=False, gc=False):
    """What is recorded of one call."""

    started: k.ToolInvocationStarted | None = None
    finished: k.ToolInvocationFinished | None = None
    refused: k.GateRefused | None = None
    confirmation: str | None = None
    wanted: str = ""
    """The tool that the confirmation was asked for."""
    evidence: tuple[dict[str, Any], ...] = ()
    evidence_blob: k.OptionalRef = k.UNSET
    """Where the items of a stream with a subject are."""
    repeats: str = ""
    """The provider that alone may be called again, because an attempt with side effects may have reached it."""

    @property
    def attempts(self) -> int:
        """Attempts announced so far."""
        return self.started.attempt if self.started else 0

    @property
    def tool(self) -> str:
        """The tool that it went to, or was to go to; empty: nothing was announced yet."""
        ended = self.refused or self.started
        return ended.tool_name if ended is not None else self.wanted

    @property
    def ended(self) -> bool:
        """Return whether the outcome is final: recorded is done (rule 2)."""
        if self.refused is not None:
            return True
        return self.finished is not None and self.finished.step_outcome not in {"retryable_failure", "uncertain"}

    @property
    def unknown(self) -> bool:
        """Return whether the newest attempt may have happened without anyone knowing (rule 3)."""
        if self.started is None or self.refused is not None:
            return False
        return self.finished is None or self.finished.step_outcome == "uncertain"

    @property
    def asked(self) -> tuple[str, str]:
        """Tool and arguments hash, or empty and the request hash where the request was worded differently."""
        ended = self.refused or self.started
        if ended is None:
            return "", ""
        return ("", ended.request_hash) if ended.request_hash else (ended.tool_name, ended.arguments_hash)


class ModelRecord(Turns, eq=False, gc=False):
    """What is recorded of one question to a model."""

    started: k.CommandStarted | None = None
    committed: k.CommandCommitted | None = None
    refused: k.GateRefused | None = None
    confirmation: str | None = None
    lost: int = 0
    """Attempts that ended with their worker."""
    added: int = 0
    """Messages that were new in the question; a further attempt adds none."""

    @property
    def attempts(self) -> int:
        """Attempts announced so far."""
        return self.started.attempt if self.started else 0

    @property
    def ended(self) -> bool:
        """Return whether the outcome is final: recorded is done (rule 2)."""
        return self.refused is not None or (self.committed is not None and self.committed.again_ms is None)

    @property
    def hash(self) -> str:
        """Digest of what was asked; empty if nothing was announced yet."""
        if self.refused is not None:
            return self.refused.arguments_hash
        return self.started.request_hash if self.started is not None else ""


class Deaths:
    """Counts processes in a row that died of a job: while they ran the same steps of it, or no step, for the last time.

    A process that held the job and died before it began to run it did not die of it, nor does the job end processes if
    a step ends between two deaths, or each dies at another one: then something else kills them.
    """

    def __init__(self) -> None:
        self.count = 0
        self.owner = ""
        """The process that runs the job after another one, if nothing was done since."""
        self.running: set[str] = set()
        """Steps that the process has begun."""
        self._suspects: set[str] = set()
        """Steps that each of those counted ran."""

    def forget(self) -> None:
        """Begin to count again: something was done."""
        self.count, self.owner = 0, ""

    def recover(self, recovery: k.RecoveryStarted) -> None:
        """Count the process that held the job last, if it died of it."""
        previous = recovery.previous_owner
        if previous and not recovery.alive and self.owner in {"", previous}:
            common = self.running & self._suspects
            same = self.count > 0 and (common or not (self.running or self._suspects))
            self.count = self.count + 1 if same else 1
            self._suspects = common if same else self.running
        self.owner, self.running = recovery.owner, set()


class WaitRecord:
    """The record of one wait."""

    __slots__ = ("completed", "waiting")

    def __init__(self, waiting: k.JobWaiting) -> None:
        self.waiting = waiting
        self.completed: k.WaitCompleted | k.TimerFired | None = None
