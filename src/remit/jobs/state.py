"""The state that a job's events say: the fold that resume, replay and every view share. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final

import msgspec

from remit.canonical import sha256
from remit.gateway.budget import Spending
from remit.gateway.conversation import Provenance
from remit.journal import kinds as k
from remit.journal.blobs import BlobRef
from remit.journal.effects import recorded
from remit.journal.event import Event
from remit.journal.kinds import STUCK
from remit.models.thread import KnownPrompts, tip_of

ENDED: Final = frozenset({"completed", "failed", "cancelled"})
KIND: Final = "job"
"""The kind of job streams."""
NAME: Final = "remit.name"
PRINCIPAL: Final = "remit.principal"
WAITING: Final = "remit.waiting"
"""Label of a parked job's head: what it waits for, in words."""
TIMERS: Final = ("a timer", "the next attempt", "its turn")
"""Waits of a job that end by themselves, in the words of WAITING."""
CODE: Final = "remit.code"
"""Label of a failed or stuck job's head: why."""
DOUBT: Final = "uncertain:"
"""The beginning of the key of a wait in which a person resolves an attempt."""
TURN: Final = "turn:"
"""The beginning of the key of a wait of a step for its turn in a limit."""
UNDO: Final = "undo:"
UNDO_DECISION: Final = "undo"
"""The key under which the undoing of a step waits for a person; its attempt is 0."""


def stream_of(job: str) -> str:
    """The stream of a job."""
    return f"job/{job}"


def inbox_of(job: str) -> str:
    """The stream that others leave messages for a job in."""
    return f"job/{job}/inbox"


def stuck_by(code: str) -> str:
    """Correlation key recorded when the installed code could not continue the job; the head says if it still holds."""
    return STUCK + code


def doubt_of(attempt: int) -> str:
    """The key under which a step waits for a person to resolve an attempt (rule 3)."""
    return f"{DOUBT}{attempt}"


def undo_step(step: str, attempt: int = 1) -> str:
    """The step of the call that undoes a step; a person may have it made again, as another step."""
    return f"{UNDO}{step}" if attempt == 1 else f"{UNDO}{step}:{attempt}"


def is_undo(step: str) -> bool:
    """Return whether a step undoes another one; it has no place in the recipe."""
    return step.startswith(UNDO)


def job_of(stream: str) -> str:
    """The job that a stream belongs to."""
    return stream.split("/", 2)[1]


_EFFECTS: Final[frozenset[type]] = frozenset(
    {
        k.ToolInvocationStarted,
        k.ChildStarted,
        k.TimeRecorded,
        k.RandomRecorded,
        k.UuidRecorded,
        k.WaitCompleted,
        k.JobLabeled,
    }
)
Value = k.TimeRecorded | k.RandomRecorded | k.UuidRecorded
End = k.JobCompleted | k.JobFailed | k.JobCancelled


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
        k.JobLabeled,
    }
)
"""Events that a pass gets done, or leaves for later; to announce a call is not yet to get it done."""


class LimitTurns(msgspec.Struct, eq=False, gc=False):
    """Waits of a step for its turn in a limit."""

    turns: int = 0
    turn_at: int = 0
    """When the turn was to come, by the last of them."""


class CallRecord(LimitTurns, eq=False, gc=False):
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


class ModelRecord(LimitTurns, eq=False, gc=False):
    """What is recorded of one question to a model."""

    started: k.CommandStarted | None = None
    committed: k.CommandCommitted | None = None
    refused: k.GateRefused | None = None
    confirmation: str | None = None
    lost: int = 0
    """Attempts that do not count: those of models before, and those that ended with their worker."""
    added: int = 0
    """Messages that were new in the question; a further attempt adds none."""
    wanted: str = ""
    """The model that the question named, once another is asked in its place."""
    model: str = ""
    """The one that is asked then."""

    def follow(self, committed: k.CommandCommitted) -> None:
        """Take what is to follow an attempt."""
        self.lost += committed.lost
        if committed.next_model and self.started is not None:
            self.turn_to(committed.next_model, committed.attempt, self.started.asked or self.started.name)

    def turn_to(self, model: str, attempts: int, wanted: str) -> None:
        """Ask another model from now on, with attempts of its own."""
        self.model, self.lost, self.wanted = model, attempts, self.wanted or wanted

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


