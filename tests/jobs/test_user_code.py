"""Code of users ends its own job, and never the worker that runs it."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from remit import Code, JobEndedError, Remit, Run, recipe, tool
from remit.errors import JournalError
from remit.jobs.execution import LeasedJob
from remit.settings import load
from tests.opened import OpenRemit, until


@recipe("leaves")
async def leaves(run: Run) -> None:
    """Exit with words."""
    raise SystemExit("bad configuration")


@recipe("interrupts")
async def interrupts(run: Run) -> None:
    """Raise what Ctrl-C raises."""
    raise KeyboardInterrupt


@recipe("task_leaves")
async def task_leaves(run: Run) -> None:
    """Exit in a task of its own."""
    await asyncio.create_task(leave())


@recipe("group_leaves")
async def group_leaves(run: Run) -> None:
    """Exit in a group of tasks."""
    async with asyncio.TaskGroup() as group:
        group.create_task(leave())


@recipe("branches_leave")
async def branches_leave(run: Run) -> None:
    """Exit within a branch."""
    await run.gather(leave(), leave())


async def leave() -> None:
    raise SystemExit(3)


class OddError(BaseException):
    """What no `except Exception` catches."""


@recipe("odd")
async def odd(run: Run) -> None:
    """Raise something odd."""
    raise OddError("very odd")


@recipe("cut")
async def cut(run: Run) -> None:
    """Fail with half of a surrogate pair, as a text has that was cut in the middle of one."""
    raise ValueError("the title was " + chr(0xD83D))


@recipe("later")
async def later(run: Run) -> None:
    """Sleep for longer than any clock counts."""
    await run.sleep(1e13)


@recipe("asks_cut")
async def asks_cut(run: Run) -> None:
    """Ask a person in words that cannot be recorded."""
    await run.confirm("Is this " + chr(0xD83D) + " yours?")


@recipe("good")
async def good(run: Run) -> str:
    """Come to a good end."""
    return "good"


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (leaves, "'bad configuration'"),
        (interrupts, "KeyboardInterrupt"),
        (branches_leave, "exit with 3"),
        (task_leaves, "exit with 3"),
        (group_leaves, "TaskGroup"),
        (odd, "very odd"),
        (cut, r"the title was \\ud83d"),
        (later, "ten years"),
        (asks_cut, "lone surrogate"),
    ],
    ids=lambda case: getattr(case, "name", None),
)
async def test_a_recipe_that_would_end_its_worker_fails_alone(remit_in: OpenRemit, bad: Any, words: str) -> None:
    async with remit_in(recipes=[bad, good]) as remit:
        job = await remit.start(bad())
        with pytest.raises(JobEndedError, match=words):
            await job
        view = await job.view()
        assert view.state == "failed"
        assert view.error is not None
        assert view.error.frames
        assert await remit.run(good()) == "good"


async def test_a_task_that_no_recipe_waits_for_ends_nothing_else(remit_in: OpenRemit) -> None:
    left: list[asyncio.Task[None]] = []

    @recipe("forgets")
    async def forgets(run: Run) -> str:
        left.append(asyncio.create_task(leave()))
        await run.sleep(0.01)
        return "done"

    async with remit_in(recipes=[forgets]) as remit:
        assert await remit.run(forgets()) == "done"
    assert "exit with 3" in str(left[0].exception())


async def test_a_tool_that_raises_what_ctrl_c_raises_fails_alone(remit_in: OpenRemit) -> None:
    @tool("bad.interrupt", level="L0")
    async def interrupt() -> None:
        """Raise it."""
        raise KeyboardInterrupt

    async with remit_in(tools=[interrupt]) as remit:
        outcome = await remit.call("bad.interrupt")
    assert outcome.code is Code.TOOL_EXEC_FAILED


def refusing(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let the storage refuse the end of a job so often."""
    finish, left = LeasedJob.finish, [None] * times

    async def refused(self: LeasedJob, state: str, *given: Any, **more: Any) -> None:
        if left:
            left.pop()
            error = JournalError("the storage cannot hold it", code=Code.RECORD_INVALID)
            self.writer.fail(error)
            raise error
        await finish(self, state, *given, **more)

    monkeypatch.setattr(LeasedJob, "finish", refused)


async def test_an_end_that_cannot_be_recorded_is_recorded_in_plain_words(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing(monkeypatch, 1)
    async with remit_in(recipes=[good]) as remit:
        job = await remit.start(good())
        with pytest.raises(JobEndedError) as caught:
            await job
        assert caught.value.code is Code.RECORD_INVALID
        assert (await remit.service.streams.verify()).problems == ()


async def test_a_job_whose_end_cannot_be_recorded_at_all_is_stuck(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing(monkeypatch, 2)
    async with remit_in(recipes=[good]) as remit:
        job = await remit.start(good())
        (row,) = await remit.settled(job.id)
        assert (row.state, row.code, row.worker) == ("waiting", "RECORD_INVALID", "")
        await remit.service.jobs.resume(job.id)
        assert await job == "good"


@recipe("deadly")
async def deadly(run: Run) -> str:
    """End the process, unless it is told not to."""
    if not os.environ.get("TEST_MILD"):
        os._exit(3)
    return "mild"


def work(folder: str) -> None:
    """Work until the process ends; entry point of a worker process."""

    async def main() -> None:
        settings = load(env={}, cwd=Path(folder), flags={"journal.url": f"{folder}/journal.db"})
        async with Remit(settings=settings, recipes=[deadly]):
            await asyncio.Event().wait()

    asyncio.run(main())


@pytest.mark.slow
async def test_a_job_that_ended_three_processes_is_left_alone_until_a_person_resumes_it(
    remit_in: OpenRemit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in(recipes=[deadly], work=False) as remit:
        job = await remit.start(deadly())
        for _ in range(3):
            process = multiprocessing.get_context("spawn").Process(target=work, args=(str(tmp_path),))
            process.start()
            await asyncio.to_thread(process.join)
            assert process.exitcode == 3
    async with remit_in(recipes=[deadly]) as remit:
        row = await until(remit, job.id, lambda row: row.code != "")
        assert (row.state, row.code, row.worker) == ("waiting", "JOB_ENDS_WORKERS", "")
        error = (await remit.service.jobs.view(job.id)).error
        assert error is not None
        assert "3 processes in a row died" in error.message
        monkeypatch.setenv("TEST_MILD", "1")
        await remit.service.jobs.resume(job.id)
        assert await remit.job(job.id) == "mild"
