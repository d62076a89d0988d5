from __future__ import annotations

import asyncio

import pytest

from remit import Options, Run, recipe
from remit.errors import AppendConflictError, NotFoundError, UsageError
from remit.ids import new_id
from remit.jobs.state import stream_of
from remit.journal.event import StreamHead
from tests.opened import OpenRemit, until_waiting


@recipe("short")
async def short(run: Run) -> str:
    """Do nothing."""
    return "done"


@recipe("gives_up")
async def gives_up(run: Run) -> None:
    """Wait, then fail."""
    await run.wait_signal("go")
    raise ValueError("enough")


@pytest.mark.parametrize(
    "job", ["job_x", "x", "run_" + "0" * 26, "job_" + "0" * 27, "job_" + "z" * 26, "job_" + "u" * 26]
)
async def test_what_is_no_identifier_of_a_job_is_refused(remit_in: OpenRemit, job: str) -> None:
    async with remit_in(recipes=[short], work=False) as remit:
        with pytest.raises(UsageError, match="is not a job's identifier"):
            _ = await remit.start(short(), Options(job=job))
        assert await remit.service.jobs.rows() == []


async def test_a_job_whose_identifier_is_given_is_started_once(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[short]) as remit:
        options = Options(job=new_id("job"))
        assert await (await remit.start(short(), options)) == "done"
        with pytest.raises(AppendConflictError):
            _ = await remit.start(short(), options)


async def test_a_title_says_what_was_given_and_no_defaults(remit_in: OpenRemit) -> None:
    @recipe("works")
    async def works(run: Run, task: str, turns: int = 50, model: str | None = None) -> None:
        """Do nothing."""

    async with remit_in(recipes=[works], work=False) as remit:
        for call in (works("Look around"), works("Look around", turns=5)):
            _ = await remit.start(call)
        _ = await remit.start(works("x" * 20_000))
        titles = [row.title for row in await remit.service.jobs.rows()]
    assert titles == ["works", "works task: Look around, turns: 5", "works Look around"]


async def test_a_job_that_ends_while_it_is_looked_at_is_told_as_it_was_at_one_moment(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in(recipes=[gives_up]) as remit:
        job = await remit.start(gives_up())
        await until_waiting(remit, job.id)
        journal, head = remit.runtime.journal, remit.runtime.journal.head

        async def fails_meanwhile(stream: str) -> StreamHead | None:
            found = await head(stream)
            monkeypatch.setattr(journal, "head", head)
            await job.signal("go")
            await remit.ended(job.id)
            return found

        monkeypatch.setattr(journal, "head", fails_meanwhile)
        view = await job.view()
        assert (view.row.state, view.error, [wait.key for wait in view.waits]) == ("waiting", None, ["go"])
        view = await job.view()
        assert (view.row.state, view.error and view.error.message, view.waits) == ("failed", "ValueError: enough", ())


async def test_a_job_has_no_result_before_it_has_completed(remit_in: OpenRemit) -> None:
    gate = asyncio.Event()

    @recipe("late")
    async def late(run: Run) -> str:
        """Wait, then think."""
        word = str(await run.wait_signal("go"))
        await gate.wait()
        return word

    async with remit_in(recipes=[late]) as remit:
        job = await remit.start(late())
        await job.signal("go", "done")
        results = []
        async for _ in remit.service.streams.follow(stream_of(job.id)):
            results.append(await remit.service.jobs.result(job.id))
            if len(results) == 3:  # its making, the wait and its end
                gate.set()
        assert results == [None, None, None, "done"]


async def test_a_job_is_replayed_on_its_record(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[short]) as remit:
        job = await remit.start(short())
        await job
        assert (await remit.replay(job.id)).verdict == "same"
        with pytest.raises(NotFoundError):
            await remit.replay("job_" + "0" * 26)
