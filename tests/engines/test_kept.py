"""A job whose person waits in one process is that process's alone, while it lives."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from remit import Remit, Run, recipe
from remit.jobs.routes import kept_for, unkept
from remit.jobs.state import stream_of
from remit.journal.event import HeadPatch, LeaseClaim
from remit.journal.leases import Owner
from tests.opened import OpenRemit, local_engine, until

pytestmark = pytest.mark.slow


def code(number: int) -> Any:
    """One edition of a recipe that parks, then says which one it is."""

    @recipe("edited", version=str(number))
    async def edited(run: Run) -> int:
        await run.wait_signal("go")
        return number

    return edited


@recipe("marks")
async def marks(run: Run) -> str:
    """Shows that its worker has looked for work."""
    return "seen"


@recipe("asks")
async def asks(run: Run) -> str:
    """Wait for a signal."""
    return str(await run.wait_signal("go"))


async def start_kept(remit: Remit, bound: Any) -> str:
    """Start a job as `remit run` does, and leave it to the engine here."""
    remit.service.jobs.keeper = remit.engine.owner
    job = (await remit.start(bound)).id
    remit.service.jobs.keeper = ""
    return job


async def test_a_worker_with_other_code_never_takes_it(remit_in: OpenRemit) -> None:
    old, new = code(1), code(2)
    async with remit_in(recipes=[old, marks]) as worker, remit_in(recipes=[new], work=False) as here:
        job = await start_kept(here, new())
        assert await worker.run(marks()) == "seen"
        assert (await here.service.jobs.row(job)).state == "pending"
        here.engine.start(only={stream_of(job)}, keep=True)
        await until(here, job, lambda row: row.state == "waiting")
        await here.job(job).signal("go")
        assert await here.job(job) == 2
        assert worker.engine.running == []


async def test_it_is_taken_at_once_although_it_is_not_due(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[asks]) as worker:
        job = await worker.start(asks())
        await until(worker, job.id, lambda row: row.state == "waiting")
    async with remit_in(recipes=[asks], work=False) as here:
        before = (await here.service.jobs.row(job.id)).updated_at
        here.engine.start(only={stream_of(job.id)}, keep=True)
        await until(here, job.id, lambda row: row.state == "waiting" and row.updated_at > before)
        head = await here.runtime.journal.head(stream_of(job.id))
        assert head is not None
        assert unkept(head.route) == ("asks", here.engine.owner)


async def test_once_the_process_stops_any_worker_goes_on(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[asks], work=False) as here:
        job = await start_kept(here, asks())
        here.engine.start(only={stream_of(job)}, keep=True)
        await until(here, job, lambda row: row.state == "waiting")
    async with remit_in(recipes=[asks]) as worker:
        await worker.job(job).signal("go", "on")
        assert await worker.job(job) == "on"


def dead() -> Owner:
    """A process of this machine that is no more."""
    return replace(Owner.this(), started="1")


def elsewhere() -> Owner:
    """A process of another machine, of which nothing is known here."""
    return replace(Owner.this(), host="elsewhere/0/0")


@pytest.mark.parametrize(("keeper", "lease_s"), [(dead, 3_600), (elsewhere, 1)])
async def test_what_a_process_left_is_taken_once_it_is_dead_or_overdue(
    remit_in: OpenRemit, keeper: Any, lease_s: int
) -> None:
    async with remit_in(recipes=[marks], work=False) as remit:
        job = await remit.start(marks())
        journal = remit.runtime.journal
        head = await journal.head(stream_of(job.id))
        assert head is not None
        patch = HeadPatch(route=kept_for("marks", str(keeper())))
        await journal.append(journal.writer(head.stream, head.kind, head), synced=True, patch=patch)
    async with remit_in(recipes=[marks], flags={"jobs.lease_seconds": lease_s}) as worker:
        assert await worker.job(job.id) == "seen"


async def test_a_stream_that_is_chosen_later_is_taken_over_from_the_dead_at_once(remit_in: OpenRemit) -> None:
    chosen = set[str]()
    async with remit_in(recipes=[marks], work=False, flags={"jobs.lease_seconds": 600}) as remit:
        remit.engine.start(only=chosen)
        job = await remit.start(marks())
        journal = remit.runtime.journal
        now = journal.clock.now()
        claim = LeaseClaim(kind="job", owner=str(dead()), now=now, lease_until=now + 10**9, state="running")
        assert await journal.acquire(stream_of(job.id), claim) is not None
        while local_engine(remit).claiming.look_for_dead:
            await remit.runtime.journal.heads_changed(0)  # the first look is over once it is not wanted any more
        chosen.add(stream_of(job.id))
        remit.engine.wake()
        assert await job == "seen"
