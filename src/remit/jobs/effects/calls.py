"""Calls of tools, from the first attempt to the final outcome: approvals, retries, and attempts with an unknown end.

Attempts with an unknown outcome (rule 3): the provider may be able to tell, otherwise a person decides.

Records what a live execution does, in the job's stream, and waits with its branches for something outside of the job:
timers, signals, questions, decisions on unknown outcomes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import NondeterminismError, PayloadErasedError
from remit.gateway.call import EarlierAttempt, GateRequest, Progress
from remit.gateway.outcome import LIMITED, Outcome, is_limited
from remit.gateway.readiness import named
from remit.gateway.turns import TurnLine
from remit.jobs.branch import OWN_LIMIT, current
from remit.jobs.effects.outcomes import failed_outcome, recorded_answer
from remit.jobs.effects.port import CallRequest, Held, Wait, WaitAnswer
from remit.jobs.routes import LackingError, of_tool
from remit.jobs.skills import NONE_IN_FORCE, in_force
from remit.jobs.state import TURN, UNDO, JobHistory, ModelRecord, doubt_of
from remit.journal.blobs import pack
from remit.journal.effects import effect_of, recorded
from remit.journal.event import NO_PATCH, HeadPatch
from remit.journal.kinds import (
    ErrorInfo,
    JobWaiting,
    Payload,
    RecoveryCompleted,
    TimerFired,
    ToolInvocationFinished,
    ToolInvocationStarted,
    UndoDeclared,
    WaitCompleted,
)
from remit.journal.lineage import whole
from remit.redact import preview_of
from remit.tools.catalog import ResolveError
from remit.tools.meta import Retry

if TYPE_CHECKING:
    from remit.gateway.pipeline import Gateway
    from remit.jobs.caller import JobCaller
    from remit.jobs.effects.questions import Questions
    from remit.jobs.inbox import JobInbox
    from remit.jobs.spans import Activity
    from remit.jobs.state import CallRecord, WaitRecord
    from remit.journal.journal import Journal
    from remit.journal.writer import StreamWriter


class EffectRecorder:
    """The only writer of a job's effects in this process."""

    def __init__(
        self,
        journal: Journal,
        writer: StreamWriter,
        history: JobHistory,
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

    async def begin(self) -> None:
        """Begin a new effect: everything recorded has been replayed by now."""
        if self.activity.halting:
            await self.activity.halt()
        if self.history.recovering:
            self.history.recovering = False
            await self.record(RecoveryCompleted(replayed_steps=self._replayed))

    async def record(self, payload: Payload, blobs: tuple[Any, ...] = (), patch: HeadPatch = NO_PATCH) -> None:
        """Append an event, to be committed with the next batch."""
        await self.journal.append(self.writer, payload, synced=False, blobs=blobs, patch=patch)

    async def folded(self) -> JobHistory:
        """Everything recorded of the job by now."""
        await self.journal.drained()
        return JobHistory(await whole(self.journal, await self.journal.read(self.writer.stream)))

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


_RAREST: Final = 60
"""Times the first wait that a step waits at most before it looks again."""
_Ended = tuple[WaitAnswer, Payload, tuple[Any, ...]]
"""The answer, the event that records it, and the event's blobs."""


class _Waiting:
    """A wait, and the future its branch sleeps on."""

    __slots__ = ("future", "wait")

    def __init__(self, wait: Wait) -> None:
        self.wait = wait
        self.future: asyncio.Future[_Ended] = asyncio.get_running_loop().create_future()


class Waits:
    """Announces waits, and ends each when its time or its message has come."""

    def __init__(self, recorder: EffectRecorder, inbox: JobInbox, questions: Questions, principal: str) -> None:
        self._recorder = recorder
        self._journal = recorder.journal
        self._history = recorder.history
        self._activity = recorder.activity
        self._inbox = inbox
        self._questions = questions
        self._principal = principal
        self._open: list[_Waiting] = []

    async def until(self, wait: Wait) -> WaitAnswer:
        """Return what a wait ended with, recorded or new; the wait belongs to the place of another effect."""
        record = self._history.waits.get((wait.step, wait.key))
        if record is not None and record.completed is not None:
            return await recorded_answer(record.completed, self._journal)
        branch = current.get(None)
        if record is None and branch is not None and branch.limited:
            held, purpose = f"an effect that waits ({wait.words})", "to bound it by a time limit of asyncio"
            raise NondeterminismError(wait.step, held, purpose, code=Code.FOREIGN_TIMEOUT, remedy=OWN_LIMIT)
        return await self.wait(wait, record)

    async def turn(self, step: str, record: CallRecord | ModelRecord, outcome: Outcome) -> None:
        """Wait for the turn of a step that a limit refused for now. The job holds no worker.

        Where it is not known when that comes, it looks less often each time.
        """
        record.turns, record.turn_at = record.turns + 1, outcome.turn_at
        times = 1 if outcome.turn_at else min(record.turns, _RAREST)
        wait = Wait(
            step=step,
            type="timer",
            key=f"{TURN}{record.turns}",
            due_at=self._recorder.journal.clock.now() + (outcome.again_ms or 0) * times * 1_000,
            reason=outcome.reason,
            turn_at=outcome.turn_at,
            model_call=isinstance(record, ModelRecord),
        )
        await self.until(wait)

    async def last_turn(self, step: str, record: CallRecord | ModelRecord) -> None:
        """Wait for the turn that an earlier execution left a step waiting for, if it did."""
        last = self._history.waits.get((step, f"{TURN}{record.turns}"))
        if last is not None:
            waiting = last.waiting
            await self.until(Wait(step=step, type="timer", key=waiting.correlation_key, reason=waiting.reason))

    async def wait(self, wait: Wait, record: WaitRecord | None) -> WaitAnswer:
        """Wait until what is waited for comes; the execution may end before."""
        await self._recorder.begin()
        if record is not None:
            wait = msgspec.structs.replace(wait, due_at=record.waiting.due_at)
        else:
            await self._announce(wait)
        answer, event, blobs = await self._ended(wait)
        await self._recorder.record(event, blobs)
        await self._recorder.end()
        return answer

    async def poll(self, wait: Wait) -> WaitAnswer | None:
        """Return what a wait would end with at once, recorded; None, with nothing recorded, if it would not."""
        await self._inbox.refresh()
        if self._inbox.signal(wait.key, self._history.consumed) is None:
            return None
        return await self.wait(wait, None)

    async def _announce(self, wait: Wait) -> None:
        """Record what is waited for. A question of the recipe is asked in the same transaction: as recorded, or not."""
        waiting = JobWaiting(
            step=wait.step,
            wait_type=wait.type,
            correlation_key=wait.key,
            due_at=wait.due_at,
            reason=wait.reason,
            request_hash=wait.request_hash,
            turn_at=wait.turn_at,
            model_call=wait.model_call,
        )
        if wait.question is None:
            await self._recorder.record(waiting)
        else:
            question, blobs = self._questions.draft(wait, wait.question, self._principal)
            draft = self._recorder.writer.draft(waiting)
            await self._journal.commit(draft, question, synced=True, blobs=blobs)

    async def _ended(self, wait: Wait) -> _Ended:
        waiting = _Waiting(wait)
        self._open.append(waiting)
        self._activity.attention.set()
        self._activity.block()
        try:
            return await waiting.future
        finally:
            self._open.remove(waiting)
            if waiting.future.cancelled():  # otherwise `look` has let the branch go on
                self._activity.unblock()

    # --- what has come

    async def look(self) -> None:
        """Let those waits end whose time or message has come."""
        now = self._recorder.journal.clock.now()
        for waiting in tuple(self._open):
            if waiting.future.done():
                continue
            answer = await self._answer(waiting.wait, now)
            if answer is not None and not waiting.future.done():
                self._activity.unblock()
                waiting.future.set_result(answer)

    @property
    def next_due(self) -> int | None:
        """Return when the first wait ends by itself."""
        return min((each.wait.due_at for each in self._open if each.wait.due_at is not None), default=None)

    @property
    def words(self) -> list[str]:
        """Return what is waited for, for people."""
        return [each.wait.words for each in self._open]

    async def _answer(self, wait: Wait, now: int) -> _Ended | None:
        due = wait.due_at is not None and now >= wait.due_at
        if wait.type == "timer":
            if not due or wait.due_at is None:
                return None
            return WaitAnswer(), TimerFired(step=wait.step, correlation_key=wait.key, due_at=wait.due_at), ()
        message = await self._message(wait)
        # Whether the time for an answer is over is on record, where everyone sees the same.
        if message is None and (not due or wait.type == "human"):
            return None
        answer, inbox_seq = message if message is not None else (WaitAnswer(timed_out=True), 0)
        packed = pack(msgspec.json.encode(answer.payload)) if message is not None else None
        if inbox_seq:
            self._history.consumed.add(inbox_seq)
        event = WaitCompleted(
            step=wait.step,
            wait_type=wait.type,
            correlation_key=wait.key,
            payload=packed.inline if packed else msgspec.UNSET,
            payload_blob=packed.ref if packed else msgspec.UNSET,
            by=answer.by,
            timed_out=answer.timed_out,
            inbox_seq=inbox_seq,
        )
        return answer, event, packed.blobs if packed else ()

    async def _message(self, wait: Wait) -> tuple[WaitAnswer, int] | None:
        if wait.type == "signal":
            signal = self._inbox.signal(wait.key, self._history.consumed)
            if signal is None:
                return None
            encoded = await self._journal.value(signal[1].payload, signal[1].payload_blob)
            payload = msgspec.json.decode(encoded) if encoded is not None else None
            return WaitAnswer(payload=payload, by=signal[1].by), signal[0]
        if wait.attempt is not None:
            decision = self._inbox.decision(wait.step, wait.attempt)
            if decision is None:
                return None
            encoded = await self._journal.value(decision[1].value, decision[1].value_blob)
            value = msgspec.json.decode(encoded) if encoded is not None else None
            payload = {"decision": decision[1].decision, "value": value, "reason": decision[1].reason}
            return WaitAnswer(payload=payload, by=decision[1].by), decision[0]
        return await self._questions.answer(wait)


class Doubts:
    """Finds the outcome of an attempt whose end was not recorded."""

    def __init__(self, recorder: EffectRecorder, gateway: Gateway, waits: Waits, inbox: JobInbox) -> None:
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
        reason = f"{request.tool} {preview_of(request.args)} may have taken effect; its outcome is unknown"
        wait = Wait(step=request.step, type="human", key=doubt_of(attempt), reason=reason, attempt=attempt)
        answer = await self._waits.until(wait)
        if answer.payload["decision"] == "retry":
            return None
        return await self._record(request.step, invocation_id, answer)

    async def _record(self, step: str, invocation_id: str, answer: WaitAnswer) -> Outcome:
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


class EffectCalls:
    """Makes the calls of one execution through the gateway."""

    def __init__(
        self,
        recorder: EffectRecorder,
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
        self._migrates = mismatch == "migrate"
        self._held = held
        self._progress = progress

    async def make(self, request: CallRequest, record: CallRecord) -> Outcome:
        """Make a call until its outcome is final: through approval, retries, and the decision on an unknown outcome."""
        recorder = self._recorder
        await recorder.begin()
        await self._require(request, record)
        if request.undo is not None and request.step not in recorder.history.undos:
            # Before the call is announced, so that no crash can come between the two.
            await recorder.declare(request.step, request.undo if isinstance(request.undo, tuple) else None)
        attempts, last = record.attempts, record.started.invocation_id if record.started else ""
        begun = attempts or record.confirmation or record.turns
        if begun and (settled := await self._taken_up(request, record)) is not None:
            return settled
        while True:
            if recorder.activity.halting:  # what the call waited for came while the worker was on its way out
                await recorder.activity.halt()
            earlier = await self._earlier(record.started) if self._migrates and record.started else None
            call_request = self._request(request, record, attempts + 1, earlier)
            outcome = await self._gateway.call(call_request, recorder.writer, self._progress)
            if outcome.status == "pending" and outcome.confirmation is not None:
                record.confirmation = outcome.confirmation
                await self._approval(request.step, record.confirmation)
                continue
            if outcome.invocation_id is not None:  # announced; otherwise the attempt before is in doubt
                attempts, last = attempts + 1, outcome.invocation_id
            if outcome.uncertain:
                settled = await self._doubts.decided(request, last, attempts)
                if settled is not None:
                    return settled
                record.repeats = ""
            elif outcome.again is not None:
                record.repeats = outcome.again
                await self._before_next(request, record, outcome, attempts)
                await self._require(request, record)
            else:
                await recorder.end()
                return outcome

    async def _require(self, request: CallRequest, record: CallRecord) -> None:
        """Raise LackingError if the job may not go on, the tool is not here, or what it depends on is down.

        An attempt with an unknown outcome needs the tool as well, to be asked about it. But a person may already be
        asked, and if the job was left before, it is a person's turn.
        """
        if self._held is not None and not request.step.startswith(UNDO):  # what was done is undone all the same
            await self._held()
        if not request.needed:
            return
        history, services = self._recorder.history, self._gateway.services
        tool = services.catalog.at_hand(request.tool)
        if tool is not None and not tool.meta.requires:
            return
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

    def _request(
        self, request: CallRequest, record: CallRecord, attempt: int, earlier: EarlierAttempt | None
    ) -> GateRequest:
        caller, branch = self._caller, in_force()
        under = branch is not NONE_IN_FORCE
        return GateRequest(
            tool=request.tool,
            args=request.args,
            step=request.step,
            principal=caller.principal,
            caller=caller.kind,
            recipe=caller.recipe,
            overlays=(*caller.overlays, *branch.overlays) if under else caller.overlays,
            skills=(branch.digests if under else None) or caller.skills.digests,
            sandbox=(*caller.skills.sandbox, *branch.sandbox) if under else caller.skills.sandbox,
            budget=None if request.step.startswith(UNDO) else caller.budget,  # to undo is never too much
            job=caller.facts,
            line=TurnLine(priority=caller.priority, place=record.turn_at),
            conversation=request.conversation,
            provenance=self._recorder.history.provenance,
            timeout_s=request.timeout_s,
            attempt=attempt,
            repeats=record.repeats,
            tries_again=request.attempts is None or attempt < request.attempts,
            confirmation=record.confirmation,
            hash=request.hash,
            encoded=request.encoded,
            barred=request.barred,
            earlier=earlier,
            undoable=request.undo is not None,
        )

    async def _earlier(self, started: ToolInvocationStarted) -> EarlierAttempt | None:
        """The attempt before, to be repeated as it was recorded; its arguments may have to be migrated."""
        try:
            sent = await self._recorder.journal.value(started.args, started.args_blob)
        except PayloadErasedError:
            return None  # the recipe's own arguments are all that is left
        if sent is None:
            return None
        return EarlierAttempt(
            tool_version=started.tool_version,
            schema=started.request_schema_hash,
            idempotency_key=started.idempotency_key,
            args=msgspec.json.decode(sent),
        )

    async def _before_next(self, request: CallRequest, record: CallRecord, outcome: Outcome, attempts: int) -> None:
        """Wait until the call may be made again: for its turn, if a limit, here or there, was why it was not made."""
        if outcome.invocation_id is None or outcome.code in LIMITED:
            await self._waits.turn(request.step, record, outcome)
        else:
            await self._back_off(request, attempts)

    async def _back_off(self, request: CallRequest, failed_attempts: int) -> None:
        """Wait for the next attempt, as the tool says. The job holds no worker."""
        tool = await self._gateway.services.catalog.find(request.tool)
        retry = tool.meta.retry if tool is not None and tool.meta.retry is not None else _RETRY
        due = self._recorder.journal.clock.now() + retry.delay_ms(failed_attempts) * 1_000
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
