"""Steps through the whole of Remit: gate, journal and recipe."""

from __future__ import annotations

import asyncio

from bench import floors
from bench.lab import DBOS_POSTGRES, DBOS_SQLITE, LANGGRAPH, RESTATE, TEMPORAL, Lab
from bench.measure import Mark, Reading, Result, Watch, against
from bench.subject import nothing, reads, remit_in, writes
from remit import Remit

READS, WRITES, JOBS, EACH, SHORT = 4_000, 1_000, 64, 50, 500


async def read_only(lab: Lab) -> list[Result]:
    """Sequential read-only steps; recorded, not waited for."""

    async def sample() -> Reading:
        async with remit_in(lab.folder) as remit:
            watch = Watch()
            await remit.run(reads(READS))
            return watch.rate(READS)

    async def floor() -> Reading:
        return await floors.one_transaction_each(lab.folder, READS, "FULL")

    marks = {LANGGRAPH: Mark(5, "peer"), DBOS_SQLITE: Mark(10, "peer"), DBOS_POSTGRES: Mark(10, "peer")}

    return await against(
        "read-only step, sequential",
        "per second",
        sample,
        floor,
        "floor: SQLite, one FULL commit a step",
        peers=lab.rivals("sequential", marks),
    )


async def side_effecting(lab: Lab) -> list[Result]:
    """Sequential side-effecting steps; each intent is on disk before its tool runs."""

    async def sample() -> Reading:
        async with remit_in(lab.folder) as remit:
            watch = Watch()
            await remit.run(writes(WRITES))
            return watch.rate(WRITES)

    async def floor() -> Reading:
        return await floors.one_transaction_each(lab.folder, WRITES, "FULL")

    return await against(
        "side-effecting step, sequential",
        "per second",
        sample,
        floor,
        "floor: SQLite, one FULL commit a step",
        peers=lab.rivals("sequential"),
    )


async def at_once(remit: Remit, watch: Watch) -> Reading:
    """64 jobs of 50 read-only steps, from now on."""
    started = await asyncio.gather(*(remit.start(reads(EACH)) for _ in range(JOBS)))
    await asyncio.gather(*(job.result() for job in started))
    return watch.rate(JOBS * EACH)


async def concurrent(lab: Lab) -> list[Result]:
    """64 jobs of 50 read-only steps at once."""

    async def sample() -> Reading:
        async with remit_in(lab.folder) as remit:
            return await at_once(remit, Watch())

    async def floor() -> Reading:
        return await floors.grouped(lab.folder, JOBS * EACH, 64)

    marks = {LANGGRAPH: Mark(5, "peer"), RESTATE: Mark(3, "peer")}

    return await against(
        "64 jobs of 50 read-only steps",
        "per second",
        sample,
        floor,
        "floor: SQLite FULL, groups of 64",
        mark=Mark(10_000),
        peers=lab.rivals("concurrent", marks),
    )


async def short_jobs(lab: Lab) -> list[Result]:
    """Jobs that do nothing: created, run and finished durably."""

    async def sample() -> Reading:
        async with remit_in(lab.folder) as remit:
            watch = Watch()
            started = await asyncio.gather(*(remit.start(nothing()) for _ in range(SHORT)))
            await asyncio.gather(*(job.result() for job in started))
            return watch.rate(SHORT)

    async def floor() -> Reading:
        rows = await floors.grouped(lab.folder, 3 * SHORT // 64 * 64, 64)
        return Reading(rows.value / 3)

    return await against(
        "short job, start to end",
        "per second",
        sample,
        floor,
        "floor: three rows a job, groups of 64",
        mark=Mark(1_000),
    )


async def replayed(lab: Lab) -> list[Result]:
    """Recorded steps given back by a replay."""

    async def sample() -> Reading:
        async with remit_in(lab.folder) as remit:
            job = await remit.start(reads(READS))
            await job
            watch = Watch()
            report = await remit.service.jobs.replay(job.id)
            rate = watch.rate(READS)
            assert report.verdict == "same"
            return rate

    async def floor() -> Reading:
        async with remit_in(lab.folder) as remit:
            job = await remit.start(reads(READS))
            await job
            watch = Watch()
            await remit.service.jobs.history(job.id)
            return watch.rate(READS)

    return await against(
        "replay, recorded step",
        "per second",
        sample,
        floor,
        "floor: reading and folding its events",
        mark=Mark(60_000),
        peers=[*lab.rivals("replay"), *lab.rival(TEMPORAL, "replay", None)],
    )
