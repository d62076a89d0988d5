"""The shapes that the service answers with: plain values, the same for every face, and what `--json` prints."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from remit.jobs.routes import unkept
from remit.jobs.state import CODE, WAITING, job_of
from remit.journal.event import StreamHead
from remit.journal.kinds import ScheduleOrigin, UntrustedArgument
from remit.record.step import StepNarrative

TASK_VERSION: Final = "1"


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A job in a list."""

    job: str
    name: str
    state: str
    title: str
    created_at: int
    """Microseconds since the Unix epoch."""
    updated_at: int
    due_at: int | None
    """When it next wants a worker; None: not before something wakes it."""
    waiting_for: str
    code: str
    """Why it failed or is stuck; empty otherwise."""
    worker: str
    """The holder now."""
    route: str = ""
    """Which workers can take it next; empty: all of them."""
    labels: dict[str, str]

    @property
    def stuck(self) -> bool:
        """Return whether the code at hand cannot continue it."""
        return self.state == "waiting" and bool(self.code)


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session of calls from outside any job, in a list."""

    session: str
    principal: str
    """The caller; empty if only the calls themselves say it."""
    title: str
    created_at: int
    """Microseconds since the Unix epoch."""
    updated_at: int
    events: int


class StepMeta(msgspec.Struct, frozen=True, kw_only=True):
    """What a step was about (contract: tools, "Steps")."""

    args_preview: str = ""
    result_preview: str = ""
    provider_id: str = ""
    risk_level: str = ""
    """The risk as the tool's provider says it: `read_only`, `write` or `unknown`; empty for a step that is not a tool
    call.
    """
    capability_level: str = ""
    """`L0`, `L1` or `L2`; empty for a step that is not a tool call."""
    tool_name: str = ""


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """An effect of a job (contract: tools, "Steps")."""

    step: str
    name: str
    """`tool.<name>`, or the kind of effect."""
    ok: bool
    duration_ms: float = 0.0
    error_code: str = ""
    meta: StepMeta = StepMeta()
    state: str
    """`ok`, `failed`, `blocked`, `running`, `unknown`, `waiting`."""
    reason: str = ""
    remedy: str = ""
    attempt: int = 1
    confirmation: str = ""
    undone: str = ""
    """`compensated` if another call undid it; `failed` or `skipped` if it was to be undone and stays as it is."""
    started_at: int = 0
    """When it began, in microseconds since the Unix epoch."""
    taken_from: str = ""
    """The job that recorded it, where a retry took it over; empty: this one."""

    @property
    def duration_us(self) -> int:
        """Return how long it took, in microseconds."""
        return round(self.duration_ms * 1_000)


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """One step, whole."""

    row: StepRow
    args: Any = None
    """Its input: arguments of a call, messages of a question to a model, what a wait is for; null: it has none."""
    value: Any = None
    """The whole result; the answer of a model as a message."""
    error: TaskError | None = None
    evidence: tuple[dict[str, Any], ...] = ()
    narrative: StepNarrative | None = None
    """The step as `remit trace` tells it: attempts, waits, questions, versions, tokens and cost."""


class OpenWait(msgspec.Struct, frozen=True, kw_only=True):
    """Something outside a job that one of its steps waits for."""

    step: str
    type: str
    """`timer`, `signal`, `human`, `webhook` or `message`."""
    key: str
    """The signal's name, the confirmation's identifier, or `uncertain:<attempt>` or `undo`: a person has to decide."""
    reason: str
    due_at: int | None
    """When waiting ends without it."""
    attempt: int = 0
    """The attempt whose outcome is unknown, where a person is to resolve it."""
    idempotency_key: str = ""
    """The key that attempt was sent with: ask the other side what it knows of it. Empty without an attempt."""


class TaskError(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job failed, was cancelled, or cannot go on (contract: tools, "Steps")."""

    code: str
    message: str
    retryable: bool = False
    """Whether the same may succeed later."""
    step: str = ""
    remedy: str = ""
    cause: str = ""
    """The provider's own code."""
    frames: tuple[str, ...] = ()
    """Where the exception came from, as `file:line in function`, the outermost first."""


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of evidence that a step left, by its digest."""

    step: str
    kind: str
    source: str
    hash: str
    bytes: int
    storage: str
    """`inline`, `raw` or `omitted`."""


class ArtifactRow(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a step left, or what it wrote to stdout or stderr; its bytes are asked for by their digest."""

    step: str
    path: str
    """Relative, as the program named it; `stdout` and `stderr` of a step that ran a command."""
    bytes: int
    sha256: str
    """`sha256:` and 64 hexadecimal digits."""
    media_type: str
    """The type that the ending of its name says; the bytes may be anything."""


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """One job, whole: the task result of the contract (tools, "Steps"), and what else is known of it."""

    version: str = TASK_VERSION
    """Of this form."""
    ok: bool
    """Whether it completed."""
    trace_id: str
    task_type: str
    """The recipe's or plan's name."""
    result: Any
    artifacts: tuple[Artifact, ...]
    steps: tuple[StepRow, ...]
    trace_lines: tuple[str, ...]
    """An event a line, at most 1,000; `remit trace` tells all."""
    error: TaskError | None
    job: str
    state: str
    waiting_for: str
    waits: tuple[OpenWait, ...]
    row: JobRow
    kind: str
    principal: str
    execution_version: str
    input: Any
    events: int
    retry_of: str = ""
    """The job whose steps it took over; empty: none."""
    fork_of: str | msgspec.UnsetType = msgspec.UNSET
    """The job that recorded what it shares as a fork; absent: it is none."""
    ran_version: str = ""
    """The version of the code that ran it last."""
    module: str = ""
    """The Python file that its recipe came from, if a person named that."""
    schedule: ScheduleOrigin | msgspec.UnsetType = msgspec.UNSET
    """The schedule that started it, and for which time; absent: none did."""
    skills: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """The digest of each skill that it is under; absent: it is under none."""


