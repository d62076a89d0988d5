"""Leases of this engine's own jobs: however late it comes to renew them, no job runs twice in it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from remit import Remit, Run, recipe, tool
from remit.clock import SystemClock
from remit.jobs.execution import JobExecution
from remit.jobs.state import stream_of
from remit.journal.event import HeadPatch, LeaseClaim
from remit.journal.journal import Journal
from remit.wiring.journal import open_store
from tests.jumping import JumpingClock
from tests.opened import OpenRemit, until

ALLOW = {"policy.rules": [{"effect": "allow", "tools": ["*"]}], "jobs.drain_seconds": 0, "jobs.lease_seconds": 600}


@recipe("short")
async def short(run: Run) -> None:
    """End at once."""


class Bank:
    """A tool whose calls wait until they are let go, and their outcome."""

    def __init__(self, *, idempotent: bool) -> None:
        self.gates: list[asyncio.Event] = []
        self.said: list[str] = []
        self.more = asyncio.Condition()
        self.leave = asyncio.Event()
        """A call that was ended is over once this is set."""
        self.leave.set()
        bank = self

        @tool("bank.charge", level="L1", idempotent=idempotent, timeout=600)
        async def charge() -> int:
            return await bank.charge()

        @recipe("pays")
        async def pays(run: Run) -> int:
            return int((await run.call("bank.charge")).value)

        self.recipe = pays
        self.given: dict[str, Any] = {"tools": [charge], "recipes": [pays, short], "flags": ALLOW}

    async def charge(self) -> int:
        number = len(self.gates)
        self.gates.append(asyncio.Event())
        await self.say(f"began {number}")
        try:
            await self.gates[number].wait()
            return number
        finally:
            await self.say(f"ended {number}")
            await self.leave.wait()
            self.said.append(f"left {number}")

    async def say(self, text: str) -> None:
        self.said.append(text)
        async with self.more:
            self.more.notify_all()

    async def has_said(self, text: str) -> None:
        """Wait until something has become of a call."""
        async with self.more:
            await self.more.wait_for(lambda: text in self.said)


async def borrowed(remit: Remit, folder: Path, job: str) -> None:
    """Another worker takes a job over from this process, as if that had been frozen, and gives it up again at once."""
    journal = Journal(open_store(str(folder / "journal.db"), SystemClock()))
    now, stream = journal.clock.now(), stream_of(job)
    terms = LeaseClaim(kind="job", owner="another", now=now, lease_until=now + 10**9, state="running")
    lease = await journal.acquire(stream, terms, over=remit.runtime.engine.owner)
    assert lease is not None
    await journal.append(
        journal.writer(stream, "job", lease.head), synced=True, patch=HeadPatch(due_at=now, release=True)
    )
    await journal.close()


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """No news reach a pass, so that it does not find out by itself that it is over."""
    monkeypatch.setattr(JobExecution, "news", lambda _self, _wakes: None)


async def test_a_clock_that_jumps_past_a_lease_takes_no_job_from_its_own_worker(remit_in: OpenRemit) -> None:
    clock, bank = JumpingClock(SystemClock()), Bank(idempotent=False)
    async with remit_in(**bank.given, clock=clock) as remit:
        job = await remit.start(bank.recipe())
        await bank.has_said("began 0")
        clock.jump(3_600)
        await remit.run(short())  # for which the engine claims what is due
        head = await remit.runtime.journal.head(stream_of(job.id))
        assert head is not None
        assert (head.epoch, head.lease_until is not None and head.lease_until > clock.now()) == (1, True)
        bank.gates[0].set()
        assert await job == 0
        assert "recovery_started" not in [event.kind for event in await remit.service.streams.events(stream_of(job.id))]


@pytest.mark.usefixtures("frozen")
async def test_a_job_that_comes_back_begins_once_its_former_pass_has_ended(remit_in: OpenRemit, tmp_path: Path) -> None:
    bank = Bank(idempotent=True)
    async with remit_in(**bank.given) as remit:
        job = await remit.start(bank.recipe())
        await bank.has_said("began 0")
        await borrowed(remit, tmp_path, job.id)
        await bank.has_said("began 1")
        assert bank.said == ["began 0", "ended 0", "left 0", "began 1"]
        assert remit.runtime.engine.running == [stream_of(job.id)]
        bank.gates[1].set()
        assert await job == 1
        assert remit.runtime.engine.running == []


@pytest.mark.usefixtures("frozen")
async def test_stopping_waits_for_a_pass_that_is_slow_to_make_room(remit_in: OpenRemit, tmp_path: Path) -> None:
    bank = Bank(idempotent=True)
    async with remit_in(**bank.given) as remit:
        bank.leave.clear()
        job = await remit.start(bank.recipe())
        await bank.has_said("began 0")
        await borrowed(remit, tmp_path, job.id)
        await bank.has_said("ended 0")
        stopping = asyncio.create_task(remit.runtime.engine.stop())
        await until(remit, job.id, lambda row: not row.worker)
        assert not stopping.done()
        bank.leave.set()
        await stopping
        assert bank.said == ["began 0", "ended 0", "left 0"]
