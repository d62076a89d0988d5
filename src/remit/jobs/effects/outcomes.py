"""Outcomes and answers out of the journal, as they were given live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from remit.codes import Code
from remit.gateway.outcome import EvidenceItem, Outcome, answered
from remit.jobs.effects.port import WaitAnswer
from remit.journal.effects import READS, Effect, recorded
from remit.journal.kinds import (
    UNSET,
    ErrorInfo,
    GateRefused,
    TimerFired,
    ToolInvocationFinished,
    WaitCompleted,
)
from remit.models.message import decode

if TYPE_CHECKING:
    from remit.jobs.state import CallRecord, ModelRecord
    from remit.journal.journal import Journal


_decode: Final = msgspec.json.Decoder().decode


def held_outcome(record: CallRecord) -> Outcome | None:
    """The outcome of a call that has ended; None if a part of it is kept beside the events."""
    if record.refused is not None:
        return _refused(record.refused)
    finished = record.finished
    if finished is None:
        msg = "an outcome was asked for that is not recorded"
        raise AssertionError(msg)
    if finished.evidence:
        return None
    if finished.error is not None:
        return failed_outcome(finished.error, finished.invocation_id, finished.duration_us, _effect(finished))
    if not isinstance(finished.result, msgspec.Raw):
        return None
    return Outcome(
        status="ok",
        value=_decode(finished.result),
        effect=_effect(finished),
        invocation_id=finished.invocation_id,
        duration_us=finished.duration_us,
    )


async def recorded_outcome(record: CallRecord, journal: Journal) -> Outcome:
    """The outcome of a call that has ended. Raises JournalError if its value cannot be read."""
    held, finished = held_outcome(record), record.finished
    if held is not None:
        return held
    if finished is None:
        raise AssertionError(record)
    evidence = await _evidence(record, journal) if finished.evidence else ()
    if finished.error is not None:
        failed = failed_outcome(finished.error, finished.invocation_id, finished.duration_us, _effect(finished))
        return msgspec.structs.replace(failed, evidence=evidence)
    encoded = await journal.value(finished.result, finished.result_blob)
    return Outcome(
        status="ok",
        value=_decode(encoded) if encoded is not None else None,
        evidence=evidence,
        effect=_effect(finished),
        invocation_id=finished.invocation_id,
        duration_us=finished.duration_us,
    )


def _effect(finished: ToolInvocationFinished) -> Effect:
    """Return what was recorded of the effect, and no more: a model is told again what it was told."""
    return recorded(finished) if finished.effect else READS


async def recorded_reply(record: ModelRecord, journal: Journal) -> Outcome:
    """The outcome of a question to a model that has ended. Raises JournalError if its answer cannot be read."""
    if record.refused is not None:
        return _refused(record.refused)
    committed = record.committed
    if committed is None:
        msg = "an answer was asked for that is not recorded"
        raise AssertionError(msg)
    duration_us = round(committed.duration_ms * 1_000)
    if committed.error is not None:
        return failed_outcome(committed.error, committed.invocation_id, duration_us)
    encoded = await journal.value(committed.result, committed.result_blob)
    value = answered(committed, decode(encoded or b""))
    return Outcome(status="ok", value=value, invocation_id=committed.invocation_id, duration_us=duration_us)


async def _evidence(record: CallRecord, journal: Journal) -> tuple[EvidenceItem, ...]:
    value = await journal.value(UNSET, record.evidence_blob)
    items = msgspec.json.decode(value) if value is not None else record.evidence
    return tuple(msgspec.convert(item, EvidenceItem) for item in items)


def _refused(refused: GateRefused) -> Outcome:
    return Outcome(
        status="blocked",
        code=Code.recorded(refused.code, Code.POLICY_DENIED, retryable=refused.again_ms is not None),
        reason=refused.reason,
        remedy=refused.remedy,
        confirmation=refused.confirmation or None,
        again_ms=refused.again_ms,
    )


def failed_outcome(error: ErrorInfo, invocation_id: str, duration_us: int, effect: Effect = READS) -> Outcome:
    """A failed call's outcome from its recorded error."""
    code = Code.recorded(error.code, Code.TOOL_EXEC_FAILED, retryable=error.retryable)
    return Outcome(
        status="blocked" if code.status == "blocked" else "failed",
        code=code,
        reason=error.message,
        remedy=error.remedy,
        cause=error.cause or None,
        frames=error.frames,
        effect=effect,
        invocation_id=invocation_id,
        duration_us=duration_us,
    )


async def recorded_answer(completed: WaitCompleted | TimerFired, journal: Journal) -> WaitAnswer:
    """Return what a wait ended with. Raises JournalError if its payload cannot be read."""
    if isinstance(completed, TimerFired):
        return WaitAnswer()
    encoded = await journal.value(completed.payload, completed.payload_blob)
    payload = _decode(encoded) if encoded is not None else None
    return WaitAnswer(payload=payload, by=completed.by, timed_out=completed.timed_out)
