"""Quotas on open jobs, and the bound of the queue: one more is refused, and says which, and when to try again."""

from __future__ import annotations

import asyncio

import pytest

from remit import Run, recipe
from remit.codes import Code
from remit.errors import BusyError
from remit.service.options import Options
from tests.journal.storages import PostgresStorage
from tests.opened import OpenRemit, until, until_waiting


@recipe("listens")
async def listens(run: Run, name: str = "") -> str:
    """Wait for a signal."""
    await run.wait_signal("go")
    return name


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return ":memory:"
    storage: PostgresStorage = request.getfixturevalue("storage")
    return storage.url


@pytest.mark.parametrize(
    ("quota", "other", "whose"),
    [
        ("principal", Options(principal="bob", labels={"team": "red"}), "principal ann"),
        ("label:team", Options(principal="ann", labels={"team": "blue"}), "team red"),
        ("label:team", Options(principal="ann"), "team red"),
    ],
)
async def test_one_job_more_than_a_quota_is_refused_until_one_has_ended(
    remit_in: OpenRemit, url: str, quota: str, other: Options, whose: str
) -> None:
    ann = Options(principal="ann", labels={"team": "red"})
    flags = {"journal.url": url, "jobs.quotas": f'{{"{quota}": 3}}'}
    async with remit_in(recipes=[listens], flags=flags) as remit:
        jobs = [await remit.start(listens(), ann) for _ in range(3)]
        with pytest.raises(BusyError, match=f"{whose} has 3 open jobs") as refusal:
            _ = await remit.start(listens(), ann)
        assert (refusal.value.code, refusal.value.again_s) == (Code.JOB_QUOTA_EXCEEDED, 5)
        assert "cancel" in refusal.value.remedy
        _ = await remit.start(listens(), other)
        await jobs[0].cancel()
        _ = await until(remit, jobs[0].id, lambda row: row.state == "cancelled")
        _ = await remit.start(listens(), ann)
        with pytest.raises(BusyError):
            _ = await remit.start(listens(), ann)


async def test_jobs_that_are_started_at_once_do_not_exceed_a_quota(remit_in: OpenRemit, url: str) -> None:
    flags = {"journal.url": url, "jobs.quotas": '{"recipe": 20}'}
    async with remit_in(recipes=[listens], flags=flags) as remit:
        starts = [remit.service.jobs.start(listens(str(number))) for number in range(30)]
        ends = await asyncio.gather(*starts, return_exceptions=True)
        assert len([end for end in ends if isinstance(end, str)]) == 20
        refusals = [end.code for end in ends if isinstance(end, BusyError)]
        assert refusals == [Code.JOB_QUOTA_EXCEEDED] * 10
        assert len(await remit.jobs(limit=100)) == 20


async def test_one_job_more_than_the_queue_takes_is_refused(remit_in: OpenRemit, url: str) -> None:
    go = asyncio.Event()

    @recipe("busy")
    async def busy(run: Run) -> None:
        await go.wait()

    flags = {"journal.url": url, "jobs.queue": "2", "jobs.concurrency": "1"}
    async with remit_in(recipes=[busy, listens], flags=flags) as remit:
        first = await remit.start(busy())
        _ = await until(remit, first.id, lambda row: row.state == "running")
        waiting = [await remit.start(listens()) for _ in range(2)]
        with pytest.raises(BusyError, match="2 jobs wait for a worker, as many as jobs\\.queue allows") as refusal:
            _ = await remit.start(listens())
        assert refusal.value.code == Code.JOBS_FULL
        go.set()
        for job in waiting:
            _ = await until_waiting(remit, job.id)
        _ = await remit.start(listens())
