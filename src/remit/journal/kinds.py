"""Every kind of event and the fields of its payload (contract: versioning, "Events"; ours are marked).

A payload is a JSON object; fields at their default are left out, unknown fields are ignored on reading, and version
fields are optional, so that a stream from an older Remit still replays. `encode` and `decode` are the only way in and
out.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal, TypeVar

import msgspec

from remit.errors import ChainBrokenError
from remit.journal.outside import ApprovalRemembered, ApprovalRevoked, McpToolsPinned, RequestRelayed, SessionOpened
from remit.journal.payload import UNSET, OptionalRaw, OptionalRef, Payload

__all__ = [  # what stands in other files and is asked for here; every name of this one as well
    "UNSET",
    "ApprovalRemembered",
    "ApprovalRevoked",
    "McpToolsPinned",
    "OptionalRaw",
    "OptionalRef",
    "Payload",
    "RequestRelayed",
    "SessionOpened",
]

WaitType = Literal["webhook", "human", "timer", "signal", "message"]
Done = Literal["pure", "success", "side_effect_committed", "compensated"]
Undone = Literal["retryable_failure", "permanent_failure", "compensatable_failure", "uncertain"]


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


class PlanGenerated(Payload, frozen=True, kw_only=True):
    """The task graph a job follows; recorded once, never planned twice."""

    KIND: ClassVar[str] = "plan_generated"
    task_graph: OptionalRaw = UNSET
    task_graph_blob: OptionalRef = UNSET
    planner_version: str = ""
    schema_version: str = "taskgraph-v1"
    plan_hash: str = ""


class ToolInvocationStarted(Payload, frozen=True, kw_only=True):
    """A call was announced. Without a finished event, whether it happened is unknown (rule 3)."""

    KIND: ClassVar[str] = "tool_invocation_started"
    invocation_id: str
    step: str
    tool_name: str
    arguments_hash: str = ""
    idempotency_key: str = ""
    tool_version: str = ""
    request_schema_hash: str = ""
    args: OptionalRaw = UNSET
    args_blob: OptionalRef = UNSET
    request_hash: str = ""
    """Binds what the caller asked for, where a key, an alias or a person's edit made another call of it."""
    capability_level: int = 0
    provider_id: str = ""
    side_effect: Literal["read", "write", "unknown"] = "read"
    repeatable: bool = True
    attempt: int = 1
    principal: str = ""
    rule_id: str = ""
    policy_hash: str = ""
    confirmation: str = ""
    span_id: str = ""


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why something did not end well."""

    code: str
    message: str = ""
    remedy: str = ""
    cause: str = ""
    retryable: bool = False
    step: str = ""


class ToolInvocationFinished(Payload, frozen=True, kw_only=True):
    """What came of an announced call."""

    KIND: ClassVar[str] = "tool_invocation_finished"
    invocation_id: str
    step: str
    outcome: Literal["success", "failure", "timeout"]
    step_outcome: Done | Undone = "pure"
    result: OptionalRaw = UNSET
    result_blob: OptionalRef = UNSET
    error: ErrorInfo | None = None
    response_schema_hash: str = ""
    duration_us: int = 0
    evidence: int = 0
    """How many items the evidence_attached event before this one holds."""
    decided_by: str = ""
    """The person who said what came of an uncertain call."""


class CommandCommitted(Payload, frozen=True, kw_only=True):
    """A model answered."""

    KIND: ClassVar[str] = "command_committed"
    step: str
    result: OptionalRaw = UNSET
    result_blob: OptionalRef = UNSET
    llm_model: str = ""
    llm_provider: str = ""
    llm_temperature: float | None = None
    prompt_hash: str = ""
    token_count: int = 0


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


class JobCompleted(Payload, frozen=True, kw_only=True):
    """The recipe returned."""

    KIND: ClassVar[str] = "job_completed"
    result: OptionalRaw = UNSET
    result_blob: OptionalRef = UNSET


class JobFailed(Payload, frozen=True, kw_only=True):
    """The recipe ended with an error."""

    KIND: ClassVar[str] = "job_failed"
    error: ErrorInfo


class JobCancelled(Payload, frozen=True, kw_only=True):
    """Somebody stopped the job."""

    KIND: ClassVar[str] = "job_cancelled"
    by: str = ""
    reason: str = ""


class VersionMismatchRecorded(Payload, frozen=True, kw_only=True):
    """The job goes on under other code than recorded it."""

    KIND: ClassVar[str] = "version_mismatch_recorded"
    subject: Literal["execution", "planner", "recipe"]
    recorded: str
    current: str
    policy: str


class SchemaDriftRecorded(Payload, frozen=True, kw_only=True):
    """A tool's contract is not the one the job was recorded with."""

    KIND: ClassVar[str] = "schema_drift_recorded"
    tool_name: str
    recorded: str
    current: str
    drift: str = ""
    policy: str = "warn"


