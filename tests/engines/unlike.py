"""Worker processes with different code on one journal: each leaves to the others what it lacks."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import multiprocessing
import random
from pathlib import Path
from typing import Any

from remit import CallContext, Code, Remit, Run, recipe, tool
from remit.errors import StateError
from remit.jobs.state import ENDED, stream_of
from remit.journal.event import HeadPatch
from remit.settings import load
from tests.crash.worker import WITNESS, witness

HANDS = ("left", "right")


@tool("left.do", level="L1")
async def left_do(ctx: CallContext) -> str:
    """Must never happen twice."""
    witness(f"{ctx.stream}", ctx.step)
    return "left"


@tool("right.do", level="L1")
async def right_do(ctx: CallContext) -> str:
    """Must never happen twice."""
    witness(f"{ctx.stream}", ctx.step)
    return "right"


@recipe("left")
async def left(run: Run) -> str:
    """Known to one worker."""
    return str((await run.call("left.do")).value)


@recipe("right")
async def right(run: Run) -> str:
    """Known to the other."""
    return str((await run.call("right.do")).value)


@recipe("both")
async def both(run: Run) -> list[str]:
    """Known to both workers, each of which lacks one of the tools."""
    return [str((await run.call(f"{hand}.do")).value) for hand in ("left", "right", "left")]


TOOLS = {"left": left_do, "right": right_do}
RECIPES: dict[str, Any] = {"left": left, "right": right}


def opened(url: str, folder: Path, hand: str = "") -> Remit:
    """A Remit of one hand; without one, it starts jobs and works on none."""
    flags = {
        "journal.url": url,
        "policy.rules": [{"effect": "allow", "tools": ["*"]}],
        "app.principal": "alice",
        "jobs.lease_seconds": 1,
    }
    settings = load(env={}, cwd=folder, flags=flags)
    if not hand:
        return Remit(settings=settings, recipes=[left, right, both], work=False)
    return Remit(settings=settings, tools=[TOOLS[hand]], recipes=[RECIPES[hand], both])


def work(url: str, folder: str, hand: str) -> None:
    """Work until killed; entry point of a worker process."""
    WITNESS.append(Path(folder) / "witness")

    async def main() -> None:
        async with opened(url, Path(folder), hand):
            await asyncio.Event().wait()

    asyncio.run(main())


async def start_jobs(remit: Remit, each: int) -> dict[str, Any]:
    """Jobs with the results they are to have; some are as an older Remit made them, without a route."""
    expected: dict[str, Any] = {}
    for number in range(each):
        for name, result in (("left", "left"), ("right", "right"), ("both", ["left", "right", "left"])):
            job = await remit.service.jobs.start_named(name, {})
            expected[job] = result
            if number == 0:
                head = await remit.runtime.journal.head(stream_of(job))
                assert head is not None
                writer = remit.runtime.journal.writer(head.stream, head.kind, head)
                await remit.runtime.journal.append(writer, synced=True, patch=HeadPatch(route=""))
    return expected


async def check_unlike_workers(url: str, folder: Path, *, each: int, kills: int) -> None:
    """Every job ends as it should, each effect happened once, however often workers are killed meanwhile."""
    chance = random.Random(7)
    books = folder / "witness"
    books.touch()
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.engines.unlike", "remit.app"])
    async with opened(url, folder) as remit:
        expected = await start_jobs(remit, each)
        workers = {hand: processes.Process(target=work, args=(url, str(folder), hand)) for hand in HANDS}
        for worker in workers.values():
            worker.start()
        try:
            while kills:
                await asyncio.to_thread(workers["left"].join, chance.uniform(0.3, 1.0))
                hand = chance.choice(HANDS)
                workers[hand].kill()
                workers[hand].join()
                kills -= 1
                workers[hand] = processes.Process(target=work, args=(url, str(folder), hand))
                workers[hand].start()
            await until_ended(remit, expected, books)
        finally:
            for worker in workers.values():
                worker.kill()
                worker.join()
        assert {job: await remit.service.jobs.result(job) for job in expected} == expected
        assert (await remit.service.streams.verify()).problems == ()
    effects = collections.Counter(noted(books))
    assert set(effects.values()) == {1}
    assert sum(effects.values()) == 5 * each


def noted(books: Path) -> list[str]:
    """The effects that have happened."""
    return books.read_text().splitlines()


async def until_ended(remit: Remit, jobs: dict[str, Any], books: Path) -> None:
    """Wait for the end of all jobs; decide what a kill has left in doubt as the books say."""
    mark = 0
    while True:
        mark = await remit.runtime.journal.changed(mark)
        open_jobs = [row.job for row in await remit.service.jobs.rows(limit=1_000) if row.state not in ENDED]
        if not set(open_jobs) & set(jobs):
            return
        for job in open_jobs:
            view = await remit.service.jobs.view(job)
            if view.row.code == Code.JOB_ENDS_WORKERS.name:
                await remit.service.jobs.resume(job)
            for step in view.steps:
                if step.state == "unknown":
                    done = f"{stream_of(job)} {step.step}" in noted(books)
                    value = step.name.removeprefix("tool.").removesuffix(".do")
                    with contextlib.suppress(StateError):
                        await remit.service.steps.decide(job, step.step, "done" if done else "retry", value)
