"""Waits of a job's branches for something outside of it: timers, signals, questions, decisions on unknown outcomes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.jobs.effects.outcomes import recorded_answer
from remit.jobs.effects.port import Answer, Wait
from remit.jobs.records import ModelRecord
from remit.jobs.state import TURN
from remit.journal import kinds as k
from remit.journal.blobs import pack

if TYPE_CHECKING:
    from remit.gateway.outcome import Outcome
    from remit.jobs.effects.outcomes import Recorder
    from remit.jobs.effects.questions import Questions
    from remit.jobs.inbox import Inbox
    from remit.jobs.records import CallRecord, WaitRecord

_RAREST: Final = 60
"""Times the first wait that a step waits at most before it looks again."""
_Ended = tuple[Answer, k.Payload, tuple[Any, ...]]
"""The answer, the event that records it, and the event's blobs."""


class _Waiting:
    """A wait, and the future its branch sleeps on."""

    __slots__ = ("future", "wait")

    def __init__(self, wait: Wait) -> None:
        self.wait = wait
        self.future: asyncio.Future[_Ended] = asyncio.get_running_loop().create_future()


class Waits:
    """Announces waits, and ends each when its time or its message has come."""

    def __init__(self, recorder: Recorder, inbox: Inbox, questions: Questions, principal: str) -> None:
        self._recorder = recorder
        self._journal = recorder.journal
        self._history = recorder.history
        self._activity = recorder.activity
        self._inbox = inbox
        self._questions = questions
        self._principal = principal
        self._open: list[_Waiting] = []

    async def until(self, wait: Wait) -> Answer:
        """Return what a wait ended with, recorded or new; the wait belongs to the place of another effect."""
        record = self._history.waits.get((wait.step, wait.key))
        if record is not None and record.completed is not None:
            return await recorded_answer(record.completed, self._journal)
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
            due_at=self._recorder.now() + (outcome.again_ms or 0) * times * 1_000,
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

    async def wait(self, wait: Wait, record: WaitRecord | None) -> Answer:
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

    async def poll(self, wait: Wait) -> Answer | None:
        """Return what a wait would end with at once, recorded; None, with nothing recorded, if it would not."""
        await self._inbox.refresh()
        if self._inbox.signal(wait.key, self._history.consumed) is None:
            return None
        return await self.wait(wait, None)

    async def _announce(self, wait: Wait) -> None:
        """Record what is waited for. A question of the recipe is asked in the same transaction: as recorded, or not."""
        waiting = k.JobWaiting(
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
        now = self._recorder.now()
        for waiting in tuple(self._open):
            if waiting.future.done():
                continue
            found = await self._answer(waiting.wait, now)
            if found is not None and not waiting.future.done():
                self._activity.unblock()
                waiting.future.set_result(found)

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
            return Answer(), k.TimerFired(step=wait.step, correlation_key=wait.key, due_at=wait.due_at), ()
        found = await self._message(wait)
        # Whether the time for an answer is over is on record, where everyone sees the same.
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
        if wait.attempt is not None:
            decision = self._inbox.decision(wait.step, wait.attempt)
            if decision is None:
                return None
            encoded = await self._journal.value(decision[1].value, decision[1].value_blob)
            value = msgspec.json.decode(encoded) if encoded is not None else None
            payload = {"decision": decision[1].decision, "value": value, "reason": decision[1].reason}
            return Answer(payload=payload, by=decision[1].by), decision[0]
        return await self._questions.answer(wait)
