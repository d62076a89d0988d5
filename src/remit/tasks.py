"""Tasks of one owner: kept until they end, since the event loop alone does not, and ended together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def first(*work: Awaitable[Any], seconds: float | None = None) -> list[Any]:
    """Wait until one of these has ended, or for so many seconds; the others are given up.

    Return what each returned; None: it had not ended. Raise what one raised.
    """
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return [task.result() if task.done() else None for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def uncut(work: Coroutine[Any, Any, T]) -> T:
    """Do this to its end, also if who awaits it is cancelled meanwhile: half of it would leave a state unknown."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    finally:
        await asyncio.wait([task])


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
