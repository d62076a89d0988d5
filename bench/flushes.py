"""Side-effecting steps on disks of known speed: how often they flush, and what a slow flush leaves of their rate."""

from __future__ import annotations

import math

from bench.disk import inserted
from bench.lab import Lab
from bench.measure import Mark, PeerMissingError, Reading, Result, against
from bench.slow import rate_on
from bench.subject import remit_in, writes

FEW, STEPS, FAST_STEPS = 50, 200, 1_000
SLOW_US, FAST_US = 2_000, 50


async def flushed(lab: Lab) -> list[Result]:
    """Flushes of the log for each side-effecting step, beyond those of a job without steps."""

    async def sample() -> Reading:
        with inserted() as disk:
            async with remit_in(lab.folder) as remit:
                before = disk.flushes
                await remit.run(writes(0))
                of_job = disk.flushes - before
                # Few enough steps that the log is not written back meanwhile, which flushes it once more.
                await remit.run(writes(FEW))
                steps = disk.flushes - before - 2 * of_job
        assert steps >= FEW, "an intent was not flushed before its tool ran"
        return Reading(steps / FEW)

    return await against("flushes, side-effecting step", "flushes", sample, None, "counted", mark=Mark(1))


async def slow_disk(lab: Lab) -> list[Result]:
    """Sequential side-effecting steps where a flush takes 2 ms."""
    return await _on_disk(lab, SLOW_US, STEPS, Mark(0.8, "floor"))


async def fast_disk(lab: Lab) -> list[Result]:
    """The same where a flush takes 50 µs."""
    return await _on_disk(lab, FAST_US, FAST_STEPS, Mark(0.35, "floor"))


async def _on_disk(lab: Lab, delay_us: int, steps: int, mark: Mark) -> list[Result]:
    async def sample() -> Reading:
        return await rate_on(lab.folder, "remit", delay_us, steps)

    async def floor() -> Reading:
        return await rate_on(lab.folder, "floor", delay_us, steps)

    name = f"side-effecting step, flush of {delay_us:,} µs"
    try:
        return await against(name, "per second", sample, floor, "floor: SQLite, one FULL commit a step", mark=mark)
    except PeerMissingError as error:
        return [Result(name=name, value=math.nan, unit="per second", note=f"skipped: {error}")]
