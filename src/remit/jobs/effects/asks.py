"""Questions to models, from the first attempt to the final answer: approvals, and attempts that are made again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.errors import VersionError
from remit.gateway.asking import ModelRequest
from remit.gateway.turns import Line
from remit.jobs.effects.port import Held, Question, Wait
from remit.jobs.skills import in_force
from remit.journal.kinds import CommandCommitted, ErrorInfo, ModelDriftRecorded

if TYPE_CHECKING:
    from remit.gateway.outcome import Outcome
    from remit.gateway.pipeline import Gateway
    from remit.jobs.caller import JobCaller
    from remit.jobs.effects.questions import Questions
    from remit.jobs.effects.recorder import Recorder
    from remit.jobs.effects.waits import Waits
    from remit.jobs.records import ModelRecord
    from remit.journal.kinds import CommandStarted
    from remit.models.tail import Tails

_APPROVAL: Final = "approval"
_LOST: Final = "the answer did not arrive before its worker ended"


class Asks:
    """Asks models for one execution, through the gateway."""

    def __init__(
        self,
        recorder: Recorder,
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

    async def ask(self, question: Question, record: ModelRecord) -> Outcome:
        """Ask until the outcome is final. An answer that did not arrive is asked for again, and stays counted."""
        await self._recorder.begin()
        await self._held()
        attempts, lost = await self._taken_up(question, record)
        while True:
            if self._recorder.activity.halting:
                await self._recorder.activity.halt()
            request = self._request(question, record, attempts + 1, lost)
            with self._tails.open(self._recorder.writer.stream, question.step) as watch:
                outcome = await self._gateway.ask(request, self._recorder.writer, watch)
            if outcome.status == "pending" and outcome.confirmation is not None:
                record.confirmation = outcome.confirmation
                await self._approval(question.step, outcome.confirmation)
            elif outcome.again is not None:
                await self._waits.turn(question.step, record, outcome)
            elif outcome.again_ms is not None and outcome.status != "blocked":
                attempts += 1
                await self._back_off(question.step, attempts, outcome.again_ms)
            else:
                await self._recorder.end()
                return outcome

    async def differs(self, started: CommandStarted, current: str) -> VersionError | None:
        """Record that a question would go to another model now; the error, if the mismatch policy refuses that."""
        recorded = f"{started.llm_provider}/{started.llm_model}"
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
        why = f"step {started.step} was recorded with {recorded}, and would now use {current}"
        return VersionError(why, code=Code.MODEL_DRIFT, remedy="Use the recorded model, or set jobs.mismatch to warn.")

    async def _taken_up(self, question: Question, record: ModelRecord) -> tuple[int, int]:
        """Go on where an earlier execution left the question; how many attempts were made, and were lost of these."""
        started, committed, was_lost = record.started, record.committed, 0
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
            was_lost = 1
        elif committed is not None and committed.again_ms is not None:
            await self._back_off(question.step, record.attempts, committed.again_ms)
        await self._waits.last_turn(question.step, record)
        if record.confirmation is not None and not record.attempts:
            await self._approval(question.step, record.confirmation)
        return record.attempts, record.lost + was_lost

    def _request(self, question: Question, record: ModelRecord, attempt: int, lost: int) -> ModelRequest:
        history = self._recorder.history
        return ModelRequest(
            model=question.model,
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
            lost=lost,
            confirmation=record.confirmation,
            known=history.known,
            spent=history.spending.spent,
            budget=question.budget,
            hash=question.hash,
            job=self._caller.facts,
            line=Line(priority=self._caller.priority, place=record.turn_at),
        )

    async def _back_off(self, step: str, attempts: int, again_ms: int) -> None:
        """Wait for the next attempt; the job holds no worker meanwhile."""
        due = self._recorder.now() + again_ms * 1_000
        if again_ms:
            await self._waits.until(Wait(step=step, type="timer", key=f"retry:{attempts + 1}", due_at=due))

    async def _approval(self, step: str, confirmation: str) -> None:
        due = await self._questions.expires_at(confirmation)
        await self._waits.until(Wait(step=step, type="human", key=confirmation, due_at=due, reason=_APPROVAL))
