"""`run.patched`: a changed recipe keeps the old way for jobs that took it, and gives the new way to all others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from remit import Run, recipe, tool
from remit.codes import Code
from remit.service.handle import JobEndedError
from tests.opened import OpenRemit, until_waiting

FLAGS = {"jobs.mismatch": "migrate", "jobs.drain_seconds": 0}


@tool("log.add", level="L0")
async def add(word: str) -> str:
    return word


@recipe("orders", version="1")
async def old(run: Run, waits_first: bool) -> list[Any]:
    said = [(await run.call(add, "one"))] if not waits_first else []
    await run.wait_signal("go")
    return [*said, await run.call(add, "two")]


@recipe("orders", version="2", migrates=("1",))
async def new(run: Run, waits_first: bool) -> list[Any]:
    said = []
    if await run.patched("checks"):
        said.append(await run.call(add, "checked"))
    said += [(await run.call(add, "one"))] if not waits_first else []
    await run.wait_signal("go")
    if await run.patched("checks"):
        said.append("new")
    if await run.patched("after"):
        said.append(await run.call(add, "after"))
    return [*said, await run.call(add, "two")]


async def parked(remit_in: OpenRemit, *, waits_first: bool = False) -> str:
    async with remit_in(tools=[add], recipes=[old], flags=FLAGS) as remit:
        job = await remit.start(old(waits_first))
        await until_waiting(remit, job.id)
    return job.id


async def test_a_job_keeps_the_old_way_of_what_it_has_passed_and_takes_the_new_way_of_what_comes(
    remit_in: OpenRemit,
) -> None:
    job = await parked(remit_in)
    async with remit_in(tools=[add], recipes=[new], flags=FLAGS) as remit:
        await remit.job(job).signal("go")
        assert await remit.job(job) == ["one", "after", "two"]
        assert await patches(remit, job) == ["after"]
        assert (await remit.service.jobs.replay(job)).verdict == "same"


async def test_a_new_job_takes_every_new_way_and_replays_the_same(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[add], recipes=[new], flags=FLAGS) as remit:
        job = await remit.start(new(False))
        await until_waiting(remit, job.id)
        assert (await remit.service.jobs.replay(job.id)).verdict == "incomplete"
        await job.signal("go")
        assert await job == ["checked", "one", "new", "after", "two"]
        assert await patches(remit, job.id) == ["checks", "after"]
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_a_job_that_ended_the_old_way_replays_the_old_way_even_at_its_end(remit_in: OpenRemit) -> None:
    @recipe("ends", version="1")
    async def ends(run: Run) -> str:
        return await run.call(add, "one")

    @recipe("ends", version="2", migrates=("1",))
    async def grown(run: Run) -> str:
        found = await run.call(add, "one")
        return f"{found}!" if await run.patched("louder") else found

    async with remit_in(tools=[add], recipes=[ends], flags=FLAGS) as remit:
        job = await remit.start(ends())
        assert await job == "one"
    async with remit_in(tools=[add], recipes=[grown], flags=FLAGS) as remit:
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
        assert await remit.run(grown()) == "one!"


async def test_every_step_run_again_from_the_record_takes_the_same_way(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[add], recipes=[new], flags=FLAGS, always_replay=True) as remit:
        job = await remit.start(new(False))
        await job.signal("go")
        assert await job == ["checked", "one", "new", "after", "two"]


@pytest.mark.parametrize("name", ["", "x" * 201])
async def test_a_change_has_a_name(remit_in: OpenRemit, name: str) -> None:
    @recipe("named")
    async def named(run: Run) -> bool:
        return await run.patched(name)

    async with remit_in(recipes=[named]) as remit:
        with pytest.raises(JobEndedError) as caught:
            await remit.run(named())
    assert caught.value.code is Code.USAGE


async def patches(remit: Any, job: str) -> list[str]:
    events = await remit.service.streams.events(f"job/{job}")
    return [msgspec.json.decode(event.data)["name"] for event in events if event.kind == "patch_recorded"]
