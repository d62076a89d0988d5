"""Events of a job as a whole, how it began, who continued it, how it ended; and of the processes that run jobs.

Events of waits, of what a step reads from clock and chance, and of a job's inbox.

Events that say what changed between the recording and now.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

import msgspec

from remit.clock import isoformat
from remit.journal.kinds.payload import UNSET, ErrorInfo, OptionalRaw, OptionalRef, Payload, SharedDigest


class SkillPin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Ours: a skill as it was when a job took it up: its limits and its text, which the job keeps to."""

    name: str
    """Its name."""
    digest: str
    """SHA-256 over the paths and contents of its folder, or of its manifest."""
    description: str = ""
    """The purpose, in its author's words."""
    tools: tuple[str, ...] = ()
    """The tools that its agent may call, by full name or glob."""
    rules: tuple[dict[str, Any], ...] = ()
    """Deny and ask rules for calls under it."""
    sandbox: tuple[dict[str, Any], ...] = ()
    """Layers that make the sandbox stricter for calls under it: `limits`, `network`, `commands`, `min_isolation`."""
    offered: bool = False
    """Whether it waits for the model to activate it."""
    trusted: bool = False
    """Whether the operator has vouched for this very text."""
    text_hash: SharedDigest = ""
    """Names its texts by path, kept as JSON; empty: it has none."""


class ScheduleOrigin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The schedule that started a job."""

    name: str
    """Its name."""
    revision: int
    """Its revision then."""
    at: int
    """The time that the job is for, in microseconds since the Unix epoch."""
    by: str = ""
    """Author of that revision, or person who asked for this run."""

    @property
    def words(self) -> str:
        """Return it in words."""
        return f"schedule {self.name} (revision {self.revision}, by {self.by}) for {isoformat(self.at)}"


class JobCreated(Payload, frozen=True, kw_only=True):
    """A job exists: what runs, on which input, asked by whom, recorded by which versions."""

    KIND: ClassVar[str] = "job_created"
    kind: Literal["recipe", "plan"]
    name: str
    input: OptionalRaw = UNSET
    input_blob: OptionalRef = UNSET
    principal: str = ""
    execution_version: str = ""
    planner_version: str = ""
    tool_registry_version: str = ""
    overlay: dict[str, Any] = msgspec.field(default_factory=dict)
    """The overlay that the job adds to the policy for its own calls: `rules` and `tools`; it can only restrict."""
    budget: dict[str, int] = msgspec.field(default_factory=dict)
    """The budget of the job's calls: `max_steps`, `max_calls` and `max_wall_ms`."""
    input_untrusted: bool = False
    """Whether the input is untrusted: the caller said so, or a model wrote it that had read such text."""
    module: str = ""
    """The Python file that the recipe came from, if a person named that, as with `remit run FILE.py`."""
    skills: tuple[SkillPin, ...] = ()
    """The skills that the job is under; its calls keep to them."""
    schedule: ScheduleOrigin | None = None
    """The schedule that started it, and for which time; null: none did."""


class PlanGenerated(Payload, frozen=True, kw_only=True):
    """The task graph a job follows; recorded once, never planned twice."""

    KIND: ClassVar[str] = "plan_generated"
    task_graph: OptionalRaw = UNSET
    task_graph_blob: OptionalRef = UNSET
    planner_version: str = ""
    schema_version: str = "taskgraph-v1"
    plan_hash: str = ""


class JobForked(Payload, frozen=True, kw_only=True):
    """The job takes over steps that another one recorded, and goes on by itself from there."""

    KIND: ClassVar[str] = "job_forked"
    job: str
    """The job that recorded them."""
    seq: int
    """The last event of that job when its steps were taken over; of a fork, the last one that is shared."""
    hash: str
    """The chain value after that event, in hexadecimal."""
    step: str = ""
    by: str = ""
    reason: str = ""
    taken: int = 0
    """The number of events that follow and are that job's; 0: not known."""
    times: tuple[int, ...] = ()
    """When these were recorded, in microseconds since the Unix epoch: the first, then from each to the next."""
    shared: bool = False
    """Whether the events up to `seq` count as this job's where they stand, without steps that had not ended by then."""
    changes: int = 0
    """The number of events that follow and give steps other results or arguments."""
    tools: dict[str, str] = msgspec.field(default_factory=dict)
    """The tools that new calls go to, by the tool that the recipe names."""
    models: dict[str, str] = msgspec.field(default_factory=dict)
    """The models that new questions go to, by the one that the recipe names; empty: the default one."""


class StepArgsGiven(Payload, frozen=True, kw_only=True):
    """Ours: a person gave a step of a fork other arguments than its recipe gives it."""

    KIND: ClassVar[str] = "step_args_given"
    step: str
    args: OptionalRaw = UNSET
    args_blob: OptionalRef = UNSET
    by: str = ""


class RecoveryStarted(Payload, frozen=True, kw_only=True):
    """Another worker continues the job after its last one disappeared."""

    KIND: ClassVar[str] = "recovery_started"
    owner: str
    previous_owner: str = ""
    """The owner that held the job without giving it up; empty: its last worker gave it up."""
    alive: bool = False
    """Whether that process is known to run still: it lost its lease, and did not die of the job."""


class RecoveryCompleted(Payload, frozen=True, kw_only=True):
    """Everything recorded was replayed; what follows is new."""

    KIND: ClassVar[str] = "recovery_completed"
    replayed_steps: int = 0


