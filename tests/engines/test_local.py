"""The local engine: bounded, fair, and quick to take over what a dead process left."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from remit import Options, Run, recipe, tool
from remit.clock import SystemClock
from remit.errors import NotFoundError
from remit.jobs.state import stream_of
from remit.journal.event import LeaseClaim
from remit.journal.journal import Journal
from remit.journal.kinds import WaitCompleted
from remit.journal.leases import Owner
from remit.settings import load
from remit.wiring.journal import open_store
from tests.opened import OpenRemit, local_engine, until_waiting
from tests.patience import PATIENCE_S

NOW = {"jobs.drain_seconds": 0}


def a_tool_that_counts(most: list[int], two: asyncio.Event, gate: asyncio.Event) -> Any:
    """A tool that notes how many calls are under way at once, and says when there are two."""
    here = 0

    @tool("meet.count", level="L0")
    async def count() -> None:
        nonlocal here
        here += 1
        most.append(here)
        if here == 2:
            two.set()
        await gate.wait()
        here -= 1

    return count


@recipe("counted")
async def counted(run: Run) -> None:
    """Call the counter."""
    await run.call("meet.count")


async def test_no_more_jobs_run_at_once_than_allowed(remit_in: OpenRemit) -> None:
    most: list[int] = []
    two, gate = asyncio.Event(), asyncio.Event()
    async with remit_in(
        tools=[a_tool_that_counts(most, two, gate)], recipes=[counted], flags={"jobs.concurrency": 2}
    ) as remit:
        jobs = [await remit.start(counted()) for _ in range(5)]
        await two.wait()
        assert len(remit.runtime.engine.running) == 2
        gate.set()
        for job in jobs:
            await job
    assert max(most) == 2


async def test_of_chosen_jobs_too_no_more_are_taken_than_there_is_room_for(remit_in: OpenRemit) -> None:
    @recipe("short")
    async def short(run: Run) -> str:
        return "done"

    # A lease that nobody works under would keep its job from everybody for an hour.
    flags = {"jobs.concurrency": 2, "jobs.lease_seconds": 3_600}
    async with remit_in(recipes=[short], flags=flags, work=False) as remit:
        jobs = [await remit.start(short()) for _ in range(5)]
        remit.runtime.engine.start(only={stream_of(job.id) for job in jobs})
        async with asyncio.timeout(PATIENCE_S):
            assert [await job for job in jobs] == ["done"] * 5
        kinds = {event.kind for job in jobs for event in await remit.service.streams.events(f"job/{job.id}")}
        assert kinds == {"job_created", "job_completed"}


async def test_higher_priority_goes_first_then_who_came_first(remit_in: OpenRemit) -> None:
    order: list[str] = []

    @recipe("note")
    async def note(run: Run, name: str) -> None:
        order.append(name)

    async with remit_in(recipes=[note], work=False) as remit:
        for name, priority in (("first", 0), ("second", 0), ("urgent", 5)):
            _ = await remit.start(note(name), Options(priority=priority))
    async with remit_in(recipes=[note], flags={"jobs.concurrency": 1}) as remit:
        for row in await remit.jobs():
            await remit.job(row.job)
    assert order == ["urgent", "first", "second"]


async def test_a_parked_job_holds_no_worker(remit_in: OpenRemit) -> None:
    @recipe("parked")
    async def parked(run: Run) -> None:
        await run.wait_signal("go")

    @recipe("short")
    async def short(run: Run) -> str:
        return "done"

    async with remit_in(recipes=[parked, short], flags={"jobs.concurrency": 1}) as remit:
        job = await remit.start(parked())
        row = await until_waiting(remit, job.id)
        assert row.worker == ""
        assert await remit.run(short()) == "done"
        assert remit.runtime.engine.running == []


async def test_a_delayed_job_starts_when_it_is_due(remit_in: OpenRemit) -> None:
    @recipe("short")
    async def short(run: Run) -> int:
        return await run.now()

    async with remit_in(recipes=[short]) as remit:
        before = remit.runtime.journal.clock.now()
        began = await remit.run(short(), Options(delay_s=0.05))
        assert began - before >= 50_000


@pytest.mark.parametrize("how", ["signal", "resume"])
async def test_a_delayed_job_is_started_at_once_by_a_signal_or_by_resuming_it(remit_in: OpenRemit, how: str) -> None:
    @recipe("short")
    async def short(run: Run) -> str:
        return "done"

    async with remit_in(recipes=[short]) as remit:
        job = await remit.start(short(), Options(delay_s=3_600))
        await (job.signal("go") if how == "signal" else remit.service.jobs.resume(job.id))
        assert await job == "done"


def hold(folder: str, jobs: list[str]) -> None:
    """Lease jobs as a process that then ends without giving it up."""

    async def main() -> None:
        settings = load(env={}, cwd=Path(folder), flags={"journal.url": str(Path(folder) / "journal.db")})
        journal = Journal(open_store(settings.journal.url, SystemClock()))
        far = journal.clock.now() + 10**12
        claim = LeaseClaim(
            kind="job", owner=str(Owner.this()), now=journal.clock.now(), lease_until=far, state="running"
        )
        for job in jobs:
            assert await journal.acquire(f"job/{job}", claim) is not None
        os._exit(7)

    asyncio.run(main())


def die_holding(folder: Path, *jobs: str) -> None:
    """See to it that a process that is no more holds these jobs."""
    process = multiprocessing.get_context("spawn").Process(target=hold, args=(str(folder), list(jobs)))
    process.start()
    process.join()
    assert process.exitcode == 7


@pytest.mark.slow
async def test_what_a_dead_process_held_is_taken_over_at_once(remit_in: OpenRemit, tmp_path: Path) -> None:
    @recipe("short")
    async def short(run: Run) -> str:
        return "done"

    async with remit_in(recipes=[short], work=False) as remit:
        job = await remit.start(short())
    die_holding(tmp_path, job.id)
    async with remit_in(recipes=[short]) as remit:
        assert await remit.job(job.id) == "done"
        kinds = [event.kind for event in await remit.service.streams.events(f"job/{job.id}")]
        assert "recovery_started" in kinds


@pytest.mark.slow
async def test_what_a_dead_process_held_is_taken_over_as_there_is_room(remit_in: OpenRemit, tmp_path: Path) -> None:
    most: list[int] = []
    two, gate = asyncio.Event(), asyncio.Event()
    given: dict[str, Any] = {"tools": [a_tool_that_counts(most, two, gate)], "recipes": [counted]}
    async with remit_in(**given, work=False) as remit:
        jobs = [(await remit.start(counted())).id for _ in range(5)]
    die_holding(tmp_path, *jobs)
    # So long a lease that the dead are looked for once.
    async with remit_in(**given, flags={"jobs.concurrency": 2, "jobs.lease_seconds": 3_600, **NOW}) as remit:
        await two.wait()
        assert len(remit.runtime.engine.running) == 2
        gate.set()
        for job in jobs:
            await remit.job(job)
    assert max(most) == 2


async def test_what_a_living_process_holds_is_left_alone(remit_in: OpenRemit) -> None:
    began = asyncio.Event()
    gate = asyncio.Event()
    calls = 0

    @tool("slow.wait", level="L0")
    async def slow() -> None:
        nonlocal calls
        calls += 1
        began.set()
        await gate.wait()

    @recipe("slow")
    async def slow_recipe(run: Run) -> str:
        await run.call("slow.wait")
        return "done"

    async with remit_in(tools=[slow], recipes=[slow_recipe]) as first:
        job = await first.start(slow_recipe())
        await began.wait()
        async with remit_in(tools=[slow], recipes=[slow_recipe], flags=NOW) as second:
            await second.service.jobs.resume(job.id)
            assert second.runtime.engine.running == []
            gate.set()
            assert await job == "done"
    assert calls == 1


async def test_who_no_longer_waits_for_a_job_is_forgotten(remit_in: OpenRemit) -> None:
    async with remit_in() as remit:
        engine = local_engine(remit)
        first, second = engine.ended("none"), engine.ended("none")
        for future in (first, second):
            future.cancel()
            await asyncio.wait([future])
        assert engine.holding._ended == {}


@pytest.mark.parametrize("why", ["no such job", "time is up"])
async def test_who_waits_in_vain_for_the_end_of_a_job_is_forgotten(remit_in: OpenRemit, why: str) -> None:
    @recipe("short")
    async def short(run: Run) -> None:
        """Nobody works on it."""

    async with remit_in(recipes=[short], work=False) as remit:
        if why == "no such job":
            with pytest.raises(NotFoundError):
                await remit.ended("job_none")
        else:
            job = await remit.start(short())
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await remit.ended(job.id)
        await asyncio.sleep(0)  # noqa: TID251 - what was given up is told of, and nothing waited for
        assert local_engine(remit).holding._ended == {}


async def test_draining_lets_a_call_end_and_begins_nothing_new(remit_in: OpenRemit) -> None:
    began, gate = asyncio.Event(), asyncio.Event()
    steps: list[int] = []

    @tool("log.add", level="L1")
    async def add(number: int) -> int:
        began.set()
        await gate.wait()
        steps.append(number)
        return number

    @recipe("two")
    async def two(run: Run) -> str:
        await run.call("log.add", {"number": 1})
        await run.call("log.add", {"number": 2})
        return "done"

    given: dict[str, Any] = {
        "tools": [add],
        "recipes": [two],
        "flags": {"policy.rules": [{"effect": "allow", "tools": ["*"]}]},
    }
    async with remit_in(**given) as remit:
        job = await remit.start(two())
        await began.wait()
        draining = asyncio.create_task(remit.runtime.engine.drain(60))
        gate.set()
        assert await draining
        assert steps == [1]
    async with remit_in(**given) as remit:
        assert await remit.job(job.id) == "done"
    assert steps == [1, 2]


async def test_a_call_that_is_approved_while_its_worker_stops_is_left_to_the_next(remit_in: OpenRemit) -> None:
    began, gate = asyncio.Event(), asyncio.Event()
    written: list[str] = []

    @tool("log.read", level="L0")
    async def read() -> None:
        began.set()
        await gate.wait()

    @tool("log.add")
    def add(text: str) -> None:
        written.append(text)

    @recipe("both")
    async def both(run: Run) -> None:
        await run.gather(run.call("log.read", {}), run.call("log.add", {"text": "x"}))

    given: dict[str, Any] = {"tools": [read, add], "recipes": [both]}
    async with remit_in(**given) as remit:
        job = await remit.start(both())
        await began.wait()
        question = await anext(remit.questions(job.id))
        draining = asyncio.create_task(remit.runtime.engine.drain(60))
        await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")
        async for event in remit.service.streams.follow(stream_of(job.id)):
            if event.kind == WaitCompleted.KIND:
                break
        gate.set()
        assert await draining
        assert written == []
    async with remit_in(**given) as remit:
        await remit.ended(job.id)
    assert written == ["x"]


def test_an_owner_is_dead_when_its_process_is_gone_or_another_one() -> None:
    this = Owner.this()
    assert not this.dead()
    assert Owner.parse(str(this)) == this
    assert Owner.parse("somebody") is None
    process = multiprocessing.get_context("spawn").Process(target=int)
    process.start()
    gone = Owner(host=this.host, pid=process.pid or 0, started=this.started, worker="w")
    assert gone.dead(), "a process of this id lives, but it began at another time"
    process.join()
    assert gone.dead()
    assert not Owner(host="elsewhere/1", pid=1, started="1", worker="w").dead()


def test_an_owner_in_another_container_is_not_known_to_be_dead() -> None:
    apart = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("processes cannot be kept apart here")
    there = "import sys; from remit.journal.leases import Owner; sys.exit(Owner.parse(sys.argv[1]).dead())"
    subprocess.run([*apart, sys.executable, "-c", there, str(Owner.this())], check=True)
