"""Tasks of one owner: kept until they end, since the event loop alone does not, and ended together."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def first(*work: Coroutine[Any, Any, object]) -> None:
    """Wait until one of these has ended; the others are given up. Raises what the one raised."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


class Tasks:
    """The tasks that are under way."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Future[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, work: Coroutine[Any, Any, Any], name: str | None = None) -> None:
        """Do this in a task of its own."""
        self.keep(asyncio.create_task(work, name=name))

    def task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """The task in which this is done from now on."""
        task = asyncio.create_task(work)
        self.keep(task)
        return task

    def keep(self, task: asyncio.Future[Any]) -> None:
        """Count a task that was begun elsewhere among these."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """Cancel all of them."""
        for task in self._tasks:
            task.cancel()

    async def ended(self) -> None:
        """Wait until those that are under way now have ended, well or not."""
        if self._tasks:
            await asyncio.wait(self._tasks)
