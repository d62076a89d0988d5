"""A disk that fails under a running job: the user is told, nothing happens without its announcement, and it goes on."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import apsw
import pytest

from remit import CallContext, Code, Remit, Run, recipe, tool
from remit.clock import SystemClock
from remit.errors import JournalError
from remit.jobs.state import ENDED
from remit.journal.sqlite import connection
from tests.journal.sqlite.disk import Disk, inserted
from tests.jumping import JumpingClock
from tests.opened import OpenRemit, until

pytestmark = pytest.mark.slow

ALLOW = [{"effect": "allow", "tools": ["*"]}]
FAULTS = [("write", apsw.FullError, Code.JOURNAL_FULL), ("sync", apsw.IOError, Code.JOURNAL_IO)]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """The disk that every journal of this test lies on."""
    with inserted() as disk:
        plain = connection._open
        monkeypatch.setattr(
            connection, "_open", lambda path, flags, busy_ms, _vfs: plain(path, flags, busy_ms, disk.name)
        )
        yield disk
        monkeypatch.undo()


class Bank:
    """A tool before, in or after whose side effect the disk fails."""

    def __init__(self, disk: Disk, fault: tuple[str, type[apsw.Error], Code], moment: str) -> None:
        self.charged = 0
        operation, error, _ = fault
        to_come = {moment}

        def fails(at: str) -> None:
            if at in to_come:
                to_come.remove(at)
                disk.failing[operation] = error

        @tool("bank.look", level="L0")
        async def look() -> int:
            fails("before the announcement")
            return 1

        @tool("bank.charge", level="L1")
        async def charge(ctx: CallContext) -> int:
            self.charged += 1
            fails("before the outcome is recorded")
            return 20

        @recipe("pays")
        async def pays(run: Run) -> int:
            await run.call("bank.look")
            result = int((await run.call("bank.charge")).value)
            fails("before the end")
            return result

        self.recipe = pays
        self.given: dict[str, Any] = {
            "tools": [look, charge],
            "recipes": [pays],
            "flags": {"policy.rules": ALLOW, "jobs.drain_seconds": 0},
        }


@pytest.mark.parametrize("fault", FAULTS, ids=["full", "broken"])
@pytest.mark.parametrize(
    "moment", ["before the announcement", "before the outcome is recorded", "before the end"], ids=str.split
)
async def test_the_user_is_told_and_the_job_goes_on_once_the_disk_is_mended(
    fault: tuple[str, type[apsw.Error], Code], moment: str, disk: Disk, remit_in: OpenRemit
) -> None:
    bank = Bank(disk, fault, moment)
    async with remit_in(**bank.given) as remit:
        job = await remit.start(bank.recipe())
        with pytest.raises(JournalError) as told:
            await job
        assert told.value.code is fault[2]
        assert told.value.remedy
        assert bank.charged == (moment != "before the announcement")
        disk.failing.clear()
    # An hour later: the lease could not be given up, and is over.
    async with remit_in(**bank.given, clock=JumpingClock(SystemClock(), ahead_s=3_600)) as remit:
        await settled(remit, job.id)
        assert await remit.service.jobs.result(job.id) == 20
        assert (await remit.service.streams.verify(job.id)).problems == ()
    assert bank.charged == 1


async def test_an_engine_that_failed_begins_anew(disk: Disk, remit_in: OpenRemit) -> None:
    bank = Bank(disk, FAULTS[0], "before the outcome is recorded")
    bank.given["flags"]["jobs.lease_seconds"] = 1  # what it held is free again once the lease is over
    async with remit_in(**bank.given) as remit:
        job = await remit.start(bank.recipe())
        with pytest.raises(JournalError):
            await job
        failed = remit.engine.failure
        assert failed is not None
        disk.failing.clear()
        await remit.engine.restart()
        await settled(remit, job.id)
        assert await remit.service.jobs.result(job.id) == 20
    assert bank.charged == 1


async def test_calls_outside_a_job_go_on_as_well(disk: Disk, remit_in: OpenRemit) -> None:
    @tool("bank.look", level="L0")
    async def look() -> int:
        return 1

    async with remit_in(tools=[look], work=False) as remit:
        assert (await remit.call("bank.look")).value == 1
        disk.failing["write"] = apsw.FullError
        with pytest.raises(JournalError) as told:
            await remit.call("bank.look")
        assert told.value.code is Code.JOURNAL_FULL
        disk.failing.clear()
        assert (await remit.call("bank.look")).value == 1


async def test_who_hears_of_a_failure_from_the_journal_first_is_not_told_of_it_by_python(
    disk: Disk, remit_in: OpenRemit
) -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))
    bank = Bank(disk, FAULTS[0], "before the announcement")
    async with remit_in(**bank.given) as remit:
        unheard = remit.runtime.engine.ended("none")
        job = await remit.start(bank.recipe())
        with pytest.raises(JournalError):
            await job
        assert unheard.done()
        disk.failing.clear()
        del unheard
        gc.collect()
    assert reported == []


async def settled(remit: Remit, job: str) -> None:
    """See the job to its end; a person knows that the charge was made."""
    row = await until(remit, job, lambda row: row.state in ENDED or "a decision" in row.waiting_for)
    if row.state not in ENDED:
        await remit.service.steps.decide(job, "2", "done", 20)
        await until(remit, job, lambda row: row.state in ENDED)
