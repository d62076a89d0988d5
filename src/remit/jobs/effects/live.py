"""The handler of a worker: calls tools, reads clock and chance, waits, and records everything.

Questions to models, from the first attempt to the final answer: approvals, and attempts that are made again.

Undoes what a job has done: the recorded undo calls, the last step first, each once and through the gateway.

An undo call is an effect of its own, at the step `undo:<step>`. If it fails for good, a person decides: `retry` makes
it again (as `undo:<step>:2`, a new intent with a key of its own), `done` leaves the step as it is, `fail` too, and says
so. The undo of a step whose outcome is unknown waits until that is decided (rule 3).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.canonical import digest
from remit.codes import Code
from remit.errors import VersionError
from remit.gateway.model_request import ModelRequest
from remit.gateway.takings import LimitUnprovenError
from remit.gateway.turns import TurnLine
from remit.jobs.effects.calls import Doubts, EffectCalls, Waits
from remit.jobs.effects.outcomes import recorded_outcome
from remit.jobs.effects.port import CallRequest, Held, ModelQuestion, Wait, WaitAnswer
from remit.jobs.skills import in_force
from remit.jobs.state import UNDO_DECISION, CallRecord, JobHistory, undo_step
from remit.journal.kinds import (
    CommandCommitted,
    CompensationCompleted,
    CompensationStarted,
    ErrorInfo,
    LimitReturned,
    ModelDriftRecorded,
    PatchRecorded,
    RandomRecorded,
    StepCompensated,
    TimeRecorded,
    ToolInvocationStarted,
    UndoDeclared,
    UuidRecorded,
)

if TYPE_CHECKING:
    from remit.gateway.call import Progress
    from remit.gateway.outcome import Outcome
    from remit.gateway.pipeline import Gateway
    from remit.gateway.takings import Takings
    from remit.jobs.caller import JobCaller
    from remit.jobs.effects.calls import EffectRecorder
    from remit.jobs.effects.port import Refuse
    from remit.jobs.effects.questions import Questions
    from remit.jobs.inbox import JobInbox
    from remit.jobs.state import ModelRecord, Value
    from remit.journal.event import Blob, HeadPatch
    from remit.journal.kinds import ChildEnded, ChildStarted, CommandStarted, JobLabeled
    from remit.models.tail import Tails
    from remit.randomness import RandomSource


Relabel = Callable[["JobLabeled"], "HeadPatch"]
"""Takes labels or a title up, and returns the change of the job's head."""
_APPROVAL: Final = "approval"
_log: Final = logging.getLogger("remit.jobs")
_LOST: Final = "the answer did not arrive before its worker ended"


