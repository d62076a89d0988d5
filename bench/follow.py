"""How soon a process that follows a stream has what another process appended."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles

import msgspec

from bench.lab import ROOT, Lab
from bench.measure import Mark, Reading, Result, against
from remit.clock import SystemClock
from remit.journal.event import HeadPatch
from remit.journal.journal import Journal
from remit.journal.kinds import StepDecided
from remit.journal.sqlite.store import SqliteStore

EVENTS, LONGEST_PAUSE_S = 150, 0.02
_STREAM = "bench/followed"


def _event() -> StepDecided:
    """Carries the time, by the clock that all processes of a machine share."""
    return StepDecided(step=str(time.monotonic_ns()), decision="done")


async def follow(lab: Lab) -> list[Result]:
    """From before a durable append in one process until the event is there in another; the value is the slowest 1 %."""
    medians = []

    async def sample() -> Reading:
        with tempfile.TemporaryDirectory(dir=lab.folder) as own:
            waits = await _followed(Path(own) / "journal.db")
        assert len(waits) == EVENTS
        percentiles = quantiles(waits, n=100)
        medians.append(percentiles[49])
        return Reading(percentiles[98])

    (result,) = await against("follow across processes, p99", "ms", sample, None, mark=Mark(5))
    return [msgspec.structs.replace(result, note=f"p50 {sorted(medians)[len(medians) // 2]:.1f} ms")]


async def _followed(path: Path) -> list[float]:
    """Append while another process follows; what it waited for each event, in milliseconds."""
    chance, clock = random.Random(5), SystemClock()
    journal = Journal(SqliteStore(str(path), clock))
    writer = await journal.create(_STREAM, "bench", _event())
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.follow", path, cwd=ROOT, stdout=asyncio.subprocess.PIPE
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


async def _follower(path: str) -> None:
    """Say when the first event is there, then follow to the end and say how late each event was."""
    journal, late = Journal(SqliteStore(path, SystemClock())), list[float]()
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
