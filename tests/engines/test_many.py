"""Very many parked jobs that are woken in the same moment: each of them ends."""

from __future__ import annotations

import asyncio
import os

import pytest

from remit import Remit, Run, recipe
from remit.journal.event import HeadQuery
from remit_testing.clock import ManualClock
from tests.opened import OpenRemit

pytestmark = pytest.mark.slow
MANY = int(os.environ.get("REMIT_TEST_JOBS", "2000"))
WAITING = HeadQuery(kind="job", states=("pending", "running"), limit=1)
OPEN = HeadQuery(kind="job", states=("pending", "running", "waiting"), limit=1)


@recipe("listens")
async def listens(run: Run, number: int) -> int:
    """Wait for a signal."""
    return int(await run.wait_signal("go")) + number


@recipe("sleeps")
async def sleeps(run: Run, number: int) -> int:
    """Wait for a timer."""
    await run.sleep(3_600)
    return number


async def none_left(remit: Remit, query: HeadQuery) -> None:
    """Wait until no head answers the query."""
    mark = 0
    while await remit.runtime.journal.heads(query):
        mark = await remit.runtime.journal.changed(mark)


async def test_signals_and_timers_of_all_of_them_at_once(remit_in: OpenRemit) -> None:
    clock = ManualClock()
    async with remit_in(recipes=[listens, sleeps], flags={"journal.url": ":memory:"}, clock=clock) as remit:
        started = [await remit.start((listens, sleeps)[number % 2](number)) for number in range(MANY)]
        ticking = asyncio.create_task(tick(clock))
        await none_left(remit, WAITING)
        clock.advance(3_600)
        await asyncio.gather(*(job.signal("go", 1) for job in started[::2]))
        await none_left(remit, OPEN)
        ticking.cancel()
        results = [await remit.service.jobs.result(job.id) for job in started]
        assert results == [number if number % 2 else number + 1 for number in range(MANY)]


async def tick(clock: ManualClock) -> None:
    """Let a little time pass whenever a task sleeps. Between, leave the processor to the journal's threads."""
    while True:
        await clock.until_asleep()
        clock.advance(0.01)
        await asyncio.sleep(0.001)  # noqa: TID251 - a loop that is never idle starves them
