"""Workers that are killed and frozen, and a server that crashes: no time is missing, and none has two jobs.

REMIT_TEST_CHAOS=60 kills or freezes so many, with as many schedules; each comes once a second.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
from collections import Counter
from contextlib import suppress
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Semaphore
from pathlib import Path
from typing import Any, Final

import pytest

from remit import Remit
from remit.cli import services
from remit.clock import SECOND
from remit.journal.event import HeadQuery
from remit.journal.journal import Journal
from remit.journal.kinds import decode
from remit.journal.scan import every_head
from remit.parts.schedules.kinds import ScheduleFired, ScheduleSkipped
from remit.parts.schedules.schedule import Schedule
from remit.parts.schedules.state import DAY_KIND
from remit.parts.schedules.wiring import schedules_of
from remit.parts.schedules.work import OccurrenceLog
from remit.service.jobs import Jobs
from remit.settings import load
from tests.journal.postgres.server import PostgresServer
from tests.parts.schedules.clockwork import note

pytestmark = pytest.mark.slow

HARMS: Final = int(os.environ.get("REMIT_TEST_CHAOS", "5"))
SCHEDULES: Final = max(HARMS, 4) if "REMIT_TEST_CHAOS" in os.environ else 4
RESTARTS: Final = 3
WORKERS: Final = 3
LEASE_S: Final = 1
DEADLY: Final = 0.01
"""How often a process dies before or after it starts a job, and before or after it records that."""


def opened(url: str, folder: str) -> Remit:
    flags = {"journal.url": url, "app.principal": "ann", "jobs.lease_seconds": LEASE_S}
    return Remit(settings=load(env={}, cwd=Path(folder), flags=flags), recipes=[note], work=False)


def deadly(method: Any, chance: random.Random) -> Any:
    """The same method, at whose beginning or end the process may die."""

    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        die()
        returned = await method(*args, **kwargs)
        die()
        return returned

    def die() -> None:
        if chance.random() < DEADLY:
            os.kill(os.getpid(), signal.SIGKILL)

    return wrapped


def counted(method: Any, firings: Semaphore) -> Any:
    """The same method, which others are told of once it is done."""

    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        returned = await method(*args, **kwargs)
        firings.release()
        return returned

    return wrapped


def worker(url: str, folder: str, seed: int, firings: Semaphore) -> None:
    """Start what is due until killed; entry point of a process."""
    services.AGAIN_S = 0.2  # type: ignore[misc]
    OccurrenceLog.fired = counted(OccurrenceLog.fired, firings)  # type: ignore[method-assign]
    if seed:
        chance = random.Random(seed)
        Jobs.start_named = deadly(Jobs.start_named, chance)  # type: ignore[method-assign]
        OccurrenceLog.fired = deadly(OccurrenceLog.fired, chance)  # type: ignore[method-assign]

    async def main() -> None:
        async with opened(url, folder) as remit:
            (upkeep,) = [one for one in remit.beside(asyncio.Event(), "worker") if one.probe == "schedules"]
            await services.keep_part(remit, upkeep)

    asyncio.run(main())


class Fleet:
    """Processes that work, and are begun again as they die."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder = url, str(folder)
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(["tests.parts.schedules.test_chaos", "remit.app"])
        self._firings = self._processes.Semaphore(0)
        self._running: list[BaseProcess] = []
        self._chance = random.Random(43)
        self.deaths = 0

    def keep(self, number: int, *, dies: bool = True) -> None:
        self.deaths += sum(not one.is_alive() for one in self._running)
        self._running = [one for one in self._running if one.is_alive()]
        for _ in range(number - len(self._running)):
            seed = self._chance.randrange(1, 2**30) if dies else 0
            terms = self._url, self._folder, seed, self._firings
            process = self._processes.Process(target=worker, args=terms, daemon=True)
            process.start()
            self._running.append(process)

    async def fired(self) -> None:
        """Wait until a schedule was fired; those that die meanwhile are begun again."""
        while self._firings.acquire(block=False):
            pass
        self.keep(WORKERS)
        while not await asyncio.to_thread(self._firings.acquire, timeout=LEASE_S):
            self.keep(WORKERS)

    async def harm(self) -> None:
        """Kill one, or freeze it for longer than its lease."""
        victim = self._chance.choice(self._running)
        if victim.pid is None or not victim.is_alive():
            return
        if self._chance.random() < 0.5:
            victim.kill()
            return
        with suppress(ProcessLookupError):  # it may have died by itself, just before it was to stop
            os.kill(victim.pid, signal.SIGSTOP)
            await asyncio.sleep(LEASE_S * 1.5)  # noqa: TID251 - a real process is frozen for a real time
            os.kill(victim.pid, signal.SIGCONT)

    def end(self) -> None:
        for one in self._running:
            one.kill()
            one.join()
        self._running.clear()


