from __future__ import annotations

import asyncio

import pytest

from remit import Options, Run, recipe
from remit.errors import NotFoundError
from tests.opened import OpenRemit

pytestmark = pytest.mark.slow


@recipe("ends")
async def ends(run: Run) -> str:
    """End after a moment."""
    await run.sleep(0.3)
    return "done"


@recipe("asks")
async def asks(run: Run) -> str:
    """Wait for a signal."""
    return str(await run.wait_signal("go"))


async def test_jobs_are_settled_once_each_has_ended_or_waits_for_somebody(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[ends, asks]) as worker, remit_in(recipes=[ends, asks], work=False) as remit:
        jobs = [(await worker.start(ends())).id for _ in range(3)] + [(await worker.start(asks())).id]
        rows = await remit.settled(*jobs)
        assert sorted((row.name, row.state) for row in rows) == [("asks", "waiting"), *[("ends", "completed")] * 3]
        assert [row.job for row in rows] == sorted(jobs, reverse=True)


async def test_jobs_of_a_label_are_settled_whatever_the_others_do(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[ends, asks]) as remit:
        ours = (await remit.start(ends(), Options(labels={"team": "ours"}))).id
        async with remit_in(recipes=[ends], work=False) as other:
            _ = await other.start(ends(), Options(delay_s=3_600, labels={"team": "theirs"}))
        (row,) = await remit.settled(labels={"team": "ours"})
        assert (row.job, row.state) == (ours, "completed")


async def test_a_job_that_nobody_works_on_is_not_settled(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[ends], work=False) as remit:
        job = await remit.start(ends())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await remit.settled(job.id)


async def test_a_job_that_does_not_exist_is_not_waited_for(remit_in: OpenRemit) -> None:
    async with remit_in(work=False) as remit:
        with pytest.raises(NotFoundError):
            await remit.settled("job_none")


async def test_many_jobs_are_replayed_and_those_that_cannot_be_say_why(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[ends, asks]) as remit:
        first = await remit.start(ends())
        await first
        between = remit.runtime.journal.clock.now()
        second = await remit.start(asks())
        await remit.settled(second.id)
    async with remit_in(recipes=[ends], work=False) as remit:
        found = {one.job: one async for one in remit.service.jobs.replays()}
        report = found[first.id].report
        assert report is not None
        assert report.verdict == "same"
        assert (found[second.id].report, found[second.id].code) == (None, "UNKNOWN_RECIPE")
        assert [one.job async for one in remit.service.jobs.replays(("completed",))] == [first.id]
        assert [one.job async for one in remit.service.jobs.replays(since=between)] == [second.id]