class Asks:
    """Asks models for one execution, through the gateway."""

    def __init__(
        self,
        recorder: EffectRecorder,
        gateway: Gateway,
        waits: Waits,
        questions: Questions,
        *,
        caller: JobCaller,
        tails: Tails,
        mismatch: str,
        held: Held,
    ) -> None:
        self._recorder = recorder
        self._gateway = gateway
        self._waits = waits
        self._questions = questions
        self._caller = caller
        self._tails = tails
        self._mismatch = mismatch
        self._held = held

    async def ask(self, question: ModelQuestion, record: ModelRecord) -> Outcome:
        """Ask until the outcome is final. An answer that did not arrive is asked for again, and stays counted."""
        await self._recorder.begin()
        if self._held is not None:
            await self._held()
        attempts = await self._taken_up(question, record)
        while True:
            if self._recorder.activity.halting:
                await self._recorder.activity.halt()
            request = self._request(question, record, attempts + 1)
            with self._tails.open(self._recorder.writer.stream, question.step) as watch:
                outcome = await self._gateway.ask(request, self._recorder.writer, watch)
            if outcome.status == "pending" and outcome.confirmation is not None:
                record.confirmation = outcome.confirmation
                await self._approval(question.step, outcome.confirmation)
            elif outcome.again is not None:
                await self._waits.turn(question.step, record, outcome)
            elif outcome.again_ms is not None and outcome.status != "blocked":
                attempts += 1
                if outcome.again_model:
                    model = question.model or self._gateway.services.default_model
                    record.turn_to(outcome.again_model, attempts, model)
                await self._back_off(question.step, attempts, outcome.again_ms)
            else:
                await self._recorder.end()
                return outcome

    async def differs(self, started: CommandStarted, recorded: str, current: str) -> VersionError | None:
        """Record that a question would go to another model now; the error, if the mismatch policy refuses that."""
        drift = ModelDriftRecorded(
            step=started.step,
            prompt_hash=started.prompt_hash,
            subject="model",
            recorded=recorded,
            current=current,
            policy=self._mismatch,
        )
        await self._recorder.record(drift)
        if self._mismatch == "warn":
            return None
        reason = f"step {started.step} was recorded with {recorded}, and would now use {current}"
        return VersionError(
            reason, code=Code.MODEL_DRIFT, remedy="Use the recorded model, or set jobs.mismatch to warn."
        )

    async def _taken_up(self, question: ModelQuestion, record: ModelRecord) -> int:
        """Go on where an earlier execution left the question; how many attempts were made."""
        started, committed = record.started, record.committed
        if started is not None and committed is None:
            lost = CommandCommitted(
                step=question.step,
                llm_model=started.llm_model,
                llm_provider=started.llm_provider,
                llm_temperature=started.llm_temperature,
                prompt_hash=started.prompt_hash,
                request_hash=started.request_hash,
                invocation_id=started.invocation_id,
                attempt=started.attempt,
                span_id=started.span_id,
                outcome="failure",
                error=ErrorInfo(code=Code.OUTCOME_UNKNOWN.name, message=_LOST, step=question.step),
                uncertain=True,
                again_ms=0,
            )
            self._recorder.history.spending.committed(lost)
            await self._recorder.record(lost)
            record.follow(lost)
        elif committed is not None and committed.again_ms is not None:
            await self._back_off(question.step, record.attempts, committed.again_ms)
        await self._waits.last_turn(question.step, record)
        if record.confirmation is not None and not record.attempts:
            await self._approval(question.step, record.confirmation)
        return record.attempts

    def _request(self, question: ModelQuestion, record: ModelRecord, attempt: int) -> ModelRequest:
        history = self._recorder.history
        return ModelRequest(
            model=record.model or question.model,
            wanted=record.wanted,
            thread=question.thread,
            step=question.step,
            principal=self._caller.principal,
            tools=question.tools,
            extra=(*question.extra, *question.offered),
            choice=question.choice,
            sampling=question.sampling,
            output=question.output,
            caller=self._caller.kind,
            recipe=self._caller.recipe,
            overlays=(*self._caller.overlays, *in_force().overlays),
            skills=in_force().digests or self._caller.skills.digests,
            attempt=attempt,
            lost=record.lost,
            confirmation=record.confirmation,
            known=history.known,
            spent=history.spending.spent,
            budget=question.budget,
            hash=question.hash,
            job=self._caller.facts,
            line=TurnLine(priority=self._caller.priority, place=record.turn_at),
        )

    async def _back_off(self, step: str, attempts: int, again_ms: int) -> None:
        """Wait for the next attempt; the job holds no worker meanwhile."""
        due = self._recorder.journal.clock.now() + again_ms * 1_000
        if again_ms:
            await self._waits.until(Wait(step=step, type="timer", key=f"retry:{attempts + 1}", due_at=due))

    async def _approval(self, step: str, confirmation: str) -> None:
        due = await self._questions.expires_at(confirmation)
        await self._waits.until(Wait(step=step, type="human", key=confirmation, due_at=due, reason=_APPROVAL))


FindUndo = Callable[[str], Awaitable[UndoDeclared]]
"""Finds the undo of a step that its recipe makes from the step's value. Raises VersionError if the code is not here."""


