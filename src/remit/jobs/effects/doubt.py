"""Attempts with an unknown outcome (rule 3): the provider may be able to tell, otherwise a person decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remit.codes import Code
from remit.gateway.outcome import Outcome
from remit.jobs.effects.outcomes import failed_outcome
from remit.jobs.effects.port import Answer, CallRequest, Wait
from remit.jobs.state import doubt_of
from remit.journal.blobs import pack
from remit.journal.effects import recorded
from remit.journal.kinds import ErrorInfo, ToolInvocationFinished, ToolInvocationStarted
from remit.redact import preview_of

if TYPE_CHECKING:
    from remit.gateway.pipeline import Gateway
    from remit.jobs.effects.recorder import Recorder
    from remit.jobs.effects.waits import Waits
    from remit.jobs.inbox import Inbox
    from remit.jobs.records import CallRecord


class Doubts:
    """Finds the outcome of an attempt whose end was not recorded."""

    def __init__(self, recorder: Recorder, gateway: Gateway, waits: Waits, inbox: Inbox) -> None:
        self._recorder = recorder
        self._gateway = gateway
        self._waits = waits
        self._inbox = inbox

    async def settle(self, request: CallRequest, record: CallRecord, started: ToolInvocationStarted) -> Outcome | None:
        """The outcome of an attempt that an earlier execution left unknown; None if it may be made again."""
        if not self.is_decided(started):
            verdict = await self._gateway.reconcile(started, self._recorder.writer)
            if isinstance(verdict, Outcome):
                return verdict
            await self._inbox.refresh()  # a person may have been faster
            if not self.is_decided(started) and (verdict == "never" or started.repeatable):
                record.repeats = repeats(started) if verdict != "never" else ""
                return None
        return await self.decided(request, started.invocation_id, started.attempt)

    async def find_out(self, request: CallRequest, started: ToolInvocationStarted) -> Outcome | None:
        """The outcome of an attempt that is not to be made again; None if it did not happen."""
        if not self.is_decided(started):
            verdict = await self._gateway.reconcile(started, self._recorder.writer)
            if verdict != "unknown":
                return verdict if isinstance(verdict, Outcome) else None
            await self._inbox.refresh()
        return await self.decided(request, started.invocation_id, started.attempt)

    def is_decided(self, started: ToolInvocationStarted) -> bool:
        """Return whether a person has decided on an attempt: that counts, whatever its provider says afterwards."""
        asked_for = self._recorder.history.waits.get((started.step, doubt_of(started.attempt)))
        if asked_for is not None and asked_for.completed is not None:
            return True
        return self._inbox.decision(started.step, started.attempt) is not None

    async def decided(self, request: CallRequest, invocation_id: str, attempt: int) -> Outcome | None:
        """Wait until a person decides on an uncertain attempt; None if it is to be made again."""
        why = f"{request.tool} {preview_of(request.args)} may have taken effect; its outcome is unknown"
        wait = Wait(step=request.step, type="human", key=doubt_of(attempt), reason=why, attempt=attempt)
        answer = await self._waits.until(wait)
        if answer.payload["decision"] == "retry":
            return None
        return await self._record(request.step, invocation_id, answer)

    async def _record(self, step: str, invocation_id: str, answer: Answer) -> Outcome:
        value, done = answer.payload["value"], answer.payload["decision"] == "done"
        packed = pack(msgspec.json.encode(value)) if done else None
        error = ErrorInfo(
            code=Code.OUTCOME_UNKNOWN.name, message=answer.payload["reason"] or f"{answer.by} says it failed"
        )
        finished = ToolInvocationFinished(
            invocation_id=invocation_id,
            step=step,
            outcome="success" if done else "failure",
            step_outcome="side_effect_committed" if done else "permanent_failure",
            result=packed.inline if packed else msgspec.UNSET,
            result_blob=packed.ref if packed else msgspec.UNSET,
            error=None if done else error,
            decided_by=answer.by,
            effect="committed" if done else "none",
            effect_by="person",
        )
        await self._recorder.record(finished, packed.blobs if packed else ())
        await self._recorder.end()
        if done:
            return Outcome(status="ok", value=value, invocation_id=invocation_id, effect=recorded(finished))
        return failed_outcome(error, invocation_id, 0, recorded(finished))


def repeats(started: ToolInvocationStarted) -> str:
    """The only provider that may repeat an attempt that may have happened; empty if any may: it changes nothing."""
    return started.provider_id if started.side_effect != "read" else ""