class ChildStarted(Payload, frozen=True, kw_only=True):
    """Ours: the job runs another recipe as part of itself."""

    KIND: ClassVar[str] = "child_started"
    step: str
    name: str
    version: str
    request_hash: str = ""
    input: OptionalRaw = UNSET
    input_blob: OptionalRef = UNSET
    refused: ErrorInfo | None = None
    """Why it was not run: no enabled skill allowed it; null: it was."""


class ChildEnded(Payload, frozen=True, kw_only=True):
    """Ours: a recipe that runs as part of the job returned, or ended with an error."""

    KIND: ClassVar[str] = "child_ended"
    step: str
    result: OptionalRaw = UNSET
    result_blob: OptionalRef = UNSET
    error: ErrorInfo | None = None


class CompensationStarted(Payload, frozen=True, kw_only=True):
    """Ours: the job undoes what it did, because it failed or was cancelled, or because its recipe says so."""

    KIND: ClassVar[str] = "compensation_started"
    steps: tuple[str, ...]
    """The steps that are undone, in this order."""
    step: str = ""
    """The place in the recipe that says so; empty: the job ends afterwards."""
    error: ErrorInfo | None = None
    """The error that the job fails with afterwards; null: it was cancelled."""
    by: str = ""
    """The person who cancelled it."""
    reason: str = ""


class CompensationCompleted(Payload, frozen=True, kw_only=True):
    """Ours: everything that was to be undone is undone, or a person decided otherwise."""

    KIND: ClassVar[str] = "compensation_completed"
    step: str = ""
    undone: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    """Steps that stay as they are."""


class JobCompleted(Payload, frozen=True, kw_only=True):
    """The recipe returned."""

    KIND: ClassVar[str] = "job_completed"
    result: OptionalRaw = UNSET
    result_blob: OptionalRef = UNSET


class JobFailed(Payload, frozen=True, kw_only=True):
    """The recipe ended with an error."""

    KIND: ClassVar[str] = "job_failed"
    error: ErrorInfo
    undone: tuple[str, ...] = ()
    """Steps that were undone before."""
    left: tuple[str, ...] = ()
    """Steps that were to be undone, and stay as they are."""


class JobCancelled(Payload, frozen=True, kw_only=True):
    """A person or a program stopped the job."""

    KIND: ClassVar[str] = "job_cancelled"
    by: str = ""
    reason: str = ""
    undone: tuple[str, ...] = ()
    """Steps that were undone before."""
    left: tuple[str, ...] = ()
    """Steps that were to be undone, and stay as they are."""


class WorkerStarted(Payload, frozen=True, kw_only=True):
    """Ours, in a worker's stream, leased while it lives: a process works, or does so with settings read again."""

    KIND: ClassVar[str] = "worker_started"
    owner: str
    """The process, as in its leases."""
    role: str
    """The command that was started: `worker`, `serve`, `tickets` or, of a program that opened a Remit, `python`."""
    remit: str
    """The version of Remit."""
    recipes: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """The recipes that it runs, with the execution versions that it runs them as."""
    settings_file: str = ""
    """The remit.toml that it has read."""
    settings_digest: str = ""
    """The SHA-256 of that file as it was then."""


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


class JobLabeled(Payload, frozen=True, kw_only=True):
    """Ours: the recipe gave its job labels, or a title."""

    KIND: ClassVar[str] = "job_labeled"
    step: str
    labels: dict[str, str | int | float | bool | None] = msgspec.field(default_factory=dict)
    """Values by key, a moment as ISO 8601 in UTC; null: the label goes."""
    title: str = ""
    """Empty: the title stays."""

    def words(self) -> str:
        """Return it in one line."""
        words = [f"{key}={'' if value is None else value}" for key, value in self.labels.items()]
        return ", ".join([f"the title {self.title!r}"] if self.title else words)


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


class PatchRecorded(Payload, frozen=True, kw_only=True):
    """Ours: the recipe came to a change of its code, `run.patched(name)`, with nothing recorded after it."""

    KIND: ClassVar[str] = "patch_recorded"
    name: str
    """The change: the job takes the new way wherever the recipe asks for it."""


class VersionMismatchRecorded(Payload, frozen=True, kw_only=True):
    """The job goes on under other code than recorded it."""

    KIND: ClassVar[str] = "version_mismatch_recorded"
    subject: Literal["execution", "planner", "recipe", "registry", "tool", "provider", "skill"]
    recorded: str
    current: str
    policy: str
    tool_name: str = ""
    """The tool, if it is about one."""


class SchemaDriftRecorded(Payload, frozen=True, kw_only=True):
    """A tool's contract is not the one the job was recorded with."""

    KIND: ClassVar[str] = "schema_drift_recorded"
    tool_name: str
    recorded: str
    current: str
    drift: str = ""
    policy: str = "warn"
    direction: Literal["request", "response"] = "request"
    """Which schema changed: the input's or the output's."""


class ModelDriftRecorded(Payload, frozen=True, kw_only=True):
    """The same prompt meets another model, or brought another answer."""

    KIND: ClassVar[str] = "model_drift_recorded"
    step: str
    prompt_hash: str
    subject: Literal["model", "output"]
    recorded: str
    """The model as `provider/model`, or the digest of the answer: empty in a stream about a subject."""
    current: str
    """The same, now."""
    policy: str = "warn"