class JobHistory:
    """Everything recorded of a job, by place."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.created: k.JobCreated | None = None
        self.forked: k.JobForked | None = None
        """Job that this one retries, or is a fork of."""
        self.arguments: dict[str, k.StepArgsGiven] = {}
        """The arguments that a person gave a step in place of the recipe's."""
        self.plan: k.PlanGenerated | None = None
        self.calls: dict[str, CallRecord] = {}
        self.values: dict[str, Value] = {}
        self.waits: dict[tuple[str, str], WaitRecord] = {}
        self.children: dict[str, k.ChildStarted] = {}
        self.returned: dict[str, k.ChildEnded] = {}
        """Results of child recipes, by place."""
        self.models: dict[str, ModelRecord] = {}
        self.known = KnownPrompts(set(), set())
        """Prompts that the stream holds."""
        self.provenance = Provenance()
        """The outputs that are trusted, and what people approved."""
        self.spending = Spending()
        """The use of models."""
        self.places: dict[str, str] = {}
        """The kind of effect that stands at each place."""
        self.consumed: set[int] = set()
        """Events of the inbox that a wait has used."""
        self.began = ""
        """The version of the code that recorded the first effect, or is to record it."""
        self.execution = ""
        """The version of the code that recorded the last effect, or is to record the first."""
        self.under = ""
        """The version that continues the job: the next effect is recorded under it."""
        self.drifts: set[tuple[str, str]] = set()
        """Version differences that are already recorded, as subject and current version."""
        self.patches: set[str] = set()
        """Changes of the code that the job takes the new way of."""
        self.labeled: dict[str, k.JobLabeled] = {}
        """The labels and titles that the recipe gave, by place."""
        self.undos: dict[str, k.UndoDeclared] = {}
        """The call that undoes a step, by step."""
        self.undone: dict[str, k.StepCompensated] = {}
        self.compensations: dict[str, k.CompensationStarted] = {}
        """By place; the empty one ends the job."""
        self.compensated: dict[str, k.CompensationCompleted] = {}
        self._completed: dict[str, None] = {}
        """Steps with an undo whose calls have ended, in the order of their ends."""
        self.recovering, self.deaths = False, Deaths()
        self.stuck: k.JobWaiting | None = None
        """Why code at hand could not continue it the last time; whether that still holds, the head says."""
        self.times_left = 0
        """The number of times that a worker could not continue it."""
        self.end: End | None = None
        self.fold(events)

    def fold(self, events: Iterable[Event]) -> None:
        """Fold more events, in order."""
        for event in events:
            payload = k.decode(event.kind, event.data)
            if payload is not None:
                self.take(payload)

    def tool_at(self, step: str, tool: str) -> str:
        """Return the tool that a call of `tool` goes to: another one, if a fork changes it and it was not made yet."""
        if self.forked is None or tool not in self.forked.tools:
            return tool
        record = self.calls.get(step)
        return tool if record is not None and record.tool == tool else self.forked.tools[tool]

    def take(self, payload: k.Payload) -> None:
        """Fold one more event, decoded."""
        kind = type(payload)
        fold = self._folds.get(kind)
        if fold is not None:
            fold(self, payload)
        if kind in PROGRESS:
            if self.deaths.owner or self.deaths.count:
                self.deaths.forget()
            self.deaths.running.discard(getattr(payload, "step", ""))
        if kind in _EFFECTS:
            self.execution = self.under
            self.began = self.began or self.execution

    def call(self, step: str) -> CallRecord:
        """The record of a call, made if there is none."""
        record = self.calls.get(step)
        if record is None:
            record = self.calls[step] = CallRecord()
            if not step.startswith(UNDO) and k.INNER not in step:
                self.places[step] = "call"
        return record

    @property
    def principal(self) -> str:
        """Return the principal in whose name the job runs."""
        return self.created.principal if self.created else ""

    @property
    def ending(self) -> bool:
        """Return whether the job undoes what it did, and ends afterwards: its recipe runs no more."""
        return "" in self.compensations

    def model(self, step: str) -> ModelRecord:
        """The record of a question to a model, made if there is none."""
        record = self.models.get(step)
        if record is None:
            record = self.models[step] = ModelRecord()
            if k.INNER not in step:
                self.places[step] = "model"
        return record

    def in_doubt(self, step: str) -> int | None:
        """The attempt of a call that waits for a person to decide on it, 0 for the undoing of a step; else None."""
        undoing = self.waits.get((step, UNDO_DECISION))
        if undoing is not None and undoing.completed is None:
            return 0
        record = self.calls.get(step)
        if record is None or record.ended:
            return None
        wait = self.waits.get((step, doubt_of(record.attempts)))
        return record.attempts if wait is not None and wait.completed is None else None

    def undoable(self, *, unknown: bool) -> list[str]:
        """Steps to undo, the last one that ended first; with `unknown`, those before them whose outcome is unknown."""
        ended = [step for step in reversed(self._completed) if step not in self.undone]
        if not unknown:
            return ended
        open_ones = [step for step in reversed(self.undos) if step in self.calls and self.calls[step].unknown]
        return [step for step in open_ones if step not in self.undone] + ended

    def forget(self, step: str) -> None:
        """Drop the record of a call, so that a run of any length takes no more memory than a short one."""
        self.calls.pop(step, None)
        self.models.pop(step, None)
        self.places.pop(step, None)

    # --- one method per kind

    def _created(self, payload: k.JobCreated) -> None:
        self.created = payload
        self.execution = self.under = payload.execution_version
        self.provenance.task_trusted = not payload.input_untrusted

    def _forked(self, payload: k.JobForked) -> None:
        self.forked = payload

    def _args_given(self, payload: k.StepArgsGiven) -> None:
        self.arguments[payload.step] = payload

    def _planned(self, payload: k.PlanGenerated) -> None:
        self.plan = payload

    def _started(self, payload: k.ToolInvocationStarted) -> None:
        record = self.call(payload.step)
        record.started, record.finished, record.refused = payload, None, None
        self.deaths.running.add(payload.step)
        self.provenance.started(payload)

    def _finished(self, payload: k.ToolInvocationFinished) -> None:
        self.call(payload.step).finished = payload
        self.provenance.finished(payload)
        if payload.step in self.undos:
            self._completed.pop(payload.step, None)
            did = payload.outcome == "success" or recorded(payload).known == "committed"
            if did or payload.step_outcome == "compensatable_failure":
                self._completed[payload.step] = None

    def _refused(self, payload: k.GateRefused) -> None:
        if payload.model_call:
            self.model(payload.step).refused = payload
        else:
            self.call(payload.step).refused = payload
            self.provenance.refused(payload)

    def _command_started(self, payload: k.CommandStarted) -> None:
        record = self.model(payload.step)
        record.started, record.committed = payload, None
        self.deaths.running.add(payload.step)
        record.added += len(payload.added)
        self.spending.started(payload)
        self.known.messages.update(message.digest for message in payload.added)
        tip = payload.after
        for message in payload.added:
            tip = tip_of(tip, message.digest)
        self.known.tips.add(tip)

    def _command_committed(self, payload: k.CommandCommitted) -> None:
        record = self.model(payload.step)
        record.committed = payload
        record.follow(payload)
        self.spending.committed(payload)
        if isinstance(payload.result_blob, BlobRef):
            self.known.messages.add(payload.result_blob.digest)
        elif isinstance(payload.result, msgspec.Raw):
            self.known.messages.add(sha256(bytes(payload.result)))

    def _asked(self, payload: k.ConfirmationRequested) -> None:
        if payload.model_call:
            self.model(payload.step).confirmation = payload.confirmation
            return
        record = self.call(payload.step)
        record.confirmation, record.wanted = payload.confirmation, payload.tool_name

    def _evidence(self, payload: k.EvidenceAttached) -> None:
        record = self.call(payload.step)
        record.evidence, record.evidence_blob = payload.items, payload.items_blob

    def _value(self, payload: Value) -> None:
        self.values[payload.step] = payload
        self.places[payload.step] = payload.KIND.removesuffix("_recorded")

    def _waiting(self, payload: k.JobWaiting) -> None:
        if payload.wait_type == "human" and payload.correlation_key.startswith(STUCK):
            self.stuck = payload
            self.times_left += 1
            return
        self.waits[payload.step, payload.correlation_key] = WaitRecord(payload)
        if payload.wait_type == "timer" and payload.correlation_key.startswith(TURN):
            record = self.model(payload.step) if payload.model_call else self.call(payload.step)
            record.turns, record.turn_at = record.turns + 1, payload.turn_at
        elif not is_undo(payload.step):
            self.places.setdefault(payload.step, payload.wait_type)

    def _wait_completed(self, payload: k.WaitCompleted) -> None:
        self.waits[payload.step, payload.correlation_key].completed = payload
        if payload.inbox_seq:
            self.consumed.add(payload.inbox_seq)

    def _timer_fired(self, payload: k.TimerFired) -> None:
        self.waits[payload.step, payload.correlation_key].completed = payload

    def _child(self, payload: k.ChildStarted) -> None:
        self.children[payload.step] = payload
        self.places[payload.step] = "child"

    def _child_ended(self, payload: k.ChildEnded) -> None:
        self.returned[payload.step] = payload

    def _undo_declared(self, payload: k.UndoDeclared) -> None:
        self.undos[payload.step] = payload

    def _step_compensated(self, payload: k.StepCompensated) -> None:
        self.undone[payload.step] = payload

    def _compensation_started(self, payload: k.CompensationStarted) -> None:
        self.compensations[payload.step] = payload
        if payload.step:
            self.places[payload.step] = "compensation"

    def _compensation_completed(self, payload: k.CompensationCompleted) -> None:
        self.compensated[payload.step] = payload

    def _patched(self, payload: k.PatchRecorded) -> None:
        self.patches.add(payload.name)

    def _labeled(self, payload: k.JobLabeled) -> None:
        self.labeled[payload.step] = payload
        self.places[payload.step] = "label"

    def _mismatch(self, payload: k.VersionMismatchRecorded) -> None:
        self.drifts.add((payload.tool_name or payload.subject, payload.current))
        goes_on = payload.policy != "fail" or payload.current == self.execution
        if payload.subject in {"execution", "planner"} and goes_on:
            self.under = payload.current

    def _schema_drift(self, payload: k.SchemaDriftRecorded) -> None:
        self.drifts.add((payload.tool_name, payload.current))

    def _model_drift(self, payload: k.ModelDriftRecorded) -> None:
        self.drifts.add((payload.step, payload.current))

    def _recovery_started(self, payload: k.RecoveryStarted) -> None:
        self.recovering = True
        self.deaths.recover(payload)

    def _recovery_completed(self, _payload: k.RecoveryCompleted) -> None:
        self.recovering = False

    def _ended(self, payload: End) -> None:
        self.end = payload

    _folds: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        k.JobCreated: _created,
        k.JobForked: _forked,
        k.StepArgsGiven: _args_given,
        k.PlanGenerated: _planned,
        k.ToolInvocationStarted: _started,
        k.ToolInvocationFinished: _finished,
        k.GateRefused: _refused,
        k.CommandStarted: _command_started,
        k.CommandCommitted: _command_committed,
        k.ConfirmationRequested: _asked,
        k.EvidenceAttached: _evidence,
        k.TimeRecorded: _value,
        k.RandomRecorded: _value,
        k.UuidRecorded: _value,
        k.JobWaiting: _waiting,
        k.WaitCompleted: _wait_completed,
        k.TimerFired: _timer_fired,
        k.ChildStarted: _child,
        k.ChildEnded: _child_ended,
        k.UndoDeclared: _undo_declared,
        k.StepCompensated: _step_compensated,
        k.CompensationStarted: _compensation_started,
        k.CompensationCompleted: _compensation_completed,
        k.PatchRecorded: _patched,
        k.JobLabeled: _labeled,
        k.VersionMismatchRecorded: _mismatch,
        k.SchemaDriftRecorded: _schema_drift,
        k.ModelDriftRecorded: _model_drift,
        k.RecoveryStarted: _recovery_started,
        k.RecoveryCompleted: _recovery_completed,
        k.JobCompleted: _ended,
        k.JobFailed: _ended,
        k.JobCancelled: _ended,
    }