class ConfirmationRequested(Payload, frozen=True, kw_only=True):
    """A person is asked. In the confirmation's own stream it holds the whole call, in the caller's who waits for it."""

    KIND: ClassVar[str] = "confirmation_requested"
    confirmation: str
    step: str
    digest: str
    tool_name: str = ""
    args: OptionalRaw = UNSET
    args_blob: OptionalRef = UNSET
    question: str = ""
    principal: str = ""
    contract_hash: str = ""
    policy_hash: str = ""
    rule_id: str = ""
    approvals: int = 1
    approvers: tuple[str, ...] = ()
    expires_at: int | None = None
    edited_from: str = ""


class ConfirmationDecided(Payload, frozen=True, kw_only=True):
    """A person answered, or the question ended without an answer."""

    KIND: ClassVar[str] = "confirmation_decided"
    confirmation: str
    decision: Literal["approve", "deny", "edit", "expire", "revoke"]
    digest: str = ""
    by: str = ""
    reason: str = ""
    replaced_by: str = ""


class ConfirmationUsed(Payload, frozen=True, kw_only=True):
    """Ours: the approval was spent on the call it was given for, in the transaction that announced that call."""

    KIND: ClassVar[str] = "confirmation_used"
    confirmation: str
    invocation_id: str


class GateRefused(Payload, frozen=True, kw_only=True):
    """The gateway refused a call before it was announced."""

    KIND: ClassVar[str] = "gate_refused"
    step: str
    tool_name: str
    code: str
    reason: str = ""
    remedy: str = ""
    stage: str = ""
    arguments_hash: str = ""
    principal: str = ""
    rule_id: str = ""
    policy_hash: str = ""
    confirmation: str = ""


class EvidenceAttached(Payload, frozen=True, kw_only=True):
    """Evidence a call brought, by digest."""

    KIND: ClassVar[str] = "evidence_attached"
    invocation_id: str
    step: str
    items: tuple[dict[str, Any], ...]


class RecoveryStarted(Payload, frozen=True, kw_only=True):
    """Another worker goes on with the job after its last one disappeared."""

    KIND: ClassVar[str] = "recovery_started"
    owner: str
    previous_owner: str = ""


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


class SignalSent(Payload, frozen=True, kw_only=True):
    """Ours, in the job's inbox: something outside sent a signal."""

    KIND: ClassVar[str] = "signal_sent"
    name: str
    payload: OptionalRaw = UNSET
    payload_blob: OptionalRef = UNSET
    by: str = ""


class CancelRequested(Payload, frozen=True, kw_only=True):
    """Ours, in the job's inbox: somebody wants the job to stop."""

    KIND: ClassVar[str] = "cancel_requested"
    by: str = ""
    reason: str = ""


class StepDecided(Payload, frozen=True, kw_only=True):
    """Ours, in the job's inbox: a person says what came of an uncertain step."""

    KIND: ClassVar[str] = "step_decided"
    step: str
    attempt: int = 1
    decision: Literal["done", "retry", "fail"]
    value: OptionalRaw = UNSET
    value_blob: OptionalRef = UNSET
    by: str = ""
    reason: str = ""


def _kinds() -> dict[str, type[Payload]]:
    return {payload.KIND: payload for payload in Payload.__subclasses__()}


KINDS: Final = _kinds()
"""Every kind of event by name."""

_encode = msgspec.json.Encoder().encode
_decoders: Final = {kind: msgspec.json.Decoder(payload).decode for kind, payload in KINDS.items()}

P = TypeVar("P", bound=Payload)


def encode(payload: Payload) -> bytes:
    """The payload's JSON bytes, fields in their declared order."""
    return _encode(payload)


def decode(kind: str, data: bytes) -> Payload | None:
    """The payload of an event; None for a kind a newer Remit wrote.

    Raises ChainBrokenError where the bytes are not a payload of the kind.
    """
    decoder = _decoders.get(kind)
    if decoder is None:
        return None
    try:
        return decoder(data)
    except (msgspec.DecodeError, RecursionError) as error:
        msg = f"a recorded {kind} event cannot be read: {error}"
        raise ChainBrokenError(msg, remedy="Run `remit verify` on the stream.") from error
