from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from remit import Remit, Run, recipe
from remit.engines.presence import KIND
from remit.journal.event import HeadQuery
from remit.settings import load
from tests.pages.conftest import Served

pytestmark = pytest.mark.slow


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
