"""How a pass begins and how it is left: messages are heard before anything runs, and on its way out nothing does."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from remit import JobEndedError, Run, recipe, tool
from remit.engines.presence import with_code
from remit.jobs.execution import JobExecution, JobServices, LeasedJob
from remit.jobs.program import JobProgram, Programs
from remit.jobs.state import JobHistory
from remit.jobs.versions import Versions
from remit.journal.copy import copy
from remit.journal.event import LeaseClaim
from remit.journal.kinds import RecoveryStarted
from remit.service.options import Options
from tests.opened import OpenRemit, until_waiting

NOW = {"policy.rules": [{"effect": "allow", "tools": ["*"]}], "jobs.drain_seconds": 0}
HOUR_S = 3_600


class Bank:
    """Tools that note what they do; one may stand still in the middle of it."""

    def __init__(self, stands_still_at: str = "") -> None:
        self.done: list[str] = []
        self.reached = asyncio.Event()
        self.stands_still_at = stands_still_at

        @tool("bank.do", level="L1", idempotent=True)
        async def do(what: str) -> str:
            self.done.append(what)
            if what == self.stands_still_at:
                self.reached.set()
                await asyncio.get_running_loop().create_future()
            return what

        self.tool = do


@recipe("pays")
async def pays(run: Run) -> None:
    """Two payments."""
    for what in ("first", "second"):
        await run.call("bank.do", {"what": what})


@recipe("guarded")
async def guarded(run: Run) -> str:
    """Works between taking a lock and giving it back, and waits in the middle."""
    await run.call("bank.do", {"what": "lock"})
    try:
        await run.wait_signal("go")
        await run.call("bank.do", {"what": "work"})
    finally:
        await run.call("bank.do", {"what": "unlock"})
    return "done"


@recipe("patient")
async def patient(run: Run) -> None:
    """Waits while it is being cancelled."""
    try:
        await run.call("bank.do", {"what": "work"})
    finally:
        await run.sleep(HOUR_S)


@recipe("patient_for_a_branch")
async def patient_for_a_branch(run: Run) -> None:
    """Waits while it is being cancelled for what no branch will ever bring."""
    try:
        await run.call("bank.do", {"what": "work"})
    finally:
        await run.until(asyncio.get_running_loop().create_future())


# --- how it begins


async def test_a_worker_that_stood_still_says_that_another_one_took_over(
    remit_in: OpenRemit, caplog: pytest.LogCaptureFixture
) -> None:
    async with remit_in(recipes=[pays], tools=[Bank().tool], flags=NOW, work=False) as remit:
        stream = f"job/{(await remit.start(pays())).id}"
        journal, now = remit.runtime.journal, remit.runtime.journal.clock.now()
        claim = LeaseClaim(kind="job", owner="frozen", now=now, lease_until=now, state="running")
        frozen = await journal.acquire(stream, claim)
        other = await journal.acquire(stream, replace(claim, owner="other", now=now + 1), over="frozen")
        assert frozen is not None
        assert other is not None
        leased = LeasedJob(journal, remit.runtime.services.confirmations, other)
        await journal.append(leased.writer, RecoveryStarted(owner="other"), synced=True)
        runtime = remit.runtime
        services = JobServices(
            journal=journal,
            gateway=runtime.gateway,
            programs=runtime.programs,
            versions=Versions(journal, runtime.catalog, "warn", runtime.services.migrations),
            chance=runtime.chance,
            max_value_bytes=1,
            report=lambda _job, _done, _total, _message: None,
            worker="frozen",
            with_code=partial(with_code, journal),
            skills=runtime.skills,
            alive=lambda _owner: True,
        )
        ended = await JobExecution(services, frozen).run()
    assert ended.how == "lost"
    assert [record.levelname for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_job_that_is_cancelled_before_it_ran_does_not_run(remit_in: OpenRemit) -> None:
    bank = Bank()
    given: dict[str, Any] = {"tools": [bank.tool], "recipes": [pays], "flags": NOW}
    async with remit_in(**given, work=False) as remit:
        job = await remit.service.jobs.start(pays(), Options(delay_s=HOUR_S))
        await remit.service.jobs.cancel(job)
    async with remit_in(**given) as remit:
        assert (await remit.ended(job)).state == "cancelled"
    assert bank.done == []


async def test_a_job_whose_worker_died_hears_of_its_cancellation_before_it_goes_on(remit_in: OpenRemit) -> None:
    bank = Bank(stands_still_at="first")
    given: dict[str, Any] = {"tools": [bank.tool], "recipes": [pays], "flags": NOW}
    async with remit_in(**given) as remit:
        job = (await remit.start(pays())).id
        await bank.reached.wait()
    async with remit_in(**given, work=False) as remit:
        await remit.service.jobs.cancel(job)
    async with remit_in(**given) as remit:
        assert (await remit.ended(job)).state == "cancelled"
    assert bank.done == ["first"]


async def test_stopping_a_job_needs_no_code(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[pays], work=False) as remit:
        job = (await remit.start(pays())).id
        await remit.service.jobs.cancel(job)
    async with remit_in() as remit:
        assert (await remit.ended(job)).state == "cancelled"


async def test_a_cancellation_that_comes_while_the_job_is_loaded_is_heard(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = Bank(stands_still_at="first")
    loading, told = asyncio.Event(), asyncio.Event()
    load, news = Programs.load, JobExecution.news

    async def slowly(self: Programs, history: JobHistory) -> JobProgram:
        loading.set()
        await told.wait()
        return await load(self, history)

    def tell(self: JobExecution, wakes: int) -> None:
        news(self, wakes)
        told.set()

    async with remit_in(tools=[bank.tool], recipes=[pays], flags=NOW) as remit:
        monkeypatch.setattr(Programs, "load", slowly)
        monkeypatch.setattr(JobExecution, "news", tell)
        job = await remit.start(pays())
        await loading.wait()
        await job.cancel()
        assert (await remit.ended(job.id)).state == "cancelled"


@pytest.mark.parametrize("cancelled", [True, False])
async def test_messages_are_heard_where_the_journal_was_copied_to(
    remit_in: OpenRemit, tmp_path: Path, *, cancelled: bool
) -> None:
    bank = Bank()
    given: dict[str, Any] = {"tools": [bank.tool], "recipes": [guarded]}
    async with remit_in(**given, flags=NOW) as remit:
        job = (await remit.start(guarded())).id
        await until_waiting(remit, job)
    elsewhere = NOW | {"journal.url": str(tmp_path / "copy.db")}
    async with remit_in(**given, work=False) as remit, remit_in(**given, flags=elsewhere, work=False) as other:
        await remit.job(job).signal("go")
        if cancelled:
            await remit.service.jobs.cancel(job)
        await copy(remit.runtime.journal, other.runtime.journal)
    async with remit_in(**given, flags=elsewhere) as remit:
        assert (await remit.ended(job)).state == ("cancelled" if cancelled else "completed")
    assert bank.done == (["lock"] if cancelled else ["lock", "work", "unlock"])


# --- how it is left


async def test_a_parked_job_does_nothing_on_its_way_out(remit_in: OpenRemit) -> None:
    bank = Bank()
    async with remit_in(tools=[bank.tool], recipes=[guarded], flags=NOW) as remit:
        job = await remit.start(guarded())
        await until_waiting(remit, job.id)
    # Only when Remit is closed has every pass surely ended.
    assert bank.done == ["lock"]
    async with remit_in(tools=[bank.tool], recipes=[guarded], flags=NOW) as remit:
        await remit.job(job.id).signal("go")
        assert await remit.job(job.id) == "done"
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
    assert bank.done == ["lock", "work", "unlock"]


async def test_nor_does_one_whose_process_stops(remit_in: OpenRemit) -> None:
    bank = Bank(stands_still_at="work")
    given: dict[str, Any] = {"tools": [bank.tool], "recipes": [guarded], "flags": NOW}
    async with remit_in(**given) as remit:
        job = await remit.start(guarded())
        await job.signal("go")
        await bank.reached.wait()
    assert bank.done == ["lock", "work"]
    bank.stands_still_at = ""
    async with remit_in(**given) as remit:
        assert await remit.job(job.id) == "done"
    assert bank.done == ["lock", "work", "work", "unlock"]


@pytest.mark.parametrize("waits", [patient, patient_for_a_branch])
async def test_nor_does_one_that_is_cancelled(remit_in: OpenRemit, waits: Any) -> None:
    bank = Bank(stands_still_at="work")
    async with remit_in(tools=[bank.tool], recipes=[waits], flags=NOW) as remit:
        job = await remit.start(waits())
        await bank.reached.wait()
        await job.cancel()
        assert (await remit.ended(job.id)).state == "cancelled"


async def test_a_recipe_that_cancels_itself_has_failed(remit_in: OpenRemit) -> None:
    @recipe("gives_up")
    async def gives_up(run: Run) -> None:
        await run.now()
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    async with remit_in(recipes=[gives_up]) as remit:
        with pytest.raises(JobEndedError, match="the recipe cancelled itself"):
            await remit.run(gives_up())
