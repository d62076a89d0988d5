"""What a journal with a million events costs more than one with ten thousand."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from bench.journal import invocation
from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Sample, Watch, against
from remit.clock import SECOND, SystemClock
from remit.jobs.state import KIND, stream_of
from remit.journal.event import HeadPatch, HeadQuery, LeaseClaim
from remit.journal.journal import Journal
from remit.journal.sqlite.store import SqliteStore

FEW_JOBS, MANY_JOBS, EVENTS = 1_000, 100_000, 10
"""Jobs of the two journals, and events in each job."""
APPENDS, CLAIMS, LISTS = 300, 50, 100


def _name(number: int) -> str:
    return stream_of(f"job_{number:026}")


@asynccontextmanager
async def filled(path: Path, jobs: int) -> AsyncIterator[Journal]:
    """A journal with so many jobs; every second one is due, the others have ended."""
    clock = SystemClock()
    journal = Journal(SqliteStore(str(path), clock))
    event = invocation()
    try:
        for number in range(jobs):
            due = number % 2 == 0
            patch = HeadPatch(state="pending" if due else "completed", due_at=number if due else None, closed=not due)
            await journal.append(journal.writer(_name(number), KIND), *[event] * EVENTS, synced=False, patch=patch)
        await journal.drained()
        yield journal
    finally:
        await journal.close()


async def appended(journal: Journal, jobs: int, chance: random.Random) -> Reading:
    """Durable appends of one event, to jobs anywhere in the journal."""
    event = invocation()
    streams = [_name(number) for number in chance.sample(range(0, jobs, 2), min(APPENDS, jobs // 2))]
    writers = [journal.writer(stream, KIND, await journal.head(stream)) for stream in streams]
    watch = Watch()
    for writer in writers:
        await journal.append(writer, event, synced=True)
    return watch.micros(len(writers))


async def claimed(journal: Journal, _jobs: int, _chance: random.Random) -> Reading:
    """Claims of one due job; each becomes due again afterwards."""
    watch, leases = Watch(), []
    for _ in range(CLAIMS):
        now = journal.clock.now()
        terms = LeaseClaim(kind=KIND, owner="bench", now=now, lease_until=now + 600 * SECOND, state="running")
        leases += await journal.claim(terms)
    reading = watch.micros(CLAIMS)
    for lease in leases:
        writer = journal.writer(lease.head.stream, KIND, lease.head)
        patch = HeadPatch(state="pending", due_at=lease.previous_due, release=True)
        await journal.append(writer, invocation(), synced=False, patch=patch)
    assert len(leases) == CLAIMS
    return reading


async def listed(journal: Journal, jobs: int, chance: random.Random) -> Reading:
    """Pages of twenty ended jobs, from anywhere in the list."""
    pages = [_name(chance.randrange(jobs // 2, jobs)) for _ in range(LISTS)]
    watch = Watch()
    for before in pages:
        assert await journal.heads(HeadQuery(kind=KIND, states=("completed",), before=before, limit=20))
    return watch.micros(LISTS)


async def scale(lab: Lab) -> list[Result]:
    """Append, claim and list in a journal of 1,000,000 events and 100,000 jobs; the floor is a hundredth of it."""
    few, many, results = lab.folder / "few.db", lab.folder / "many.db", list[Result]()
    measured = {"append": appended, "claim": claimed, "list 20 jobs": listed}
    async with filled(few, FEW_JOBS) as small, filled(many, MANY_JOBS) as large:
        for name, reading in measured.items():
            note = "floor: the same at a hundredth of the size"
            results += await against(
                f"{name}, 1,000,000 events",
                "µs",
                _on(reading, large, MANY_JOBS),
                _on(reading, small, FEW_JOBS),
                note,
                mark=Mark(1.3, "floor"),
            )
    for path in (few, many):
        path.unlink()
    return results


Measured = Callable[[Journal, int, random.Random], Awaitable[Reading]]


def _on(measured: Measured, journal: Journal, jobs: int) -> Sample:
    chance = random.Random(5)

    async def sample() -> Reading:
        return await measured(journal, jobs, chance)

    return sample
