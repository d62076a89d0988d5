"""Jobs on four servers, one of which is down for a while."""

from __future__ import annotations

import asyncio

import pytest

from remit import Remit, Run, recipe
from remit.codes import Code
from remit.errors import JournalError
from remit.journal.sharded.placement import shard_of
from tests.journal.sharded.conftest import Cluster
from tests.patience import PATIENCE_S

DOWN = 3
JOBS = 16
TRIAGE = {"type": "TRIAGE", "event": {"type": "message", "thread_id": "t1", "content": "pay"}}


@recipe("patient")
async def patient(run: Run, number: int) -> int:
    await run.wait_signal("go")
    return number


async def test_jobs_of_other_shards_end_while_one_is_down_and_its_own_after(cluster: Cluster) -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        Remit(journal=" ".join(cluster.urls), recipes=[patient]) as remit,
    ):
        jobs = remit.service.jobs
        names = {await jobs.start(patient(number=number)): number for number in range(JOBS)}
        lost = [job for job in names if shard_of(f"job/{job}", 4) == DOWN]
        kept = [job for job in names if job not in lost]
        assert kept
        assert lost
        await jobs.settled(names)
        cluster.servers[DOWN].stop()
        with pytest.raises(JournalError) as refused:
            await jobs.signal(lost[0], "go")
        assert refused.value.code is Code.JOURNAL_SHARD_UNAVAILABLE
        for job in kept:
            await jobs.signal(job, "go")
        assert {(await remit.ended(job)).state for job in kept} == {"completed"}
        assert [await jobs.result(job) for job in kept] == [names[job] for job in kept]
        assert sorted(row.job for row in await jobs.rows(limit=JOBS)) == sorted(kept)
        assert remit.service.health.missing_shards()
        for _ in range(JOBS):  # new ones go to the other shards
            await jobs.start(patient(number=JOBS))
            await remit.service.sessions.open("http")
            await remit.service.tickets.create(TRIAGE)

        cluster.servers[DOWN].start()
        mark, journal = 0, remit.runtime.journal
        while journal.missing():
            mark = await journal.heads_changed(mark)
        for job in lost:
            await jobs.signal(job, "go")
        assert {(await remit.ended(job)).state for job in lost} == {"completed"}
        assert [await jobs.result(job) for job in lost] == [names[job] for job in lost]
        assert [await journal.verify(f"job/{job}") > 0 for job in names] == [True] * JOBS
