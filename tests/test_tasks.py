"""Tasks that are kept until they end, and ended together."""

from __future__ import annotations

import asyncio

from remit.tasks import Tasks


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
