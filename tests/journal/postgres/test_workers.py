"""Several worker processes on one database: they share the jobs, and a dead one's are taken over."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
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
    reader, writer = await asyncio.open_unix_connection(path + ".gate")
    writer.write(f"{os.getpid()}\\n".encode())
    await reader.readline()
    writer.close()
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
    running = [subprocess.Popen(command, cwd=project, stderr=subprocess.DEVNULL) for _ in range(3)]
    yield running
    for one in running:
        one.send_signal(signal.SIGKILL)
        one.wait()


class Gate:
    """Holds every call back until it is opened, and knows which workers came to it."""

    def __init__(self) -> None:
        self.came: set[int] = set()
        self.news = asyncio.Event()
        self.open = asyncio.Event()

    async def pass_through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.came.add(int(await reader.readline()))
        self.news.set()
        await self.open.wait()
        writer.write(b"go\n")
        writer.close()

    async def until(self, workers: int) -> set[int]:
        """The first so many workers that came."""
        while len(self.came) < workers:
            self.news.clear()
            await self.news.wait()
        return set(self.came)


@pytest.fixture
async def gate(project: Path) -> AsyncIterator[Gate]:
    one = Gate()
    async with await asyncio.start_unix_server(one.pass_through, str(project / "log.gate")):
        yield one


async def results(remit: Remit, log: Path) -> list[Any]:
    jobs = [await remit.service.jobs.start_named("logged", {"path": str(log), "number": str(n)}) for n in range(JOBS)]
    return await asyncio.gather(*(remit.job(job) for job in jobs))


async def test_each_job_runs_once_and_all_take_part(
    project: Path, gate: Gate, workers: list[subprocess.Popen[bytes]]
) -> None:
    log = project / "log"
    async with Remit(settings=load(cwd=project, env={}), work=False) as remit:
        running = asyncio.create_task(results(remit, log))
        # There is more to do than two of them may take at once.
        assert await gate.until(len(workers)) == {one.pid for one in workers}
        gate.open.set()
        assert await running == [3] * JOBS
    lines = [line.split() for line in log.read_text().splitlines()]
    assert sorted(text for text, _ in lines) == sorted(f"{n}.{part}" for n in range(JOBS) for part in range(3))
    assert {int(pid) for _, pid in lines} == {one.pid for one in workers}


async def test_a_dead_workers_jobs_are_taken_over(
    project: Path, gate: Gate, workers: list[subprocess.Popen[bytes]]
) -> None:
    log = project / "log"
    async with Remit(settings=load(cwd=project, env={}), work=False) as remit:
        running = asyncio.create_task(results(remit, log))
        dead = (await gate.until(1)).pop()
        next(one for one in workers if one.pid == dead).send_signal(signal.SIGKILL)
        gate.open.set()
        # What was announced and not recorded may have happened: a person says so, and the job goes on.
        while not running.done():
            for job in await remit.service.jobs.rows(("waiting",), limit=JOBS):
                for step in (await remit.service.jobs.view(job.job)).steps:
                    if step.state == "unknown":
                        with contextlib.suppress(StateError):  # it has gone on since it was looked at
                            await remit.service.steps.decide(job.job, step.step, "done", value=1)
            await remit.runtime.journal.head("job/none")
        assert await running == [3] * JOBS
    lines = [line.split()[0] for line in log.read_text().splitlines()]
    # Nothing happened twice. What the dead worker had announced may not have happened at all.
    assert len(lines) == len(set(lines))
    assert len(lines) >= 3 * JOBS - 4
