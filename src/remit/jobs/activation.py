"""One worker's pass over a job: the live world of its effects, and the waits that end the pass.

While every branch waits, nothing happens that a process would be needed for: the pass is over, the job is *parked*,
and whoever wakes it runs the recipe again from the journal. A pass ends by return, error, park, cancellation, or
because the worker lost the stream.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import RemitError
from remit.gateway.call import Progress, Request
from remit.gateway.outcome import Outcome
from remit.jobs.effects import Answer, Asked, Effects, Wait, failed_outcome
from remit.jobs.state import CallRecord, History, Value, WaitRecord, doubt_of
from remit.jobs.waiting import Waiting
from remit.journal import kinds as k
from remit.journal.blobs import pack
from remit.redact import preview_of
from remit.tools.meta import Retry

if TYPE_CHECKING:
    from remit.chance import Chance
    from remit.gateway.pipeline import Gateway
    from remit.jobs.inbox import Inbox
    from remit.jobs.questions import Questions
    from remit.journal.journal import Journal
    from remit.journal.writer import StreamWriter

_RETRY: Final = Retry()
"""How long is waited where the tool does not say so any more."""
_APPROVAL: Final = "approval"
"""Why a call waits for a confirmation."""


class Activation:
    """The live world: calls tools, reads clock and chance, records everything, and keeps what is waited for."""

    def __init__(
        self,
        *,
        journal: Journal,
        gateway: Gateway,
        writer: StreamWriter,
        history: History,
        inbox: Inbox,
        questions: Questions,
        principal: str,
        recipe: str,
        report: Progress,
        chance: Chance,
        step_by_step: bool = False,
    ) -> None:
        """Go on with a job where its history ends. `step_by_step` ends the pass after each new effect (for tests)."""
        self._journal = journal
        self._gateway = gateway
        self._writer = writer
        self._history = history
        self._inbox = inbox
        self._principal = principal
        self._recipe = recipe
        self._report = report
        self._chance = chance
        self._step_by_step = step_by_step
        self._questions = questions
        self._replayed = len(history.places)
        self.effects = Effects(history, journal, self)
        self.waiting: list[Waiting] = []
        self.halted = False
        """A branch stopped on purpose, before a new effect or (always-replay) after one."""
        self.halting = False
        """No new effect begins; those under way end."""
        self.active = 1
        """Branches that do not wait."""
        self.attention = asyncio.Event()
        """Something may have changed for the pass as a whole."""

    # --- the world

    def now(self) -> int:
        """Microseconds since the Unix epoch."""
        return self._journal.clock.now()

    def block(self) -> None:
        """The running branch waits now."""
        self.active -= 1
        if self.active == 0:
            self.attention.set()

    def unblock(self) -> None:
        """A waiting branch goes on."""
        self.active += 1

    def progress(self, done: float | None, total: float | None, message: str) -> None:
        """Tell whoever watches this process."""
        self._report(done, total, message)

    async def value(self, step: str, kind: type[Value]) -> Value:
        """Read the clock or draw a random value; it counts once recorded."""
        await self._begin()
        found: Value
        if kind is k.TimeRecorded:
            found = k.TimeRecorded(step=step, value=self.now())
        elif kind is k.RandomRecorded:
            found = k.RandomRecorded(step=step, value=self._chance.number())
        else:
            found = k.UuidRecorded(step=step, value=str(self._chance.uuid()))
        await self._record(found)
        await self._end()
        return found

    async def child(self, started: k.ChildStarted) -> None:
        """Record that another recipe begins."""
        await self._begin()
        await self._record(started)

    async def wait(self, wait: Wait, record: WaitRecord | None) -> Answer:
        """Wait until what is waited for comes; the pass may end before."""
        await self._begin()
        if record is not None:
            wait = msgspec.structs.replace(wait, due_at=record.waiting.due_at)
        else:
            await self._announce(wait)
        answer, event, blobs = await self._waited(wait)
        await self._journal.append(self._writer, event, synced=False, blobs=blobs)
        await self._end()
        return answer

    async def call(self, asked: Asked, record: CallRecord) -> Outcome:
        """Make a call until its outcome is final: through approval, retries, and the decision on what nobody knows."""
        await self._begin()
        made, last = record.attempts, record.started.invocation_id if record.started else ""
        if made or record.confirmation:
            settled = await self._taken_up(asked, record)
            if settled is not None:
                return settled
        while True:
            if self.halting:  # what the call waited for came while the worker was on its way out
                await self._halt()
            outcome = await self._gateway.call(self._request(asked, record, made + 1), self._writer, self.progress)
            if outcome.status == "pending" and outcome.confirmation is not None:
                record.confirmation = outcome.confirmation
                await self._approval(asked.step, record.confirmation)
                continue
            if outcome.invocation_id is not None:  # announced; else what is in doubt is the attempt before
                made, last = made + 1, outcome.invocation_id
            if outcome.uncertain:
                settled = await self._decided(asked, last, made)
                if settled is not None:
                    return settled
                record.repeats = ""
            elif outcome.again is not None:
                record.repeats = outcome.again
                await self._back_off(asked, made)
            else:
                await self._end()
                return outcome

    # --- calls

    async def _taken_up(self, asked: Asked, record: CallRecord) -> Outcome | None:
        """Go on where an earlier pass left a call; None: it is to be made, or made again."""
        started = record.started
        if started is not None and (record.unknown or self._is_decided(started)):
            settled = await self._settle_unknown(asked, record, started)
            if settled is not None:
                return settled
        elif started is not None and record.finished is not None:
            record.repeats = _repeats(started)
            await self._back_off(asked, record.attempts)
        for asked_for in self._unanswered(asked.step) if record.confirmation else ():
            await self._approval(asked.step, asked_for)
        return None

    def _request(self, asked: Asked, record: CallRecord, attempt: int) -> Request:
        return Request(
            tool=asked.tool,
            args=asked.args,
            step=asked.step,
            principal=self._principal,
            caller="job",
            recipe=self._recipe,
            timeout_s=asked.timeout_s,
            attempt=attempt,
            repeats=record.repeats,
            tries_again=True,
            confirmation=record.confirmation,
            hash=asked.hash,
        )

    async def _back_off(self, asked: Asked, failed_attempts: int) -> None:
        tool = await self._gateway.services.catalog.find(asked.tool)
        retry = tool.meta.retry if tool is not None and tool.meta.retry is not None else _RETRY
        due = self.now() + retry.delay_ms(failed_attempts) * 1_000
        await self.effects.waited(Wait(step=asked.step, type="timer", key=f"retry:{failed_attempts + 1}", due_at=due))

    async def _approval(self, step: str, confirmation: str) -> None:
        due = await self._questions.expires_at(confirmation)
        await self.effects.waited(Wait(step=step, type="human", key=confirmation, due_at=due, reason=_APPROVAL))

    def _unanswered(self, step: str) -> list[str]:
        """Approvals that an earlier pass left the step waiting for."""
        return [
            key
            for (place, key), record in self._history.waits.items()
            if place == step and record.completed is None and record.waiting.reason == _APPROVAL
        ]

    async def _settle_unknown(
        self, asked: Asked, record: CallRecord, started: k.ToolInvocationStarted
    ) -> Outcome | None:
        """What came of an attempt nobody saw the end of; None: it may be made again."""
        if not self._is_decided(started):
            verdict = await self._gateway.reconcile(started, self._writer)
            if isinstance(verdict, Outcome):
                return verdict
            await self._inbox.refresh()  # a person may have been faster
            if not self._is_decided(started) and (verdict == "never" or started.repeatable):
                record.repeats = _repeats(started) if verdict != "never" else ""
                return None
        return await self._decided(asked, started.invocation_id, started.attempt)

    def _is_decided(self, started: k.ToolInvocationStarted) -> bool:
        """Whether a person has said what came of an attempt: that counts, whatever its provider says afterwards."""
        asked_for = self._history.waits.get((started.step, doubt_of(started.attempt)))
        if asked_for is not None and asked_for.completed is not None:
            return True
        return self._inbox.decision(started.step, started.attempt) is not None

    async def _decided(self, asked: Asked, invocation_id: str, attempt: int) -> Outcome | None:
        """Park until a person says what came of an uncertain attempt; None: make it again."""
        why = f"{asked.tool} {preview_of(asked.args)} may have happened; nobody knows"
        wait = Wait(step=asked.step, type="human", key=doubt_of(attempt), reason=why, attempt=attempt)
        answer = await self.effects.waited(wait)
        decision = str(answer.payload["decision"])
        if decision == "retry":
            return None
        done = decision == "done"
        packed = pack(msgspec.json.encode(answer.payload["value"])) if done else None
        error = k.ErrorInfo(
            code=Code.OUTCOME_UNKNOWN.name, message=answer.payload["reason"] or f"{answer.by} says it failed"
        )
        finished = k.ToolInvocationFinished(
            invocation_id=invocation_id,
            step=asked.step,
            outcome="success" if done else "failure",
            step_outcome="side_effect_committed" if done else "permanent_failure",
            result=packed.inline if packed else msgspec.UNSET,
            result_blob=packed.ref if packed else msgspec.UNSET,
            error=None if done else error,
            decided_by=answer.by,
        )
        await self._journal.append(self._writer, finished, synced=False, blobs=packed.blobs if packed else ())
        await self._end()
        if done:
            return Outcome(status="ok", value=answer.payload["value"], invocation_id=invocation_id)
        return failed_outcome(error, invocation_id, 0)

    # --- waits

    async def _announce(self, wait: Wait) -> None:
        """Record what is waited for. A question of the recipe is asked in the same transaction: as recorded, or not."""
        waiting = k.JobWaiting(
            step=wait.step,
            wait_type=wait.type,
            correlation_key=wait.key,
            due_at=wait.due_at,
            reason=wait.reason,
            request_hash=wait.request_hash,
        )
        if wait.question is None:
            await self._record(waiting)
        else:
            question, blobs = self._questions.draft(wait, wait.question, self._principal)
            await self._journal.commit(self._writer.draft(waiting), question, synced=True, blobs=blobs)

    async def _waited(self, wait: Wait) -> tuple[Answer, k.Payload, tuple[Any, ...]]:
        waiting = Waiting(wait)
        self.waiting.append(waiting)
        self.attention.set()
        self.block()
        try:
            return await waiting.future
        finally:
            self.waiting.remove(waiting)
            if waiting.future.cancelled():  # else whoever answered has let the branch go on
                self.unblock()

    async def look(self) -> None:
        """Let those waits end whose time or message has come."""
        now = self.now()
        for waiting in tuple(self.waiting):
            if waiting.future.done():
                continue
            found = await self._answer(waiting.wait, now)
            if found is not None and not waiting.future.done():
                self.unblock()
                waiting.future.set_result(found)

    async def _answer(self, wait: Wait, now: int) -> tuple[Answer, k.Payload, tuple[Any, ...]] | None:
        due = wait.due_at is not None and now >= wait.due_at
        if wait.type == "timer":
            if not due or wait.due_at is None:
                return None
            return Answer(), k.TimerFired(step=wait.step, correlation_key=wait.key, due_at=wait.due_at), ()
        found = await self._message(wait)
        # Whether the time for an answer is over is on record, where everybody sees the same.
        if found is None and (not due or wait.type == "human"):
            return None
        answer, inbox_seq = found if found is not None else (Answer(timed_out=True), 0)
        packed = pack(msgspec.json.encode(answer.payload)) if found is not None else None
        if inbox_seq:
            self._history.consumed.add(inbox_seq)
        event = k.WaitCompleted(
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

    async def _message(self, wait: Wait) -> tuple[Answer, int] | None:
        if wait.type == "signal":
            signal = self._inbox.signal(wait.key, self._history.consumed)
            if signal is None:
                return None
            encoded = await self._journal.value(signal[1].payload, signal[1].payload_blob)
            payload = msgspec.json.decode(encoded) if encoded is not None else None
            return Answer(payload=payload, by=signal[1].by), signal[0]
        if wait.attempt:
            decision = self._inbox.decision(wait.step, wait.attempt)
            if decision is None:
                return None
            encoded = await self._journal.value(decision[1].value, decision[1].value_blob)
            value = msgspec.json.decode(encoded) if encoded is not None else None
            payload = {"decision": decision[1].decision, "value": value, "reason": decision[1].reason}
            return Answer(payload=payload, by=decision[1].by), decision[0]
        return await self._questions.answer(wait)

    @property
    def next_due(self) -> int | None:
        """When the first wait ends by itself."""
        return min((w.wait.due_at for w in self.waiting if w.wait.due_at is not None), default=None)

    # --- recording

    async def _begin(self) -> None:
        """Something new starts: whatever was recorded has been replayed by now."""
        if self.halting:
            await self._halt()
        if self._history.recovering:
            self._history.recovering = False
            await self._record(k.RecoveryCompleted(replayed_steps=self._replayed))

    async def _record(self, payload: k.Payload) -> None:
        try:
            await self._journal.append(self._writer, payload, synced=False)
        except RemitError as error:
            raise self.effects.fail(error) from error

    async def _end(self) -> None:
        if self._step_by_step:
            await self._halt()

    async def _halt(self) -> None:
        """Stand still until the pass ends."""
        self.halted = True
        self.block()
        await asyncio.get_running_loop().create_future()


def _repeats(started: k.ToolInvocationStarted) -> str:
    """Who alone may repeat an attempt that may have happened; empty: anybody, for it changes nothing."""
    return started.provider_id if started.side_effect != "read" else ""