class Compensation:
    """Undoes steps of one job."""

    def __init__(
        self,
        recorder: EffectRecorder,
        calls: EffectCalls,
        doubts: Doubts,
        waits: Waits,
        *,
        find_undo: FindUndo,
        takings: Takings,
    ) -> None:
        self._recorder = recorder
        self._takings = takings
        self._calls = calls
        self._doubts = doubts
        self._waits = waits
        self._find_undo = find_undo

    async def run(self, step: str = "") -> CompensationCompleted:
        """Undo every step of a compensation; one of a recipe, at a place, begins here and takes what has ended."""
        await self._recorder.begin()
        history = await self._recorder.folded()
        if step in history.compensated:
            return history.compensated[step]
        started = history.compensations.get(step)
        if started is None:
            started = CompensationStarted(step=step, steps=tuple(history.undoable(unknown=False)))
            await self._recorder.record(started)
        for each in started.steps:
            if each not in history.undone:
                undone = await self._undo(history, each)
                await self._give_back(history.calls[each].started, undone)  # before it is recorded: a crash repeats it
                history.undone[each] = undone
                await self._recorder.record(undone)
        done = tuple(each for each in started.steps if history.undone[each].outcome == "compensated")
        completed = CompensationCompleted(
            step=step, undone=done, left=tuple(each for each in started.steps if each not in done)
        )
        await self._recorder.record(completed)
        await self._recorder.end()
        return completed

    async def _give_back(self, started: ToolInvocationStarted | None, undone: StepCompensated) -> None:
        """Have a call that was undone count no more in the limits of rules."""
        if started is None or undone.outcome != "compensated":
            return
        returned = LimitReturned(
            intent=started.idempotency_key,
            stream=self._recorder.writer.stream,
            step=undone.step,
            undo_step=undone.undo_step,
        )
        for stream in started.limits:
            try:
                await self._takings.give_back(stream, returned)
            except LimitUnprovenError as error:
                _log.warning("%s counts %s although it was undone: %s", stream, undone.step, error.message)

    async def _undo(self, history: JobHistory, step: str) -> StepCompensated:
        record, reason = history.calls[step], ""
        if record.unknown and record.started is not None and not await self._happened(record.started):
            error = ErrorInfo(code=Code.STEP_FAILED.name, message="it did not happen")
            return StepCompensated(step=step, undo_step=undo_step(step), outcome="skipped", error=error)
        if record.finished is not None and record.finished.step_outcome == "compensatable_failure":
            reason = f"step {step} failed and may have taken effect: undo it?"
        return await self._until_undone(history, step, reason)

    async def _until_undone(self, history: JobHistory, step: str, reason: str) -> StepCompensated:
        """Call until the step is undone or a person leaves it; `reason` is a question to ask before the first call."""
        attempt, error = 0, ErrorInfo(code=Code.STEP_FAILED.name, message=reason)
        while True:
            attempt += 1
            at = undo_step(step, attempt)
            tool = ""
            if attempt > 1 or not reason:
                tool, outcome = await self._call(history, step, at)
                if outcome.ok:
                    return StepCompensated(step=step, undo_step=at, tool_name=tool)
                code = outcome.code or Code.STEP_FAILED
                error = ErrorInfo(code=code.name, message=outcome.reason, remedy=outcome.remedy, step=at)
                reason = f"step {step} is not undone: {tool}: {outcome.reason}"
            answer = await self._waits.until(Wait(step=at, type="human", key=UNDO_DECISION, reason=reason, attempt=0))
            if answer.payload["decision"] != "retry":
                return _left(step, at, tool, error, answer)

    async def _call(self, history: JobHistory, step: str, at: str) -> tuple[str, Outcome]:
        declared = history.undos[step]
        if not declared.tool_name:
            declared = history.undos[step] = await self._find_undo(step)
        record = history.calls.get(at) or CallRecord()
        if record.ended:
            return declared.tool_name, await recorded_outcome(record, self._recorder.journal)
        encoded = await self._recorder.journal.value(declared.args, declared.args_blob)
        args: dict[str, Any] = msgspec.json.decode(encoded) if encoded is not None else {}
        request = CallRequest(step=at, tool=declared.tool_name, args=args, hash=digest(args), timeout_s=None)
        return declared.tool_name, await self._calls.make(request, record)

    async def _happened(self, started: ToolInvocationStarted) -> bool:
        """Return whether an attempt with an unknown outcome had its effect: its provider or a person says so."""
        encoded = await self._recorder.journal.value(started.args, started.args_blob)
        args: dict[str, Any] = msgspec.json.decode(encoded) if encoded is not None else {}
        request = CallRequest(step=started.step, tool=started.tool_name, args=args, hash="", timeout_s=None)
        outcome = await self._doubts.find_out(request, started)
        return outcome is not None and outcome.ok


