"""Calls of tools, from the first attempt to the final outcome: approvals, retries, and attempts with an unknown end.

Attempts with an unknown outcome (rule 3): the provider may be able to tell, otherwise a person decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from remit.codes import Code
from remit.errors import PayloadErasedError
from remit.gateway.call import Earlier, Progress, Request
from remit.gateway.outcome import LIMITED, Outcome, is_limited
from remit.gateway.readiness import named
from remit.gateway.turns import Line
from remit.jobs.effects.outcomes import failed_outcome
from remit.jobs.effects.port import Answer, CallRequest, Held, Wait
from remit.jobs.routes import LackingError, of_tool
from remit.jobs.skills import in_force
from remit.jobs.state import UNDO, doubt_of
from remit.journal.blobs import pack
from remit.journal.effects import effect_of, recorded
from remit.journal.kinds import ErrorInfo, ToolInvocationFinished, ToolInvocationStarted
from remit.redact import preview_of
from remit.tools.catalog import ResolveError
from remit.tools.meta import Retry

if TYPE_CHECKING:
    from remit.gateway.pipeline import Gateway
    from remit.jobs.caller import JobCaller
    from remit.jobs.effects.outcomes import Recorder
    from remit.jobs.effects.questions import Questions
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


_RETRY: Final = Retry()
"""The time to wait if the tool does not say so any more."""
_LACKING: Final = frozenset({Code.UNKNOWN_TOOL, Code.MCP_REQUIRED_UNAVAILABLE})
_APPROVAL: Final = "approval"
"""Why a call waits for a confirmation."""


class Calls:
    """Makes the calls of one execution through the gateway."""

    def __init__(
        self,
        recorder: Recorder,
        gateway: Gateway,
        waits: Waits,
        doubts: Doubts,
        questions: Questions,
        *,
        caller: JobCaller,
        mismatch: str,
        progress: Progress,
        held: Held,
    ) -> None:
        self._recorder = recorder
        self._gateway = gateway
        self._waits = waits
        self._doubts = doubts
        self._questions = questions
        self._caller = caller
        self._mismatch = mismatch
        self._held = held
        self._progress = progress

    async def make(self, request: CallRequest, record: CallRecord) -> Outcome:
        """Make a call until its outcome is final: through approval, retries, and the decision on an unknown outcome."""
        await self._recorder.begin()
        await self._require(request, record)
        await self._declare(request)
        made, last = record.attempts, record.started.invocation_id if record.started else ""
        if made or record.confirmation or record.turns:
            settled = await self._taken_up(request, record)
            if settled is not None:
                return settled
        while True:
            if self._recorder.activity.halting:  # what the call waited for came while the worker was on its way out
                await self._recorder.activity.halt()
            asked = await self._request(request, record, made + 1)
            outcome = await self._gateway.call(asked, self._recorder.writer, self._progress)
            if outcome.status == "pending" and outcome.confirmation is not None:
                record.confirmation = outcome.confirmation
                await self._approval(request.step, record.confirmation)
                continue
            if outcome.invocation_id is not None:  # announced; otherwise the attempt before is in doubt
                made, last = made + 1, outcome.invocation_id
            if outcome.uncertain:
                settled = await self._doubts.decided(request, last, made)
                if settled is not None:
                    return settled
                record.repeats = ""
            elif outcome.again is not None:
                record.repeats = outcome.again
                await self._before_next(request, record, outcome, made)
                await self._require(request, record)
            else:
                await self._recorder.end()
                return outcome

    async def _declare(self, request: CallRequest) -> None:
        """Record how the call is undone before it is announced, so that no crash can come between the two."""
        if request.undo is not None and request.step not in self._recorder.history.undos:
            await self._recorder.declare(request.step, request.undo if isinstance(request.undo, tuple) else None)

    async def _require(self, request: CallRequest, record: CallRecord) -> None:
        """Raise LackingError if the job may not go on, the tool is not here, or what it depends on is down.

        An attempt with an unknown outcome needs the tool as well, to be asked about it. But a person may already be
        asked, and if the job was left before, it is a person's turn.
        """
        if not request.step.startswith(UNDO):  # what was done is undone all the same
            await self._held()
        if not request.needed:
            return
        history, services = self._recorder.history, self._gateway.services
        if record.unknown and (history.times_left or history.in_doubt(request.step) is not None):
            return
        try:
            tool, _ = await services.catalog.resolve(request.tool, request.args)
        except ResolveError as error:
            if error.code not in _LACKING:
                return  # the gateway refuses the call, and records why
            raise LackingError(
                error.reason, route=of_tool(request.tool), code=error.code, remedy=error.remedy
            ) from error
        missing = await services.readiness.missing(tool.meta.requires) if tool.meta.requires else None
        if missing:
            msg = f"{tool.meta.name} needs {named(missing)}"
            raise LackingError(msg, route=of_tool(request.tool), code=Code.MCP_REQUIRED_UNAVAILABLE)

    async def _taken_up(self, request: CallRequest, record: CallRecord) -> Outcome | None:
        """Go on where an earlier execution left a call; None if it is to be made, or made again."""
        started = record.started
        await self._waits.last_turn(request.step, record)
        if started is not None and (record.unknown or self._doubts.is_decided(started)):
            settled = await self._doubts.settle(request, record, started)
            if settled is not None:
                return settled
        elif started is not None and record.finished is not None:
            error, effect = record.finished.error, effect_of(started, record.finished)
            record.repeats = repeats(started) if effect.stands else ""
            if error is None or not is_limited(error.code):
                await self._back_off(request, record.attempts)
            await self._require(request, record)
        for confirmation in self._unanswered(request.step) if record.confirmation else ():
            await self._approval(request.step, confirmation)
        return None

    async def _request(self, request: CallRequest, record: CallRecord, attempt: int) -> Request:
        caller = self._caller
        return Request(
            tool=request.tool,
            args=request.args,
            step=request.step,
            principal=caller.principal,
            caller=caller.kind,
            recipe=caller.recipe,
            overlays=(*caller.overlays, *in_force().overlays),
            skills=in_force().digests or caller.skills.digests,
            sandbox=(*caller.skills.sandbox, *in_force().sandbox),
            budget=None if request.step.startswith(UNDO) else caller.budget,  # to undo is never too much
            job=caller.facts,
            line=Line(priority=caller.priority, place=record.turn_at),
            conversation=request.conversation,
            provenance=self._recorder.history.provenance,
            timeout_s=request.timeout_s,
            attempt=attempt,
            repeats=record.repeats,
            tries_again=request.attempts is None or attempt < request.attempts,
            confirmation=record.confirmation,
            hash=request.hash,
            barred=request.barred,
            earlier=await self._earlier(record.started) if record.started and self._mismatch == "migrate" else None,
            undoable=request.undo is not None,
        )

    async def _earlier(self, started: ToolInvocationStarted) -> Earlier | None:
        """The attempt before, to be repeated as it was recorded; its arguments may have to be migrated."""
        try:
            sent = await self._recorder.journal.value(started.args, started.args_blob)
        except PayloadErasedError:
            return None  # the recipe's own arguments are all that is left
        if sent is None:
            return None
        return Earlier(
            tool_version=started.tool_version,
            schema=started.request_schema_hash,
            idempotency_key=started.idempotency_key,
            args=msgspec.json.decode(sent),
        )

    async def _before_next(self, request: CallRequest, record: CallRecord, outcome: Outcome, made: int) -> None:
        """Wait until the call may be made again: for its turn, if a limit, here or there, was why it was not made."""
        if outcome.invocation_id is None or outcome.code in LIMITED:
            await self._waits.turn(request.step, record, outcome)
        else:
            await self._back_off(request, made)

    async def _back_off(self, request: CallRequest, failed_attempts: int) -> None:
        """Wait for the next attempt, as the tool says. The job holds no worker."""
        tool = await self._gateway.services.catalog.find(request.tool)
        retry = tool.meta.retry if tool is not None and tool.meta.retry is not None else _RETRY
        due = self._recorder.now() + retry.delay_ms(failed_attempts) * 1_000
        await self._waits.until(Wait(step=request.step, type="timer", key=f"retry:{failed_attempts + 1}", due_at=due))

    async def _approval(self, step: str, confirmation: str) -> None:
        due = await self._questions.expires_at(confirmation)
        await self._waits.until(Wait(step=step, type="human", key=confirmation, due_at=due, reason=_APPROVAL))

    def _unanswered(self, step: str) -> list[str]:
        """Approvals that an earlier execution left the step waiting for."""
        return [
            key
            for (place, key), record in self._recorder.history.waits.items()
            if place == step and record.completed is None and record.waiting.reason == _APPROVAL
        ]
