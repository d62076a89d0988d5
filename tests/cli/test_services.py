"""What goes on beside a command that stays up begins again after it failed, and says so."""

from __future__ import annotations

import asyncio

import pytest

from remit import Remit, Run, recipe
from remit.capability import Upkeep
from remit.cli import services
from remit.codes import Code
from remit.errors import JournalError, StateError
from remit.journal.retirement import mark_live, mark_moved
from remit.parts.tickets import wiring
from remit.parts.tickets.runner import TicketRunner
from remit.service.workers import WorkersNoun
from remit_testing.clock import ManualClock
from tests.opened import OpenRemit, local_engine


@recipe("counts")
async def counts(run: Run) -> int:
    """Come to an end."""
    await run.now()
    return 7


def on_tickets(remit: Remit, stop: asyncio.Event) -> Upkeep:
    upkeep = wiring.work_on_tickets(remit, stop, "serve")
    assert upkeep is not None
    return upkeep


async def test_the_worker_begins_anew_each_time_the_journal_failed_it(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(services, "AGAIN_S", 0.001)
    async with remit_in(recipes=[counts]) as remit:
        keeping = asyncio.create_task(services.keep_engine(remit))
        for _ in range(2):
            failing = remit.engine.ended("none")
            local_engine(remit).holding.fail(JournalError("the journal is away", code=Code.JOURNAL_IO))
            with pytest.raises(JournalError):
                await failing
            job = await remit.start(counts())
            assert (await remit.service.jobs.settled([job.id]))[0].state == "completed"
        keeping.cancel()
        await asyncio.wait([keeping])
    assert [one.getMessage() for one in caplog.records] == [
        "the engine stops: JOURNAL_IO: the journal is away",
        "the worker starts again in 0.001 s",
    ] * 2


async def test_the_work_on_tickets_begins_anew_and_log_and_health_say_why_it_ended(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stop, ends = asyncio.Event(), [StateError("not this one", code=Code.HEAD_FORGED), ValueError("a defect")]
    clock = ManualClock()

    async def run(_runner: TicketRunner, _stop: asyncio.Event, *, once: bool) -> None:
        if ends:
            raise ends.pop(0)
        await stop.wait()

    monkeypatch.setattr(TicketRunner, "run", run)
    async with remit_in(clock=clock) as remit:
        keeping = asyncio.create_task(services.keep_part(remit, on_tickets(remit, stop)))
        for why in ("HEAD_FORGED: not this one", "a defect"):
            while (snapshot := await remit.service.health.ready()).optional["worker.tickets"].detail != why:
                pass  # the keeper's next turn
            assert snapshot.degraded
            clock.advance(services.AGAIN_S)
        while (await remit.service.health.ready()).degraded:
            pass  # the same
        keeping.cancel()
        await asyncio.wait([keeping])
    assert [(one.levelname, one.getMessage().partition(";")[0]) for one in caplog.records] == [
        ("ERROR", "worker.tickets: HEAD_FORGED: not this one"),
        ("ERROR", "worker.tickets: a defect"),
    ]


async def test_beside_a_journal_that_moved_everything_rests_and_says_so_once(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(services, "AGAIN_S", 0.001)
    refusal, looks, often = WorkersNoun.refusal, [0], asyncio.Event()

    async def counted(workers: WorkersNoun) -> JournalError | None:
        looks[0] += 1
        if looks[0] > 20:  # by both parts, again and again
            often.set()
        return await refusal(workers)

    monkeypatch.setattr(WorkersNoun, "refusal", counted)
    async with remit_in(recipes=[counts], work=False) as remit:
        job = await remit.start(counts())
        await mark_moved(remit.runtime.journal, "elsewhere.db")
        remit.engine.start()
        stop = asyncio.Event()
        keeping = [
            asyncio.create_task(one)
            for one in (services.keep_engine(remit), services.keep_part(remit, on_tickets(remit, stop)))
        ]
        await often.wait()
        parts = (await remit.service.health.ready()).optional
        assert all("JOURNAL_MOVED" in parts[name].detail for name in ("worker.jobs", "worker.tickets"))
        assert sum("nothing is run here" in one.getMessage() for one in caplog.records) == 2
        assert sum(one.getMessage().startswith("the engine stops") for one in caplog.records) == 1
        await mark_live(remit.runtime.journal)
        assert (await remit.service.jobs.settled([job.id]))[0].state == "completed"
        for one in keeping:
            one.cancel()
        await asyncio.wait(keeping)


async def test_health_says_that_the_worker_was_stopped_by_the_journal(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in(clock=ManualClock()) as remit:
        keeping = asyncio.create_task(services.keep_engine(remit))
        local_engine(remit).holding.fail(JournalError("the journal is away", code=Code.JOURNAL_IO))
        while not (snapshot := await remit.service.health.ready()).degraded:
            pass  # the keeper's next turn
        assert "the journal is away" in snapshot.optional["worker.jobs"].detail
        keeping.cancel()
        await asyncio.wait([keeping])


async def test_a_part_that_ends_by_an_error_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> None:
        raise ValueError("a defect")

    async with services.beside(broken()):
        while not caplog.records:
            await asyncio.wait([asyncio.ensure_future(asyncio.to_thread(str))])
    assert "a defect" in caplog.records[0].getMessage()