def _left(step: str, at: str, tool: str, error: ErrorInfo, answer: WaitAnswer) -> StepCompensated:
    """A person leaves the step as it is: `done` because nothing is to be done any more, `fail` because it failed."""
    failed = answer.payload["decision"] == "fail"
    message = answer.payload["reason"] or error.message
    return StepCompensated(
        step=step,
        undo_step=at,
        tool_name=tool,
        outcome="failed" if failed else "skipped",
        error=msgspec.structs.replace(error, message=message),
        decided_by=answer.by,
    )


class LiveEffects:
    """One part per kind of effect, all with the same recorder; their methods are its own."""

    def __init__(
        self,
        recorder: EffectRecorder,
        *,
        gateway: Gateway,
        inbox: JobInbox,
        questions: Questions,
        chance: RandomSource,
        caller: JobCaller,
        mismatch: str,
        progress: Progress,
        held: Held,
        find_undo: FindUndo,
        refuse: Refuse,
        relabel: Relabel,
    ) -> None:
        self._recorder = recorder
        self._relabel = relabel
        self._refuse = refuse
        self.waits = Waits(recorder, inbox, questions, caller.principal)
        doubts = Doubts(recorder, gateway, self.waits, inbox)
        calls = EffectCalls(
            recorder,
            gateway,
            self.waits,
            doubts,
            questions,
            caller=caller,
            mismatch=mismatch,
            progress=progress,
            held=held,
        )
        asks = Asks(
            recorder,
            gateway,
            self.waits,
            questions,
            caller=caller,
            tails=gateway.services.tails,
            mismatch=mismatch,
            held=held,
        )
        self.call = calls.make
        self.declare = recorder.declare
        self.compensate = Compensation(
            recorder, calls, doubts, self.waits, find_undo=find_undo, takings=gateway.services.takings
        ).run
        self.ask = asks.ask
        self.default_model = gateway.services.default_model
        self.model_differs = asks.differs
        self.value = LiveValues(recorder, chance).read
        self.wait = self.waits.wait
        self.poll = self.waits.poll
        self.progress = progress
        self.now = recorder.journal.clock.now

    async def child(self, started: ChildStarted, blobs: tuple[Blob, ...]) -> ErrorInfo | None:
        """Record that another recipe begins, or that it is refused."""
        await self._recorder.begin()
        refused = await self._refuse(started.name)
        await self._recorder.record(msgspec.structs.replace(started, refused=refused), blobs)
        return refused

    async def child_ended(self, ended: ChildEnded, blobs: tuple[Blob, ...]) -> None:
        """Record how it ended."""
        await self._recorder.record(ended, blobs)

    async def patch(self, name: str) -> None:
        await self._recorder.begin()
        await self._recorder.record(PatchRecorded(name=name))

    async def label(self, labeled: JobLabeled) -> None:
        """Give the job labels or a title, in the write that records it."""
        await self._recorder.begin()
        patch = self._relabel(labeled)
        await self._recorder.record(labeled, patch=patch)
        await self._recorder.end()


class LiveValues:
    """Reads the clock and draws random values."""

    def __init__(self, recorder: EffectRecorder, chance: RandomSource) -> None:
        self._recorder = recorder
        self._chance = chance

    async def read(self, step: str, kind: type[Value]) -> Value:
        """A new value; it counts once it is recorded."""
        await self._recorder.begin()
        value: Value
        if kind is TimeRecorded:
            value = TimeRecorded(step=step, value=self._recorder.journal.clock.now())
        elif kind is RandomRecorded:
            value = RandomRecorded(step=step, value=self._chance.number())
        else:
            value = UuidRecorded(step=step, value=str(self._chance.uuid()))
        await self._recorder.record(value)
        await self._recorder.end()
        return value
