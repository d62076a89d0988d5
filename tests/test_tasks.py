"""Tasks that are kept until they end, and ended together."""

from __future__ import annotations

import asyncio

import pytest

from remit.tasks import Tasks, first, uncut


async def test_tasks_are_under_way_until_they_end() -> None:
    tasks, go = Tasks(), asyncio.Event()
    tasks.begin(go.wait(), name="waits")
    one = tasks.task(go.wait())
    assert len(tasks) == 2
    go.set()
    await tasks.ended()
    assert one.result() is True
    assert len(tasks) == 0


async def test_all_are_cancelled_and_waited_for_whatever_they_end_with() -> None:
    tasks, begun, never, cleaned = Tasks(), asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def cleans() -> None:
        begun.set()
        try:
            await never.wait()
        finally:
            cleaned.set()

    async def fails() -> None:
        msg = "on purpose"
        raise ValueError(msg)

    failing = tasks.task(fails())
    tasks.keep(asyncio.ensure_future(cleans()))
    await begun.wait()
    tasks.cancel()
    await tasks.ended()
    assert cleaned.is_set()
    assert isinstance(failing.exception(), ValueError)
    assert len(tasks) == 0


async def test_without_a_task_there_is_nothing_to_wait_for() -> None:
    tasks = Tasks()
    tasks.cancel()
    await tasks.ended()


async def test_the_first_to_end_ends_the_others_and_each_says_what_it_returned() -> None:
    cleaned = asyncio.Event()

    async def answers() -> int:
        return 7

    async def cleans() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    assert await first(answers(), cleans()) == [7, None]
    assert cleaned.is_set()
    assert await first(cleans(), seconds=0.001) == [None]


async def test_the_first_to_fail_is_raised() -> None:
    async def fails() -> None:
        msg = "on purpose"
        raise ValueError(msg)

    with pytest.raises(ValueError, match="on purpose"):
        await first(asyncio.Event().wait(), fails())


async def test_what_is_uncut_comes_to_its_end_and_then_its_caller_is_cancelled() -> None:
    begun, go, ended = asyncio.Event(), asyncio.Event(), list[str]()

    async def work() -> None:
        begun.set()
        await go.wait()
        ended.append("whole")

    caller = asyncio.ensure_future(uncut(work()))
    await begun.wait()
    caller.cancel()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended == ["whole"]
    assert await uncut(asyncio.wait_for(go.wait(), None)) is True
