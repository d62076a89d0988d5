"""Steps through the whole of Remit: gate, journal and recipe."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench import floors
from bench.measure import Result, Watch, against
from bench.subject import nothing, reads, remit_in, writes

READS, WRITES, JOBS, EACH, SHORT = 4_000, 1_000, 64, 50, 500


async def read_only(folder: Path) -> Result:
    """Sequential read-only steps; recorded, not waited for."""

    async def sample() -> float:
        async with remit_in(folder) as remit:
            watch = Watch()
            await remit.run(reads(READS))
            return watch.rate(READS)

    async def floor() -> float:
        return await floors.one_transaction_each(folder, READS, "FULL")

    return await against(
        "read-only step, sequential", "per second", sample, floor, "floor: SQLite, one FULL commit a step"
    )


async def side_effecting(folder: Path) -> Result:
    """Sequential side-effecting steps; each intent is on disk before its tool runs."""

    async def sample() -> float:
        async with remit_in(folder) as remit:
            watch = Watch()
            await remit.run(writes(WRITES))
            return watch.rate(WRITES)

    async def floor() -> float:
        return await floors.one_transaction_each(folder, WRITES, "FULL")

    return await against(
        "side-effecting step, sequential", "per second", sample, floor, "floor: SQLite, one FULL commit a step"
    )


async def concurrent(folder: Path) -> Result:
    """64 jobs of 50 read-only steps at once."""

    async def sample() -> float:
        async with remit_in(folder) as remit:
            watch = Watch()
            started = [await remit.start(reads(EACH)) for _ in range(JOBS)]
            await asyncio.gather(*(job.result() for job in started))
            return watch.rate(JOBS * EACH)

    async def floor() -> float:
        return await floors.grouped(folder, JOBS * EACH, 64)

    return await against(
        "64 jobs of 50 read-only steps", "per second", sample, floor, "floor: SQLite FULL, groups of 64"
    )


async def short_jobs(folder: Path) -> Result:
    """Jobs that do nothing: created, run and finished durably."""

    async def sample() -> float:
        async with remit_in(folder) as remit:
            watch = Watch()
            started = await asyncio.gather(*(remit.start(nothing()) for _ in range(SHORT)))
            await asyncio.gather(*(job.result() for job in started))
            return watch.rate(SHORT)

    async def floor() -> float:
        return await floors.grouped(folder, 3 * SHORT // 64 * 64, 64) / 3

    return await against(
        "short job, start to end", "per second", sample, floor, "floor: three rows a job, groups of 64"
    )


async def replayed(folder: Path) -> Result:
    """Recorded steps given back by a replay."""

    async def sample() -> float:
        async with remit_in(folder) as remit:
            job = await remit.start(reads(READS))
            await job
            watch = Watch()
            report = await remit.queries.replay(job.id)
            rate = watch.rate(READS)
            assert report.verdict == "same"
            return rate

    async def floor() -> float:
        async with remit_in(folder) as remit:
            job = await remit.start(reads(READS))
            await job
            watch = Watch()
            await remit.queries.history(job.id)
            return watch.rate(READS)

    return await against("replay, recorded step", "per second", sample, floor, "floor: reading and folding its events")
