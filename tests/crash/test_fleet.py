"""A fleet in trouble: every second of eight workers killed, one frozen, a server and PostgreSQL restarted.

Each job and ticket ends once, no effect happens twice, nothing of a stale worker is merged, and nothing waits for ever.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections import Counter
from contextlib import ExitStack, suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

from remit import Code, Remit
from remit.errors import StateError
from remit.jobs.state import stream_of
from remit.parts.tickets.ticket import derived_id
from tests.crash.fleet_worker import STEPS, opened, serve, work
from tests.crash.test_server import answered
from tests.crash.test_tickets import create
from tests.crash.test_tickets import settle as settle_tickets
from tests.crash.ticket_worker import FOLDER
from tests.journal.postgres.server import PostgresServer
from tests.ports import free_port

pytestmark = pytest.mark.slow
JOBS = int(os.environ.get("REMIT_TEST_FLEET_JOBS", "24"))
TICKETS = int(os.environ.get("REMIT_TEST_FLEET_TICKETS", "6"))
WORKERS, SERVERS, AT_ONCE = 8, 3, 12
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.crash.fleet_worker", "remit.app"])


class Fleet:
    """The processes of a fleet."""

    def __init__(self, url: str, folder: Path, placer: str, stack: ExitStack) -> None:
        self.folder = folder
        self._given = url, str(folder), placer
        self.ports = [free_port() for _ in range(SERVERS)]
        self._stack = stack
        self.servers = [self.start(serve, port) for port in self.ports]
        self.workers: list[ForkServerProcess] = []

    def start(self, target: Any, *given: Any) -> ForkServerProcess:
        """A process that is gone at the end, whatever happens."""
        process = PROCESSES.Process(target=target, args=(*self._given, *given))
        process.start()
        self._stack.callback(process.join)
        self._stack.callback(process.kill)
        return process

    def kill(self, place: int) -> None:
        """End a worker, and start another in its place."""
        self.workers[place].kill()
        self.workers[place].join()
        self.workers[place] = self.start(work)

    def lines(self, book: str) -> list[str]:
        """The effects that happened."""
        path = self.folder / book
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


async def start_jobs(fleet: Fleet) -> list[str]:
    """Jobs that are asked for over HTTP, each at one of the servers; one of them is restarted in between."""

    async def start(number: int) -> str:
        place = number % SERVERS
        asked = {"recipe": "ten_steps", "input": {}}
        status, body = await answered(fleet.servers[place], fleet.ports[place], "/v1/jobs", asked, f"job-{number}")
        assert status == 201, body
        return str(body["job"])

    jobs: list[str] = []
    for first in range(0, JOBS, AT_ONCE):
        asking = asyncio.gather(*map(start, range(first, min(first + AT_ONCE, JOBS))))
        if first <= JOBS // 2 < first + AT_ONCE:
            fleet.servers[0].kill()
            fleet.servers[0].join()
            fleet.servers[0] = fleet.start(serve, fleet.ports[0])
        jobs += await asking
    return jobs


async def trouble(fleet: Fleet, remit: Remit, server: PostgresServer) -> None:
    """Begin the trouble; each part of it comes once work has gone on."""
    journal, mark = remit.runtime.journal, 0

    async def until_more() -> None:
        nonlocal mark
        before = len(fleet.lines("files"))
        while len(fleet.lines("files")) == before < JOBS * 8:
            mark = await journal.changed(mark)

    frozen = fleet.workers[0].pid
    assert frozen is not None
    await until_more()
    os.kill(frozen, signal.SIGSTOP)
    for place in range(1, WORKERS, 2):
        await until_more()
        fleet.kill(place)
    await asyncio.to_thread(server.stop, signal.SIGINT)
    await asyncio.to_thread(server.start)
    await until_more()
    os.kill(frozen, signal.SIGCONT)


async def settle(remit: Remit, fleet: Fleet) -> None:
    """Decide as a person would, who looks at the bank's books."""
    done = set(fleet.lines("pays"))
    for row in await remit.service.jobs.rows(("waiting",), limit=1_000):
        view = await remit.service.jobs.view(row.job)
        if row.code == Code.JOB_ENDS_WORKERS.name:
            with suppress(StateError):
                await remit.service.jobs.resume(row.job)
        for step in view.steps:
            if step.state == "unknown" and step.name == "tool.bank.pay":
                happened = f"{stream_of(row.job)} {step.step}" in done
                with suppress(StateError):  # it may have been decided already, and not been heard of
                    await remit.service.steps.decide(row.job, step.step, "done" if happened else "retry", 1)
    await settle_tickets(remit, fleet.folder / "witness")


async def until_all_ended(remit: Remit, fleet: Fleet, jobs: list[str], tools: list[str]) -> None:
    """Wait until nothing is open any more."""
    journal, mark, left = remit.runtime.journal, 0, set(tools)
    while True:
        mark = await journal.changed(mark)
        counts = await journal.counts("job")
        if counts.get("completed", 0) >= len(jobs) + len(tools):
            for tool in list(left):
                if (await remit.service.tickets.get(tool)).status == "done":
                    left.discard(tool)
            if not left:
                return
        await settle(remit, fleet)


@pytest.mark.parametrize("placer", ["local", "dbos"])
async def test_each_job_and_ticket_of_a_fleet_in_trouble_ends_once(placer: str, tmp_path: Path) -> None:
    FOLDER.append(tmp_path)
    (tmp_path / "witness").touch()
    with PostgresServer.running(fsync="on") as server, ExitStack() as stack:
        fleet = Fleet(server.url, tmp_path, placer, stack)
        async with opened(server.url, tmp_path, "local") as remit:
            jobs = await start_jobs(fleet)
            tools = await create(remit, TICKETS)
            fleet.workers = [fleet.start(work) for _ in range(WORKERS)]
            await trouble(fleet, remit, server)
            await until_all_ended(remit, fleet, jobs, tools)
            for job in jobs:
                kinds = Counter(event.kind for event in await remit.service.streams.events(stream_of(job)))
                assert kinds["job_completed"] == 1
                assert kinds["tool_invocation_finished"] == STEPS  # decided ones too
                assert await remit.service.jobs.result(job) == STEPS
            assert Counter(fleet.lines("pays")) == {f"{stream_of(job)} {step}": 1 for job in jobs for step in (5, 10)}
            files = set(fleet.lines("files"))
            assert len(files) == len({line.rpartition(" ")[0] for line in files}) == 8 * len(jobs)
            charges = {f"{tool} {place * 10 + part}": 1 for place, tool in enumerate(tools) for part in range(2)}
            assert Counter(fleet.lines("witness")) == charges
            assert await remit.runtime.journal.counts("job") == {"completed": len(jobs) + len(tools)}
            for tool in tools:
                reply = await remit.service.tickets.get(derived_id(tool, "REPLY"))
                assert reply.metadata.parent_ticket_id == tool
            assert (await remit.service.streams.verify()).problems == ()
