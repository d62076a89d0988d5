"""Processor time, beside that of encoding, chaining and writing the same number of events: a busy disk says nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from bench import floors
from bench.agents import scripted, scripted_agent
from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against
from bench.subject import nothing, reads, remit_in
from remit import Remit

STEPS, JOBS, TURNS, ROUNDS = 2_000, 300, 100, 9
STEP_EVENTS, JOB_EVENTS, TURN_EVENTS = 2, 3, 8
"""Events of a read-only step, of a job that does nothing, and of an agent's turn with three calls."""
_NOTE = "floor: {} events encoded, chained and written in groups"


async def step(lab: Lab) -> list[Result]:
    """A read-only step."""

    async def take(remit: Remit) -> Reading:
        watch = Watch()
        await remit.run(reads(STEPS))
        return watch.processor_micros(STEPS)

    async with remit_in(lab.folder) as remit:
        return await _beside_events(lab, "read-only step: processor time", remit, take, STEP_EVENTS, Mark(60))


async def short_job(lab: Lab) -> list[Result]:
    """A job that does nothing: created, run and finished durably."""

    async def take(remit: Remit) -> Reading:
        watch = Watch()
        started = await asyncio.gather(*(remit.start(nothing()) for _ in range(JOBS)))
        await asyncio.gather(*(job.result() for job in started))
        return watch.processor_micros(JOBS)

    async with remit_in(lab.folder) as remit:
        return await _beside_events(lab, "short job: processor time", remit, take, JOB_EVENTS, Mark(350))


async def turn(lab: Lab) -> list[Result]:
    """An agent's turn with three calls."""

    async def take(remit: Remit) -> Reading:
        watch = Watch()
        await remit.run(scripted_agent(TURNS))
        return watch.processor_micros(TURNS)

    name = "agent turn with 3 tool calls: processor time"
    async with scripted(lab.folder, TURNS, 3) as remit:
        return await _beside_events(lab, name, remit, take, TURN_EVENTS, Mark(950))


async def _beside_events(
    lab: Lab, name: str, remit: Remit, take: Callable[[Remit], Awaitable[Reading]], events: int, mark: Mark
) -> list[Result]:
    async def floor() -> Reading:
        return await floors.chained(lab.folder, STEPS, events)

    await take(remit)  # warm
    return await against(name, "µs", lambda: take(remit), floor, _NOTE.format(events), mark=mark, rounds=ROUNDS)
