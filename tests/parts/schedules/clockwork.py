"""A journal whose schedules start jobs on a clock that a test moves; nobody runs the jobs unless a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from remit import Remit, Run, recipe
from remit.clock import SECOND
from remit.jobs.state import stream_of as job_stream
from remit.journal.event import Event, HeadPatch, HeadQuery
from remit.journal.kinds import JobFailed, decode
from remit.journal.kinds.payload import ErrorInfo
from remit.journal.leases import HeldLease, LeaseTerms
from remit.journal.scan import every_head
from remit.parts.schedules.kinds import Occurrence, ScheduleFired
from remit.parts.schedules.schedule import Schedule
from remit.parts.schedules.state import DAY_KIND, KIND
from remit.parts.schedules.wiring import schedules_of
from remit.parts.schedules.work import ScheduleWork
from remit.settings import load
from remit_testing.clock import ManualClock

HOUR = 3_600
DAY = 86_400


def micros(text: str) -> int:
    """A moment of ISO 8601 with its offset."""
    return round(datetime.fromisoformat(text).timestamp() * SECOND)


def hour_of(at: int) -> int:
    """The hour of a moment in UTC."""
    return datetime.fromtimestamp(at / SECOND, UTC).hour


@recipe("note")
async def note(run: Run, text: str = "") -> str:
    """Say for which time it runs."""
    return f"{text}{run.scheduled_for}"


class Clockwork:
    """A Remit, its clock, and what a worker does with its schedules."""

    def __init__(self, remit: Remit, clock: ManualClock) -> None:
        self.remit = remit
        self.clock = clock
        self.schedules = schedules_of(remit.service)
        self.journal = remit.runtime.journal
        self.work = ScheduleWork(self.journal, remit.service.jobs, remit.runtime.programs.recipes.names)
        self._terms = LeaseTerms(kind=KIND, owner="worker", seconds=30, state="running")

    async def add(self, **given: Any) -> Schedule:
        """Add a schedule of the recipe `note`, hourly unless it says more."""
        given = {"name": "hourly", "recipe": "note", **given}
        given |= {} if "cron" in given or "every" in given else {"cron": "0 * * * *"}
        return (await self.schedules.add(Schedule(**given))).spec

    async def occurrence(self) -> int:
        """Do what is due now, once for each schedule; how many were due."""
        now = self.clock.now()
        leases = await self.journal.claim(self._terms.claim(now, limit=1_000, routes=self.work.routes))
        ended = await asyncio.gather(*(self.work.take(lease, "").run() for lease in leases))
        assert [one.how for one in ended] == ["parked"] * len(leases)
        return len(leases)

    async def all_due(self) -> None:
        """Do what is due until nothing is."""
        while await self.occurrence():
            pass

    async def run_for(self, seconds: float) -> None:
        """Let time pass, and do what is due when it is due."""
        until = self.clock.now() + round(seconds * SECOND)
        await self.all_due()
        while (due := await self.journal.next_due(KIND, self.work.routes)) is not None and due <= until:
            self.clock.advance(max(0, due - self.clock.now()) / SECOND)
            await self.occurrence()
        self.clock.advance((until - self.clock.now()) / SECOND)

    async def events(self) -> list[Event]:
        """What came of all times, in the order of days."""
        heads = [head async for head in every_head(self.journal, HeadQuery(kind=DAY_KIND))]
        streams = sorted(head.stream for head in heads)
        return [event for stream in streams for event in await self.journal.left(stream)]

    async def occurrences(self) -> list[Occurrence]:
        """The same, decoded."""
        found = [decode(event.kind, event.data) for event in await self.events()]
        return [occurrence for occurrence in found if isinstance(occurrence, Occurrence)]

    async def told(self) -> list[str]:
        """The same in words: what, and the hour and minute of its time."""
        return [
            f"{occurrence.KIND.removeprefix('schedule_')} {hour_of(occurrence.at):02}"
            + f" after {occurrence.missed}" * bool(occurrence.missed)
            for occurrence in await self.occurrences()
        ]

    async def fired(self) -> list[ScheduleFired]:
        """The firings."""
        return [occurrence for occurrence in await self.occurrences() if isinstance(occurrence, ScheduleFired)]

    async def run(self, job: str) -> None:
        """Have a worker run a job to its end."""
        ended = self.remit.engine.ended(job_stream(job))
        self.remit.engine.start()
        assert (await ended).how == "completed"

    async def end(self, job: str, state: str = "completed") -> None:
        """End a job as a worker would, without running it."""
        lease = await self.journal.acquire(
            job_stream(job), LeaseTerms(kind="job", owner="worker", seconds=30).claim(self.clock.now())
        )
        assert lease is not None
        error = JobFailed(error=ErrorInfo(code="JOB_FAILED"))
        patch = HeadPatch(state=state, due_at=None, closed=True)
        await HeldLease(self.journal, lease.head).release(*((error,) if state == "failed" else ()), patch=patch)


@asynccontextmanager
async def clockwork(
    now: str = "2026-11-02T00:30:00+00:00",
    *,
    flags: Mapping[str, Any] | None = None,
    recipes: tuple[Any, ...] = (note,),
    url: str = ":memory:",
) -> AsyncIterator[Clockwork]:
    """Open one over a journal."""
    clock = ManualClock(micros(now))
    settings = load(env={}, flags={"journal.url": url, "app.principal": "ann", **(flags or {})})
    async with Remit(settings=settings, recipes=recipes, work=False, clock=clock) as remit:
        yield Clockwork(remit, clock)
