"""Tasks of one owner: kept until they end, since the event loop alone does not, and ended together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from types import coroutine
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


@coroutine
def own(work: Awaitable[T], task: asyncio.Task[Any]) -> Generator[Any, Any, T]:
    """Await work in this task, which is running, and take back each cancellation of it that the work asks for."""
    cancellations, steps = 0, work.__await__()
    step: Callable[[], Any] = steps.__next__
    try:
        while True:
            before = task.cancelling()
            try:
                waited = step()
            except StopIteration as end:
                value: T = end.value
                return value
            finally:
                if (after := task.cancelling()) > before:
                    cancellations += after - before
            try:
                step = partial(steps.send, (yield waited))
            except BaseException as error:  # noqa: BLE001 - it is the work's
                step = partial(steps.throw, error)
    finally:
        if cancellations:
            for _ in range(cancellations):
                task.uncancel()
            outside = task.cancelling()
            try:
                yield  # where a cancellation that was asked for last arrives
            except asyncio.CancelledError:
                if outside:
                    raise


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
