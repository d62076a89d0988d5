"""A worker is interrupted at every await of a job; another one goes on, and the end is the same."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final

import msgspec
import pytest

from remit import CallContext, Run, recipe, tool
from remit.clock import SECOND, Clock
from remit.engines.local import LocalEngine
from remit.jobs.state import JobHistory, inbox_of, stream_of
from remit.journal import kinds as k
from remit.journal.event import verify
from remit_testing.clock import START, ManualClock
from tests.simulation.loop import SteeredLoop
from tests.simulation.person import Person
from tests.simulation.process import Process, here
from tests.simulation.shelf import Shelf
from tests.simulation.stepped import Steps, counted

RESULT: Final = [True, 20, "now", 3, 4]
DAY_S: Final = 86_400


async def _effect(name: str, number: int, ctx: CallContext) -> int:
    process = here.get()
    await _work(process.journal.clock)
    process.did(name, ctx.step)
    await _work(process.journal.clock)
    return number


async def _work(clock: Clock) -> None:
    """Take longer than an engine to stop, so that many an interruption comes in the middle of an effect."""
    for _ in range(12):
        await clock.sleep(0)


@tool("bank.charge", level="L1")
async def charge(number: int, ctx: CallContext) -> int:
    """Must never happen twice."""
    return await _effect("bank.charge", number, ctx)


@tool("bank.asked", level="L1")
async def asked(number: int, ctx: CallContext) -> int:
    """A person approves it; must never happen twice."""
    return await _effect("bank.asked", number, ctx)


@tool("bank.look", level="L0")
async def look(number: int, ctx: CallContext) -> int:
    """Reads."""
    return await _effect("bank.look", number, ctx)


@recipe("everything")
async def everything(run: Run) -> list[Any]:
    """A question, a side effect, a timer, a signal, an approval, and two branches."""
    yes = (await run.confirm("Really?")).approved
    charged = (await run.call("bank.charge", {"number": 20})).value
    await run.sleep(60)
    when = await run.wait_signal("go")
    outcomes = await run.gather(run.call("bank.asked", {"number": 3}), run.call("bank.look", {"number": 4}))
    return [yes, charged, when, *(outcome.value for outcome in outcomes)]


class Story:
    """One job, a worker that is interrupted, one that goes on, and a person who answers."""

    def __init__(self, last: int, how: str) -> None:
        """Interrupt after step number `last`, by stopping the engine or by cancelling the task that made the step."""
        self.clock = ManualClock()
        self.shelf = Shelf()
        self.workers: list[Process] = []
        self.job = ""
        self._how = how
        self._interrupted = asyncio.Event()
        self.steps = Steps(last, self._interrupt)

    def run(self) -> None:
        """To the end of the job."""
        loop = SteeredLoop(self.clock.monotonic)
        loop.set_task_factory(self.steps.factory)
        try:
            loop.run(self._main(), self._idle)
        finally:
            loop.end()

    def _idle(self) -> bool:
        """Everything waits: time passes until the next who sleeps wakes up."""
        if not self.clock._sleepers or self.clock.monotonic() > DAY_S:
            return False
        self.clock.advance(self.clock._sleepers[0][0] / SECOND - self.clock.monotonic())
        return True

    def _interrupt(self, task: asyncio.Task[Any]) -> None:
        if self._how == "cancel":
            task.cancel()
        self._interrupted.set()

    def _process(self, name: str) -> Process:
        return Process(name, self.shelf, self.clock, [charge, asked, look], [everything], steered=False)

    async def _main(self) -> None:
        person = Person(self._process("person"), lambda tool: self.effects[tool] > 0)
        self.job = await person.service.jobs.start(everything())
        answering = asyncio.create_task(person.answer(self.job))
        await self._work(answering, self._interrupted)
        if self._how == "stop":
            assert self.shelf.held("job") == [], "who stops gives up what it holds"
        if not answering.done():
            await self._work(answering, asyncio.Event())
        await answering

    async def _work(self, answering: asyncio.Task[None], until: asyncio.Event) -> None:
        """One worker, until it is interrupted or the job has ended."""
        worker = self._process(f"worker {len(self.workers)}")
        self.workers.append(worker)
        engine = LocalEngine(worker.runner, concurrency=4, lease_s=30)
        here.set(worker)
        counted.set(len(self.workers) == 1)
        engine.start()
        counted.set(False)
        interrupted = asyncio.create_task(until.wait())
        await asyncio.wait([answering, interrupted], return_when=asyncio.FIRST_COMPLETED)
        interrupted.cancel()
        await engine.stop()
        await worker.services.catalog.close()
        await worker.journal.close()

    # --- its outcome

    @property
    def effects(self) -> Counter[str]:
        """Side effects of all workers."""
        return Counter(name for worker in self.workers for name in worker.effects)

    @property
    def recorded(self) -> set[str]:
        """The kinds of the job's events; of outcomes, also who resolved it."""
        decoded = [k.decode(event.kind, event.data) for event in self.shelf.events[stream_of(self.job)]]
        return {f"{one.KIND} by {by}" if (by := getattr(one, "decided_by", "")) else one.KIND for one in decoded if one}

    def check(self) -> None:
        """The same end as ever, and nothing left behind."""
        stream = stream_of(self.job)
        head, events = self.shelf.heads[stream], self.shelf.events[stream]
        history = JobHistory(events)
        assert isinstance(history.end, k.JobCompleted), head.state
        assert isinstance(history.end.result, msgspec.Raw)
        assert msgspec.json.decode(history.end.result) == RESULT
        assert verify(stream, events) == (head.seq, head.hash)
        assert self.effects["bank.charge"] == self.effects["bank.asked"] == 1
        assert [one for worker in self.workers for one in worker.stale] == []
        assert self.shelf.held("job") == []
        assert [task for task in self.steps.tasks if not task.done()] == [], "a task was left behind"
        assert len(self.shelf.events[inbox_of(self.job)]) >= 1
        assert self.clock.now() - START < 600 * SECOND, "a lease or two may have had to lapse, not more"


def told(last: int, how: str) -> Story:
    story = Story(last, how)
    story.run()
    story.check()
    return story


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "cancel"])
def test_wherever_a_worker_is_interrupted_the_end_is_the_same(how: str) -> None:
    steps = told(0, how).steps.made
    assert steps > 60
    kinds: Counter[str] = Counter()
    for last in range(1, steps + 1):
        kinds.update(told(last, how).recorded)
    assert kinds["recovery_started"] > 10, "another worker took the job over in the middle of it"
    assert kinds["tool_invocation_finished by bob"] > 0, "some effects were interrupted, and a person had to look"