async def chaos(url: str, folder: Path, server: PostgresServer | None = None) -> None:
    async with opened(url, str(folder)) as remit:
        for number in range(SCHEDULES):
            schedule = Schedule(name=f"s{number}", recipe="note", every="1s", overlap="allow", catch_up="all")
            await schedules_of(remit.service).add(schedule)
    fleet = Fleet(url, folder)
    try:
        for number in range(HARMS):
            await fleet.fired()
            await fleet.harm()
            if server is not None and number * RESTARTS // HARMS != (number + 1) * RESTARTS // HARMS:
                server.stop(random.Random(number).choice([signal.SIGQUIT, signal.SIGINT]))
                server.start()
        fleet.end()
        fleet.keep(1, dies=False)
        async with opened(url, str(folder)) as remit:
            await settled(remit)
            fleet.end()
            await check(remit.runtime.journal, fleet.deaths)
    finally:
        fleet.end()


async def settled(remit: Remit) -> None:
    """Wait until the workers have caught up, and pause the schedules."""
    until, mark = remit.clock.now(), 0
    rows = schedules_of(remit.service)
    while True:
        mark = await remit.runtime.journal.changed(mark)
        nexts = [(await rows.changes.state(f"s{number}")).next or 0 for number in range(SCHEDULES)]
        if min(nexts) > until:
            break
    for number in range(SCHEDULES):
        await rows.pause(f"s{number}")


async def check(journal: Journal, deaths: int) -> None:
    fired, missed = list[tuple[str, ScheduleFired]](), 0
    async for head in every_head(journal, HeadQuery(kind=DAY_KIND)):
        await journal.verify(head.stream)
        for event in await journal.left(head.stream):
            occurrence = decode(event.kind, event.data)
            missed += isinstance(occurrence, ScheduleSkipped)
            if isinstance(occurrence, ScheduleFired):
                fired.append((head.stream.split("/")[1], occurrence))
    for name in {schedule for schedule, _ in fired}:
        times = sorted(occurrence.at for schedule, occurrence in fired if schedule == name)
        assert times == list(range(times[0], times[-1] + 1, SECOND)), f"{name}: a time is missing, or came twice"
    jobs = [head.stream.partition("/")[2] async for head in every_head(journal, HeadQuery(kind="job"))]
    assert Counter(jobs) == Counter(occurrence.job for _, occurrence in fired)
    assert len({schedule for schedule, _ in fired}) == SCHEDULES
    assert missed == 0
    print(f"{len(fired)} firings, {len(jobs)} jobs, {deaths} deaths")  # noqa: T201 - for `pytest -s`


async def test_on_sqlite_no_time_is_missing_and_none_comes_twice(tmp_path: Path) -> None:
    await chaos(str(tmp_path / "journal.db"), tmp_path)


async def test_nor_on_postgresql_whose_server_crashes(tmp_path: Path) -> None:
    with PostgresServer.running() as server:
        await chaos(server.url, tmp_path, server)
