"""Forks of long jobs, and golden jobs as a user's CI checks them."""

from __future__ import annotations

from bench.lab import DBOS_POSTGRES, DBOS_SQLITE, Lab
from bench.measure import Mark, Reading, Result, Watch, against
from bench.subject import reads, remit_in
from remit.journal.event import HeadPatch
from remit.journal.kinds import JobCreated
from remit.parts.golden.file import read, write

LONG, GOLDENS, STEPS = 10_000, 1_000, 20


async def forked(lab: Lab) -> list[Result]:
    """A fork at the last step of a long job."""

    async def sample() -> Reading:
        async with remit_in(lab.folder) as remit:
            short, long = await remit.start(reads(1)), await remit.start(reads(LONG))
            await short
            await long
            await remit.service.forks.make(short.id, "1")  # loads what a fork needs
            watch = Watch()
            fork = await remit.service.forks.make(long.id, str(LONG))
            took = watch.millis(1)
            assert fork.of == long.id
            return took

    async def floor() -> Reading:
        async with remit_in(lab.folder) as remit:
            watch = Watch()
            patch = HeadPatch(state="cancelled", closed=True)
            await remit.runtime.journal.create("job/floor", "job", JobCreated(kind="recipe", name="x"), patch=patch)
            return watch.millis(1)

    note = "floor: a job made in one durable commit"
    peers = [peer for name in (DBOS_SQLITE, DBOS_POSTGRES) for peer in lab.rival(name, "fork", None)]
    return await against(f"fork at step {LONG:,}", "ms", sample, floor, note, mark=Mark(50), peers=peers)


async def checked(lab: Lab) -> list[Result]:
    """Golden jobs, checked from their files."""

    async def sample() -> Reading:
        async with remit_in(lab.folder) as remit:
            job = await remit.start(reads(STEPS))
            await job
            path = write(lab.folder / "golden", await remit.service.golden.export(job.id, "one"))
        async with remit_in(lab.folder, flags={"journal.url": ":memory:"}) as now:
            watch = Watch()
            report = await now.service.golden.check([read(path) for _ in range(GOLDENS)])
            rate = watch.rate(GOLDENS)
            assert report.counts["same"] == GOLDENS
            return rate

    async def floor() -> Reading:
        async with remit_in(lab.folder, flags={"journal.url": ":memory:"}) as remit:
            job = await remit.start(reads(STEPS))
            await job
            watch = Watch()
            for _ in range(GOLDENS):
                await remit.service.jobs.history(job.id)
            return watch.rate(GOLDENS)

    name, note = f"check of a golden job of {STEPS} steps", "floor: reading and folding its events"
    return await against(name, "per second", sample, floor, note, mark=Mark(GOLDENS / 10))
