"""Outcomes and answers out of the journal, as they were given live.

Records what a live execution does, in the job's stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.gateway.outcome import EvidenceItem, Outcome, answered
from remit.jobs.effects.port import Answer
from remit.jobs.state import History
from remit.journal.blobs import pack
from remit.journal.effects import READS, Effect, recorded
from remit.journal.kinds import (
    UNSET,
    ErrorInfo,
    GateRefused,
    Payload,
    RecoveryCompleted,
    TimerFired,
    ToolInvocationFinished,
    UndoDeclared,
    WaitCompleted,
)
from remit.journal.lineage import whole
from remit.models.message import decode

if TYPE_CHECKING:
    from remit.jobs.records import CallRecord, ModelRecord
    from remit.jobs.spans import Activity
    from remit.journal.journal import Journal
    from remit.journal.writer import StreamWriter


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
    kept = await journal.value(UNSET, record.evidence_blob)
    items = msgspec.json.decode(kept) if kept is not None else record.evidence
    return tuple(msgspec.convert(item, EvidenceItem) for item in items)


def _refused(refused: GateRefused) -> Outcome:
    return Outcome(
        status="blocked",
        code=Code[refused.code],
        reason=refused.reason,
        remedy=refused.remedy,
        confirmation=refused.confirmation or None,
        again_ms=refused.again_ms,
    )


def failed_outcome(error: ErrorInfo, invocation_id: str, duration_us: int, effect: Effect = READS) -> Outcome:
    """A failed call's outcome from its recorded error."""
    code = Code[error.code]
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


async def recorded_answer(completed: WaitCompleted | TimerFired, journal: Journal) -> Answer:
    """Return what a wait ended with. Raises JournalError if its payload cannot be read."""
    if isinstance(completed, TimerFired):
        return Answer()
    encoded = await journal.value(completed.payload, completed.payload_blob)
    payload = _decode(encoded) if encoded is not None else None
    return Answer(payload=payload, by=completed.by, timed_out=completed.timed_out)


class Recorder:
    """The only writer of a job's effects in this process."""

    def __init__(
        self,
        journal: Journal,
        writer: StreamWriter,
        history: History,
        activity: Activity,
        *,
        step_by_step: bool = False,
    ) -> None:
        self.journal = journal
        self.writer = writer
        self.history = history
        self.activity = activity
        self._replayed = len(history.places)
        self._step_by_step = step_by_step

    def now(self) -> int:
        """Microseconds since the Unix epoch."""
        return self.journal.clock.now()

    async def begin(self) -> None:
        """Begin a new effect: everything recorded has been replayed by now."""
        if self.activity.halting:
            await self.activity.halt()
        if self.history.recovering:
            self.history.recovering = False
            await self.record(RecoveryCompleted(replayed_steps=self._replayed))

    async def record(self, payload: Payload, blobs: tuple[Any, ...] = ()) -> None:
        """Append an event, to be committed with the next batch."""
        await self.journal.append(self.writer, payload, synced=False, blobs=blobs)

    async def folded(self) -> History:
        """Everything recorded of the job by now."""
        await self.journal.drained()
        return History(await whole(self.journal, await self.journal.read(self.writer.stream)))

    async def declare(self, step: str, undo: tuple[str, dict[str, Any]] | None) -> None:
        """Record the call that undoes a step, or that the recipe makes it from the step's value."""
        if undo is None:
            declared = self.history.undos[step] = UndoDeclared(step=step)
            await self.record(declared)
        else:
            tool, args = undo[0], pack(msgspec.json.encode(undo[1]))
            declared = UndoDeclared(step=step, tool_name=tool, args=args.inline, args_blob=args.ref)
            self.history.undos[step] = declared
            await self.record(declared, args.blobs)

    async def end(self) -> None:
        """End an effect that is recorded; the job ends no process by what it did until here."""
        self.history.deaths.forget()
        if self._step_by_step:
            await self.activity.halt()
