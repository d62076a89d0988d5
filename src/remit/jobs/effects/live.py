"""The handler of a worker: calls tools, reads clock and chance, waits, and records everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remit.jobs.effects.asks import Asks
from remit.jobs.effects.calls import Calls
from remit.jobs.effects.compensation import Compensation, FindUndo
from remit.jobs.effects.doubt import Doubts
from remit.jobs.effects.waits import Waits
from remit.journal.kinds import PatchRecorded, RandomRecorded, TimeRecorded, UuidRecorded

if TYPE_CHECKING:
    from remit.gateway.call import Progress
    from remit.gateway.pipeline import Gateway
    from remit.jobs.caller import JobCaller
    from remit.jobs.effects.port import Held, Refuse
    from remit.jobs.effects.questions import Questions
    from remit.jobs.effects.recorder import Recorder
    from remit.jobs.inbox import Inbox
    from remit.jobs.state import Value
    from remit.journal.event import Blob
    from remit.journal.kinds import ChildEnded, ChildStarted, ErrorInfo
    from remit.randomness import RandomSource


class LiveEffects:
    """One part per kind of effect, all with the same recorder; their methods are its own."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        gateway: Gateway,
        inbox: Inbox,
        questions: Questions,
        chance: RandomSource,
        caller: JobCaller,
        mismatch: str,
        progress: Progress,
        held: Held,
        find_undo: FindUndo,
        refuse: Refuse,
    ) -> None:
        self._recorder = recorder
        self._refuse = refuse
        self.waits = Waits(recorder, inbox, questions, caller.principal)
        doubts = Doubts(recorder, gateway, self.waits, inbox)
        calls = Calls(
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
        self.compensate = Compensation(recorder, calls, doubts, self.waits, find_undo).run
        self.ask = asks.ask
        self.default_model = gateway.services.default_model
        self.model_differs = asks.differs
        self.value = Values(recorder, chance).read
        self.wait = self.waits.wait
        self.poll = self.waits.poll
        self.progress = progress
        self.now = recorder.now

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
        """Record that the recipe takes the new way of a change."""
        await self._recorder.begin()
        await self._recorder.record(PatchRecorded(name=name))


class Values:
    """Reads the clock and draws random values."""

    def __init__(self, recorder: Recorder, chance: RandomSource) -> None:
        self._recorder = recorder
        self._chance = chance

    async def read(self, step: str, kind: type[Value]) -> Value:
        """A new value; it counts once it is recorded."""
        await self._recorder.begin()
        found: Value
        if kind is TimeRecorded:
            found = TimeRecorded(step=step, value=self._recorder.now())
        elif kind is RandomRecorded:
            found = RandomRecorded(step=step, value=self._chance.number())
        else:
            found = UuidRecorded(step=step, value=str(self._chance.uuid()))
        await self._recorder.record(found)
        await self._recorder.end()
        return found
