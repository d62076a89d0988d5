"""An event in a few words, for people who watch a job. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from remit.journal import kinds as k
from remit.journal.event import Event
from remit.record.step import joined, said, shown
from remit.record.teller import Drifted, drift_of
from remit.redact import line


def words(event: Event) -> str:
    """Return what an event says, on one line, without its kind and its time."""
    payload = k.decode(event.kind, event.data)
    if payload is None:
        return ""
    told = _WORDS.get(type(payload))
    return line(told(payload) if told is not None else payload.words())


def _created(one: k.JobCreated) -> str:
    return joined(one.name, shown(one.input, one.input_blob), f"by {one.principal}" if one.principal else "")


def _started(one: k.ToolInvocationStarted) -> str:
    attempt = f"attempt {one.attempt}" if one.attempt > 1 else ""
    return joined(one.step, one.tool_name, attempt, shown(one.args, one.args_blob))


def _finished(one: k.ToolInvocationFinished) -> str:
    error = one.error.words if one.error else ""
    decided = f"as {one.decided_by} says" if one.decided_by else ""
    return joined(one.step, one.outcome, decided, error or shown(one.result, one.result_blob))


def _model_asked(one: k.CommandStarted) -> str:
    left_out = ", ".join(f"{tool} ({reason})" for tool, reason in one.left_out.items())
    attempt = f"attempt {one.attempt}" if one.attempt > 1 else ""
    return joined(one.step, one.name, attempt, f"without {left_out}" if left_out else "")


def _answered(one: k.CommandCommitted) -> str:
    error = one.error.words if one.error else ""
    return joined(one.step, f"{one.llm_provider}:{one.llm_model}", error or said(one.result, one.result_blob))


def _refused(one: k.GateRefused) -> str:
    return joined(one.step, one.tool_name, f"{one.code}:", one.reason)


def _waiting(one: k.JobWaiting) -> str:
    key = one.correlation_key if one.correlation_key != one.step else ""
    return joined(one.step, one.wait_type, key, one.reason if one.reason != key else "")


def _came(one: k.WaitCompleted) -> str:
    how = "no one answered in time" if one.timed_out else shown(one.payload, one.payload_blob)
    return joined(one.step, one.wait_type, one.correlation_key, f"by {one.by}" if one.by else "", how)


def _asked(one: k.ConfirmationRequested) -> str:
    return joined(one.step, one.confirmation, one.tool_name, one.question, one.digest)


def _value(one: Any) -> str:
    return joined(one.step, str(one.value))


def _failed(one: k.JobFailed) -> str:
    return one.error.words


def _undoes(one: k.CompensationStarted) -> str:
    why = f"{one.error.code}: {one.error.message}" if one.error else "cancelled" if not one.step else ""
    return joined(one.step, f"steps {', '.join(one.steps)}", why)


def _cancelled(one: k.JobCancelled) -> str:
    return joined(f"by {one.by}" if one.by else "", one.reason)


def _drifted(one: Drifted) -> str:
    drift = drift_of(one, 0)
    return f"{drift.words} was {drift.recorded or 'none'}, is {drift.current or 'gone'}"


_WORDS: Final[dict[type[k.Payload], Callable[[Any], str]]] = {
    k.JobCreated: _created,
    k.PlanGenerated: lambda one: joined(one.schema_version, one.plan_hash),
    k.ToolInvocationStarted: _started,
    k.ToolInvocationFinished: _finished,
    k.GateRefused: _refused,
    k.BytesKept: lambda one: joined(one.step, f"{one.kept_blob.bytes} bytes", one.digest),
    k.SchemaGateWarned: lambda one: joined(one.step, one.tool_name, one.boundary, *one.warn_codes),
    k.UndoDeclared: lambda one: joined(one.step, one.tool_name, shown(one.args, one.args_blob)),
    k.CompensationStarted: _undoes,
    k.CompensationCompleted: lambda one: joined(one.step, f"undone: {', '.join(one.undone) or 'nothing'}"),
    k.StepCompensated: lambda one: joined(one.step, one.tool_name, one.outcome, one.error.code if one.error else ""),
    k.SessionOpened: lambda one: joined(one.client, one.client_version, f"as {one.principal}", one.via),
    k.CallOpened: lambda one: joined(one.step, one.tool_name, f"by {one.principal}", one.session),
    k.CallContinued: lambda one: joined(one.step, one.tool_name, f"in {one.session}", f"asked in {one.asked_in}"),
    k.RequestRelayed: lambda one: joined(one.step, one.provider_id, one.method, one.target, one.error),
    k.LimitTaken: lambda one: joined(one.step, one.rule_id, one.tool_name, f"by {one.principal}", one.amount),
    k.McpToolsPinned: lambda one: joined(one.server, f"{len(one.tools)} tools", one.how, f"by {one.by}"),
    k.McpRestartRequested: lambda one: joined(one.server, f"by {one.by}"),
    k.CommandStarted: _model_asked,
    k.CommandCommitted: _answered,
    k.EvidenceAttached: lambda one: joined(one.step, f"{len(one.items)} pieces" if one.items else "kept erasable"),
    k.JobWaiting: _waiting,
    k.WaitCompleted: _came,
    k.TimerFired: lambda one: one.step,
    k.ConfirmationRequested: _asked,
    k.TimeRecorded: _value,
    k.RandomRecorded: _value,
    k.UuidRecorded: _value,
    k.ChildStarted: lambda one: joined(one.step, one.name, one.version),
    k.ChildEnded: lambda one: joined(one.step, one.error.words if one.error else shown(one.result, one.result_blob)),
    k.RecoveryStarted: lambda one: joined(one.owner, f"after {one.previous_owner}" if one.previous_owner else ""),
    k.RecoveryCompleted: lambda one: f"{one.replayed_steps} steps returned",
    k.PatchRecorded: lambda one: one.name,
    k.VersionMismatchRecorded: _drifted,
    k.SchemaDriftRecorded: _drifted,
    k.ModelDriftRecorded: _drifted,
    k.JobForked: lambda one: joined(f"from {one.job} after event {one.seq}", f"by {one.by}" if one.by else ""),
    k.StepArgsGiven: lambda one: joined(one.step, shown(one.args, one.args_blob), f"by {one.by}" if one.by else ""),
    k.JobCompleted: lambda one: shown(one.result, one.result_blob),
    k.JobFailed: _failed,
    k.JobCancelled: _cancelled,
    k.StreamPruned: lambda one: joined(
        f"{one.events} events", one.package, one.reason, f"by {one.by}" if one.by else ""
    ),
}
