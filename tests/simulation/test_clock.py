"""Clocks that jump, each for itself: leases lapse too early or too late, timers wait for their time of day, no more.

Two workers share a job. Whenever everything waits, time passes to the next who wakes up; now and then somebody sets one
of the clocks, forwards or back.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, Final

import msgspec
import pytest

from remit import CallContext, Run, recipe, tool
from remit.clock import SECOND
from remit.engines.local import LocalEngine
from remit.jobs.state import JobHistory, stream_of
from remit.journal import kinds as k
from remit.journal.event import verify
from remit_testing.clock import ManualClock
from tests.jumping import JumpingClock
from tests.simulation.loop import SteeredLoop
from tests.simulation.person import Person
from tests.simulation.process import Process, here
from tests.simulation.shelf import Shelf

JUMPS_S: Final = (-7_200, -3_600, -40, -1, 1, 40, 3_600, 7_200)
RESULT: Final = [20, "nobody", "now", 3]
ENOUGH_S: Final = 30 * 86_400


async def _effect(name: str, number: int, ctx: CallContext) -> int:
    process = here.get()
    process.did(name, ctx.step)
    await process.journal.clock.sleep(5)
    return number


@tool("bank.charge", level="L1")
async def charge(number: int, ctx: CallContext) -> int:
    """Takes a while; must never happen twice."""
    return await _effect("bank.charge", number, ctx)


@tool("bank.pay", level="L1")
async def pay(number: int, ctx: CallContext) -> int:
    """The same."""
    return await _effect("bank.pay", number, ctx)


@recipe("timed")
async def timed(run: Run) -> list[Any]:
    """Timers long and short, alone and beside a call, and a signal that never comes."""
    await run.sleep(50)
    charged = (await run.call("bank.charge", {"number": 20})).value
    try:
        said = await run.wait_signal("never", timeout=100)
    except TimeoutError:
        said = "nobody"
    when = await run.wait_signal("go", timeout=10**6)
    paid, _ = await run.gather(_paid(run), run.sleep(0.1))
    await run.sleep(4_000)
    return [charged, said, when, paid]


async def _paid(run: Run) -> Any:
    return (await run.call("bank.pay", {"number": 3})).value


class Jumps:
    """One job, two workers, three clocks."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._true = ManualClock()
        self._clocks = [JumpingClock(self._true) for _ in range(3)]
        self.jumps = 40
        self.shelf = Shelf()
        self.workers: list[Process] = []
        self.job = ""

    def run(self) -> None:
        """To the end of the job."""
        loop = SteeredLoop(self._true.monotonic)
        try:
            loop.run(self._main(), self._idle)
        finally:
            loop.end()

    def _idle(self) -> bool:
        if not self._true._sleepers or self._true.monotonic() > ENOUGH_S:
            return False
        if self.jumps and self._chance.random() < 0.3:
            self.jumps -= 1
            self._chance.choice(self._clocks).jump(self._chance.choice(JUMPS_S))
        self._true.advance(self._true._sleepers[0][0] / SECOND - self._true.monotonic())
        return True

    async def _main(self) -> None:
        processes = [
            Process(name, self.shelf, clock, [charge, pay], [timed], steered=False)
            for name, clock in zip(("person", "one", "other"), self._clocks, strict=True)
        ]
        person = Person(processes[0], lambda name: self.effects[name] > 0)
        self.job = await person.service.jobs.start(timed())
        self.workers = processes[1:]
        engines = []
        for worker in self.workers:
            here.set(worker)
            engines.append(LocalEngine(worker.runner, concurrency=4, lease_s=30))
            engines[-1].start()
        await person.answer(self.job)
        for engine in engines:
            assert engine.failure is None
            await engine.stop()

    @property
    def effects(self) -> Counter[str]:
        """Side effects of both workers."""
        return Counter(name for worker in self.workers for name in worker.effects)

    def check(self) -> None:
        """The same end as ever."""
        head, events = self.shelf.heads[stream_of(self.job)], self.shelf.events[stream_of(self.job)]
        history = JobHistory(events)
        assert isinstance(history.end, k.JobCompleted), head.state
        assert isinstance(history.end.result, msgspec.Raw)
        assert msgspec.json.decode(history.end.result) == RESULT
        assert self.effects == {"bank.charge": 1, "bank.pay": 1}
        assert [event.seq for event in events] == list(range(1, head.seq + 1))
        assert verify(head.stream, events) == (head.seq, head.hash)
        assert all(record.completed is not None for record in history.waits.values()), "no timer was lost"
        assert [one for worker in self.workers for one in worker.stale] == []


@pytest.mark.parametrize("seed", range(20))
def test_however_the_clocks_jump_the_end_is_the_same(seed: int) -> None:
    story = Jumps(seed)
    story.run()
    story.check()
    assert story.jumps < 40