class ConfirmationView(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a person."""

    confirmation: str
    state: str
    caller: str
    step: str
    tool: str
    question: str
    args: Any
    digest: str
    contract_hash: str
    """Of the tool that was asked about; empty for a question of a recipe."""
    capability_level: str = ""
    """The tool's level as it was asked about; empty for a question of a recipe."""
    provider_id: str = ""
    tool_version: str = ""
    principal: str
    approvals: int
    approved_by: tuple[str, ...]
    approvers: tuple[str, ...]
    stand_ins: dict[str, str] = {}
    """The people who may answer now in place of an approver who is absent, each with that approver."""
    rule_id: str
    edited_from: str
    expires_at: int | None
    asked_at: int = 0
    """Microseconds since the Unix epoch."""
    defaults: dict[str, Any] | None = None
    """Defaults that the tool declares for what `args` leaves out, by JSON pointer; null: not known here, since the tool
    is not here or is another one by now. The digest covers them by the tool's contract. One that the tool makes as it
    runs, such as the time, is text in brackets that says so.
    """
    untrusted: tuple[UntrustedArgument, ...] = ()
    """The arguments that no trusted text holds, and where the model read them."""
    rememberable: bool = False
    """Whether an approval of it can be remembered: it says of which tool, and `policy.remembered` is true."""
    recipe: str = ""
    """The recipe or plan of the job that asks; empty for a call from outside jobs."""
    title: str = ""
    """That job's title."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """That job's labels."""

    @property
    def may_answer(self) -> tuple[str, ...]:
        """Return who may answer, in words; empty: everyone who may decide."""
        return (*self.approvers, *(f"{deputy} for {absent}" for deputy, absent in self.stand_ins.items()))


class ToolView(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of the catalog."""

    name: str
    key: str
    wire_name: str
    provider_id: str
    description: str
    capability_level: str
    side_effects: bool
    idempotent: bool
    requires_confirm: bool
    policy: str
    """The answer of policy to a call of it in a session: `runs`, `asks`, `denied`, or `depends` on the arguments."""
    timeout_ms: int
    version: str
    contract_hash: str
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None
    quarantined: str
    """Why it is withheld; empty: it is not."""
    remedy: str
    """The advice about that."""
    isolation: str = ""
    """`none`, `unprotected` or `sandbox`; empty: its provider sees to it, or does not say."""
    unchecked: tuple[str, ...] = ()
    """Places of its schemas, as its MCP server writes them, with a regular expression that is not checked here."""


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What checking chains found."""

    streams: int
    events: int
    problems: tuple[str, ...]
    erased: int = 0
    """Values that were erased with their subject; an erasure on record is no problem."""
    codes: tuple[str, ...] = ()
    """The code of each problem, in their order."""
    sealed: int = 0
    """Streams whose head has a seal that holds; 0 also if the journal's key is not here."""
    signed: int = 0
    """Approvals whose signature holds."""
    unchecked: int = 0
    """Signatures that were not checked, since `confirm.allowed_signers` names no file."""
    damaged: int = 0
    """Streams with a problem."""
    pruned: int = 0
    """Streams of which a stub is left."""
    removed: int = 0
    """Events that were removed from these, as the stubs say."""
    keyless: int = 0
    """Streams whose seal could not be checked, for the journal's key is not here."""
    key: str = ""
    """The id of that key."""
    state: Literal["", "whole", "prefix", "rejected"] = ""
    """`whole`: a checkpoint that was kept elsewhere covers every event; `prefix`: more may have been recorded;
    `rejected`: something does not fit. Empty: an older Remit looked."""
    checkpoints: int = 0
    """Signed checkpoints that fit."""
    cosigned: int = 0
    """Leaves of the newest checkpoint that a witness cosigned, whose key is known here."""
    stamps: int = 0
    """Checkpoints that an authority stamped with the time."""
    stamped: int = 0
    """Leaves of the newest of them whose stamp follows from the root certificates that are known here."""
    stamped_at: int = 0
    """When that stamp says it was, in microseconds since the Unix epoch."""
    reported: int = 0
    """Ends of calls that a client made itself and reported: that they happened so is its word."""
    skipped: tuple[str, ...] = ()
    """Parts that recorded something which was not compared, for an extra is not installed, and how to install it."""
    uncovered: int = 0
    """Events that no checkpoint covers."""
    keys: str = ""
    """`given`: checkpoints are signed by keys that were given; `named`: the journal alone says whose keys they are."""

    @property
    def ok(self) -> bool:
        """Return whether nothing is wrong, and every seal could be checked."""
        return not self.problems and not self.keyless


def session_row(head: StreamHead) -> SessionRow:
    """A session's head as a row."""
    return SessionRow(
        session=head.stream.partition("/")[2],
        principal=head.labels.get("principal", ""),
        title=head.title,
        created_at=head.created_at,
        updated_at=head.updated_at,
        events=head.seq,
    )


def job_row(head: StreamHead) -> JobRow:
    """A job's head as a row."""
    labels = {key: value for key, value in head.labels.items() if not key.startswith("remit.")}
    return JobRow(
        job=job_of(head.stream),
        name=head.labels.get("remit.name", ""),
        state=head.state,
        title=head.title,
        created_at=head.created_at,
        updated_at=head.updated_at,
        due_at=head.due_at,
        waiting_for=head.labels.get(WAITING, "") if head.state == "waiting" else "",
        code=head.labels.get(CODE, ""),
        worker=head.lease_owner or "",
        route=unkept(head.route)[0],
        labels=labels,
    )
