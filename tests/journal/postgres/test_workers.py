"""Several worker processes on one database: they share the jobs, and a dead one's are taken over."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from remit import Remit
from remit.errors import StateError
from remit.settings import load
from tests.journal.postgres.server import PostgresServer

MODULE = """
import asyncio, os, pathlib
from remit import Run, recipe, tool

@tool("log.line", level="L1", side_effects=True)
async def line(path: str, text: str) -> int:
    await asyncio.sleep(0.03)
    with open(path, "a") as file:
        file.write(f"{text} {os.getpid()}\\n")
    return os.getpid()

@recipe("logged")
async def logged(run: Run, path: str, number: int) -> int:
    done = 0
    for part in range(3):
        done += (await run.call("log.line", {"path": path, "text": f"{number}.{part}"})).value > 0
    return done
"""
POLICY = """
[[policy.rules]]
id = "may-log"
effect = "allow"
tools = ["log.line"]
"""
JOBS = 40


@pytest.fixture
def project(tmp_path: Path, postgres: PostgresServer, schema: str) -> Path:
    (tmp_path / "logged.py").write_text(MODULE)
    (tmp_path / "remit.toml").write_text(
        f'[app]\nmodules = ["logged.py"]\n[journal]\nurl = "{postgres.url}&schema={schema}"\n'
        f"[jobs]\nlease_seconds = 2\n{POLICY}"
    )
    return tmp_path


@pytest.fixture
def workers(project: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    command = [sys.executable, "-m", "remit", "worker", "--concurrency", "4"]
    logs = [project / f"worker{number}.log" for number in range(3)]
    with ExitStack() as files:
        running = [subprocess.Popen(command, cwd=project, stderr=files.enter_context(log.open("w"))) for log in logs]
        try:
            while not all("works on" in log.read_text() for log in logs):
                assert all(one.poll() is None for one in running)
            yield running
        finally:
            for one in running:
                one.send_signal(signal.SIGKILL)
                one.wait()


async def results(remit: Remit, log: Path) -> list[Any]:
    jobs = [await remit.commands.start_named("logged", {"path": str(log), "number": str(n)}) for n in range(JOBS)]
    return await asyncio.gather(*(remit.job(job) for job in jobs))


async def test_each_job_runs_once_and_all_take_part(project: Path, workers: list[subprocess.Popen[bytes]]) -> None:
    log = project / "log"
    async with Remit(settings=load(cwd=project, env={}), work=False) as remit:
        assert await results(remit, log) == [3] * JOBS
    lines = [line.split() for line in log.read_text().splitlines()]
    assert sorted(text for text, _ in lines) == sorted(f"{n}.{part}" for n in range(JOBS) for part in range(3))
    shares = collections.Counter(int(pid) for _, pid in lines)
    assert set(shares) == {one.pid for one in workers}


async def test_a_dead_workers_jobs_are_taken_over(project: Path, workers: list[subprocess.Popen[bytes]]) -> None:
    log = project / "log"
    async with Remit(settings=load(cwd=project, env={}), work=False) as remit:
        running = asyncio.create_task(results(remit, log))
        while not log.exists() or not log.read_text().endswith("\n"):
            await remit.runtime.journal.changed(0)
            await remit.runtime.journal.head("job/none")
        first = int(log.read_text().split()[1])
        next(one for one in workers if one.pid == first).send_signal(signal.SIGKILL)
        # What was announced and not recorded may have happened: a person says so, and the job goes on.
        while not running.done():
            for job in await remit.queries.jobs(("waiting",), limit=JOBS):
                for step in (await remit.queries.job(job.job)).steps:
                    if step.state == "unknown":
                        with contextlib.suppress(StateError):  # it has gone on since it was looked at
                            await remit.commands.decide_step(job.job, step.step, "done", value=1)
            await remit.runtime.journal.head("job/none")
        assert await running == [3] * JOBS
    lines = [line.split()[0] for line in log.read_text().splitlines()]
    # Nothing happened twice. What the dead worker had announced may not have happened at all.
    assert len(lines) == len(set(lines))
    assert len(lines) >= 3 * JOBS - 4
