from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from remit import Remit, Run, recipe, tool
from remit.engines.presence import KIND
from remit.journal.event import HeadQuery
from remit.pages.workers import queues_of
from remit.parts.schedules.schedule import Schedule
from remit.record.views import JobRow
from remit.service.workers import WorkerView
from remit.settings import load
from tests.opened import until_waiting
from tests.pages.conftest import Served

pytestmark = pytest.mark.slow


@recipe("swept", schedule={"every": "6h"})
async def swept(run: Run) -> None:
    """Do nothing, by the clock."""


async def test_schedules_that_come_next_stand_beside_the_timers(served: Served) -> None:
    async with Remit(":memory:", recipes=[swept]) as opened, served(opened) as browser:
        assert "Due next" not in (await browser.get("/workers")).text
        await opened.service.schedules.add(Schedule(name="nightly", recipe="swept", every="8h"))
        page = (await browser.get("/workers")).text
        assert '<span class="badge">schedule</span> <span class="about"><a href="/schedules">nightly</a>' in page


@recipe("edited")
async def edited(run: Run) -> None:
    """Do nothing."""


def remit(folder: Path) -> Remit:
    settings = load(cwd=folder, file=None, env={}, flags={"journal.url": ":memory:"})
    return Remit(settings=settings, recipes=[edited], work=False)


async def test_workers_are_shown_with_their_code(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path) as opened, served(opened) as browser:
        assert "No process runs jobs" in (await browser.get("/workers")).text
        opened.engine.start(role="worker")
        while not await opened.service.workers.views():
            await opened.runtime.journal.heads_changed(0)
        text = (await browser.get("/workers")).text
        assert edited.execution_version in text
        (view,) = await opened.service.workers.views()
        assert (view.role, view.recipes["edited"], view.jobs) == ("worker", edited.execution_version, 0)


@tool("shop.order")
def order(item: str) -> str:
    """Order an item."""
    return item


@recipe("naps")
async def naps(run: Run, hours: int) -> None:
    """Wait for a time, or for a person."""
    if hours:
        await run.sleep(3_600 * hours)
    await run.call("shop.order", {"item": "milk"})


async def test_timers_are_those_that_continue_a_job_and_not_the_ends_of_questions(served: Served) -> None:
    async with Remit(":memory:", tools=[order], recipes=[naps]) as opened, served(opened) as browser:
        jobs = [(await opened.start(naps(hours=hours))).id for hours in (0, 2)]
        await opened.settled(jobs[0])
        await until_waiting(opened, jobs[1])
        timers = (await browser.get("/workers")).text.partition("<h2>Timers</h2>")[2]
        assert jobs[0] not in timers
        assert jobs[1] in timers


async def test_a_worker_has_its_age_and_the_number_of_its_jobs(tmp_path: Path) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    @recipe("busy")
    async def busy(run: Run) -> None:
        begun.set()
        await go.wait()

    async with remit(tmp_path) as opened:
        opened.engine.start(role="worker")
        job = await opened.start(busy())
        await begun.wait()
        while not (views := await opened.service.workers.views()):
            await opened.runtime.journal.heads_changed(0)
        (head,) = await opened.runtime.journal.heads(HeadQuery(kind=KIND))
        assert [(one.jobs, one.since) for one in views] == [(1, head.updated_at)]
        go.set()
        await job


def _row(job: str, route: str, at: int) -> JobRow:
    return JobRow(
        job=job, name="pay", state="pending", title=job, created_at=at, updated_at=at, due_at=at, waiting_for="",
        code="", worker="", route=route, labels={},
    )  # fmt: skip


def _worker(**recipes: str) -> WorkerView:
    return WorkerView(worker="w", words="w1", role="worker", since=0, remit="1", recipes=recipes, jobs=0)


@pytest.mark.parametrize(
    ("route", "workers", "lack"),
    [
        ("", [_worker()], ""),
        ("pay", [], "No process runs jobs."),
        ("pay", [_worker(pay="1")], ""),
        ("pay", [_worker(other="1")], "No worker knows the recipe pay."),
        ("pay@2", [_worker(pay="1")], "It began with version 2: w1 has 1."),
        ("pay@2", [_worker(pay="1"), _worker(pay="2")], ""),
        ("tool:mcp.x", [_worker(pay="1")], "Left by a worker that has no mcp.x."),
    ],
)
def test_a_queue_says_who_lacks_what(route: str, workers: list[WorkerView], lack: str) -> None:
    (queue,) = queues_of([_row("new", route, 9), _row("old", route, 5)], workers)
    assert (queue.number, queue.oldest.job, queue.since, queue.lack) == (2, "old", 5, lack)
