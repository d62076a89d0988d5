"""Several processes want the same jobs: each job is run once, by one of them at a time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing import Pipe, get_context
from pathlib import Path
from typing import Any

import pytest

from remit.clock import SystemClock
from remit.jobs.state import ENDED
from tests.crash.rivals import files, opened, pays, process, witnessed, work_off, work_until_frozen
from tests.crash.worker import WITNESS
from tests.jumping import JumpingClock
from tests.opened import until

pytestmark = pytest.mark.slow
RIVALS = 3
PATIENCE_S = 40
JOBS = 60


@pytest.fixture(autouse=True)
def _witness(tmp_path: Path) -> Iterator[None]:
    """This process may have to act as well."""
    WITNESS.append(tmp_path / "witness")
    yield
    WITNESS.pop()


@pytest.mark.parametrize("jobs", [1, JOBS])
async def test_however_many_processes_work_each_job_is_run_once(jobs: int, tmp_path: Path) -> None:
    async with opened(tmp_path, work=False) as remit:
        started = [(await remit.start(pays())).id for _ in range(jobs)]
    begin = get_context("forkserver").Event()
    with ExitStack() as stack:
        rivals = [stack.enter_context(process(work_off, str(tmp_path), begin)) for _ in range(RIVALS)]
        begin.set()
        for rival in rivals:
            rival.join(PATIENCE_S)
            assert rival.exitcode == 0
    lines = witnessed(tmp_path)
    assert len(lines) == len(set(lines)) == jobs
    async with opened(tmp_path, work=False) as remit:
        for job in started:
            kinds = [event.kind for event in await remit.service.streams.events(f"job/{job}")]
            assert kinds == ["job_created", "tool_invocation_started", "tool_invocation_finished", "job_completed"]


@pytest.mark.parametrize("moment", ["before its effect", "after its effect"])
@pytest.mark.parametrize("recipe", [pays, files], ids=["not idempotent", "idempotent"])
async def test_a_worker_that_was_frozen_past_its_lease_is_not_heard_any_more(
    recipe: Any, moment: str, tmp_path: Path
) -> None:
    async with opened(tmp_path, work=False) as remit:
        job = (await remit.start(recipe())).id
    connection, theirs = Pipe()
    with process(work_until_frozen, str(tmp_path), job, theirs) as frozen:
        theirs.close()
        connection.send(moment)
        assert connection.poll(PATIENCE_S)
        assert connection.recv() == "reached"
        assert frozen.pid is not None
        os.kill(frozen.pid, signal.SIGSTOP)
        # An hour later, its lease is long over.
        async with opened(tmp_path, clock=JumpingClock(SystemClock(), ahead_s=3_600)) as remit:
            if recipe is pays:
                await until(remit, job, lambda row: row.state == "waiting")
                await remit.service.steps.decide(job, "1", "done", os.getpid())
            assert (await remit.ended(job)).state == "completed"
            before = await remit.service.streams.events(f"job/{job}")
            os.kill(frozen.pid, signal.SIGCONT)
            connection.send("go on")
            assert connection.poll(PATIENCE_S)
            assert connection.recv() == "lost"
            frozen.join(PATIENCE_S)
            assert frozen.exitcode == 0
            assert await remit.service.streams.events(f"job/{job}") == before
            assert await remit.service.jobs.result(job) == os.getpid()
            assert (await remit.service.streams.verify(job)).problems == ()
            assert (await remit.service.jobs.row(job)).state in ENDED
    lines = witnessed(tmp_path)
    most = 1 if recipe is pays else 2
    # Thawed, it may hear that the job is not its own any more before it comes to its effect.
    assert len(lines) in ({most} if moment == "after its effect" else {most - 1, most})
    assert len(set(lines)) <= 1, "an idempotent effect kept its key"
