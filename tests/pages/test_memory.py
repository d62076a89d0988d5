from __future__ import annotations

import asyncio

import pytest

from remit import Remit, Run, recipe, tool
from remit.pages import page as memory_module
from remit.pages.page import KEPT, Memory

pytestmark = pytest.mark.slow


@tool("shop.look", level="L0")
def look(text: str) -> str:
    """Look at something."""
    return text


@recipe("waits")
async def waits(run: Run, count: int) -> int:
    """Look a few times, wait for a signal, look once more."""
    for number in range(count):
        await run.call("shop.look", {"text": str(number)})
    await run.wait_signal("go")
    await run.call("shop.look", {"text": "last"})
    return count


def remit() -> Remit:
    return Remit(":memory:", tools=[look], recipes=[waits])


async def test_a_story_is_carried_on_and_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with remit() as opened:
        jobs, memory = opened.service.jobs, Memory(opened.service.jobs)
        job = await opened.start(waits(count=3))
        await jobs.settled([job.id])
        first = await memory.story(job.id)
        read = first.story.events
        assert [row.state for row in first.steps] == ["ok", "ok", "ok", "waiting"]
        asked: list[int] = []
        journal = jobs._journal
        real = journal.read

        async def reading(stream: str, after: int = 0) -> list[object]:
            asked.append(after)
            return await real(stream, after)  # type: ignore[return-value]

        monkeypatch.setattr(journal, "read", reading)
        await jobs.signal(job.id, "go")
        await job
        asked.clear()
        again = await memory.story(job.id)
        assert asked[0] == read
        assert again is first
        assert [row.state for row in again.steps] == ["ok"] * 5
        assert (again.completed, again.result) == (True, 3)


async def test_two_readers_at_once_read_each_event_once() -> None:
    async with remit() as opened:
        memory = Memory(opened.service.jobs)
        job = await opened.start(waits(count=3))
        await opened.service.jobs.settled([job.id])
        await memory.story(job.id)
        await opened.service.jobs.signal(job.id, "go")
        await job
        stories = await asyncio.gather(*(memory.story(job.id) for _ in range(3)))
        row = await opened.service.jobs.view(job.id)
        assert {story.story.events for story in stories} == {row.events}
        assert len(stories[0].story.narrative().steps) == len(row.steps)


async def test_what_was_asked_for_longest_ago_goes_first() -> None:
    async with remit() as opened:
        memory = Memory(opened.service.jobs)
        jobs = [(await opened.start(waits(count=0))).id for _ in range(KEPT + 1)]
        stories = [await memory.story(job) for job in jobs]
        assert await memory.story(jobs[1]) is stories[1]
        assert await memory.story(jobs[0]) is not stories[0]


async def test_large_stories_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "BYTES", 100)
    async with remit() as opened:
        memory = Memory(opened.service.jobs)
        job = (await opened.start(waits(count=1))).id
        assert await memory.story(job) is not await memory.story(job)
