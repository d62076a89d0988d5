"""How soon a process that follows a stream has what another process appended."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median, quantiles

import msgspec

from bench.lab import ROOT, Lab
from bench.listened import listened
from bench.measure import Mark, Reading, Result, Sample, against
from bench.peers.postgres import database
from remit.clock import SystemClock
from remit.journal.event import HeadPatch
from remit.journal.journal import Journal
from remit.journal.kinds import StepDecided
from remit.wiring.journal import open_store

EVENTS, LONGEST_PAUSE_S = 150, 0.02
_STREAM = "bench/followed"
Following = Callable[[str], Awaitable[list[float]]]
"""Writes at a URL while another process follows; how late each event was there, in milliseconds."""


def _event() -> StepDecided:
    """Carries the time, by the clock that all processes of a machine share."""
    return StepDecided(step=str(time.monotonic_ns()), decision="done")


async def follow(lab: Lab) -> list[Result]:
    """From before a durable append in one process until the event is there in another; the value is the slowest 1 %."""

    @contextmanager
    def place() -> Iterator[str]:
        with tempfile.TemporaryDirectory(dir=lab.folder) as own:
            yield str(Path(own) / "journal.db")

    return await _slowest("follow across processes, p99", place, Mark(5))


async def follow_postgres(_lab: Lab) -> list[Result]:
    """The same on a PostgreSQL server of its own."""

    @contextmanager
    def place() -> Iterator[str]:
        with database() as place:
            yield place.url

    async def bare(url: str) -> list[float]:
        return await listened(url, EVENTS, LONGEST_PAUSE_S)

    return await _slowest("follow on PostgreSQL, p99", place, Mark(2), bare)


async def _slowest(
    name: str, place: Callable[[], AbstractContextManager[str]], mark: Mark, bare: Following | None = None
) -> list[Result]:
    """The slowest 1 %; the medians are in the note."""
    medians: dict[str, list[float]] = {"p50": [], "of the floor": []}

    def sampling(what: str, following: Following) -> Sample:
        async def sample() -> Reading:
            with place() as url:
                waits = await following(url)
            assert len(waits) == EVENTS
            percentiles = quantiles(waits, n=100)
            medians[what].append(percentiles[49])
            return Reading(percentiles[98])

        return sample

    floor = sampling("of the floor", bare) if bare is not None else None
    (result,) = await against(name, "ms", sampling("p50", _followed), floor, mark=mark)
    note = ", ".join(f"{what} {median(times):.1f} ms" for what, times in medians.items() if times)
    return [msgspec.structs.replace(result, note=note)]


async def _followed(url: str) -> list[float]:
    """Append while another process follows; what it waited for each event, in milliseconds."""
    chance, clock = random.Random(5), SystemClock()
    journal = Journal(open_store(url, clock))
    writer = await journal.create(_STREAM, "bench", _event())
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.follow", url, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    await process.stdout.readline()
    for _ in range(EVENTS):
        await clock.sleep(chance.uniform(0, LONGEST_PAUSE_S))
        await journal.append(writer, _event(), synced=True)
    await journal.append(writer, _event(), synced=True, patch=HeadPatch(closed=True))
    out, _ = await process.communicate()
    await journal.close()
    return msgspec.json.decode(out, type=list[float])[:EVENTS]


async def _follower(url: str) -> None:
    """Say when the first event is there, then follow to the end and say how late each event was."""
    journal, late = Journal(open_store(url, SystemClock())), list[float]()
    async for event in journal.follow(_STREAM):
        now = time.monotonic_ns()
        if event.seq == 1:
            print("following", flush=True)
        else:
            late.append((now - int(msgspec.json.decode(event.data)["step"])) / 1e6)
    print(msgspec.json.encode(late).decode())
    await journal.close()


if __name__ == "__main__":
    asyncio.run(_follower(sys.argv[1]))
