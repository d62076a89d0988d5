"""What a server does beside answering: its worker goes on after the journal was away."""

from __future__ import annotations

import asyncio

import pytest

from remit import Run, recipe
from remit.cli import server
from remit.codes import Code
from remit.errors import JournalError
from tests.opened import OpenRemit, local_engine


@recipe("counts")
async def counts(run: Run) -> int:
    """Come to an end."""
    await run.now()
    return 7


async def test_the_worker_begins_anew_each_time_the_journal_failed_it(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "AGAIN_S", 0.001)
    async with remit_in(recipes=[counts]) as remit:
        lasting = asyncio.create_task(server._lasting(remit))
        for _ in range(2):
            failing = remit.engine.ended("none")
            local_engine(remit).holding.fail(JournalError("the journal is away", code=Code.JOURNAL_IO))
            with pytest.raises(JournalError):
                await failing
            job = await remit.start(counts())
            assert (await remit.service.jobs.settled([job.id]))[0].state == "completed"
        lasting.cancel()
        await asyncio.wait([lasting])
