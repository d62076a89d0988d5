"""Runs parts of a run beside one another, each as a branch with places of its own (branch.py)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

from remit.jobs.branch import Branch, Countdown, current, ends

if TYPE_CHECKING:
    from remit.jobs.effects.recorded import Effects

T = TypeVar("T")


class Branches:
    """The branches of one run."""

    def __init__(self, effects: Effects) -> None:
        self._activity = effects.activity
        self._matching = effects.matching

    async def gather(self, place: str, branches: Iterable[Awaitable[T]]) -> list[T]:
        """Run branches below `place`; their results in order, or the first error, once all have ended."""
        tasks = [self._start(branch, f"{place}.{index}.") for index, branch in enumerate(branches)]
        if not tasks:
            return []
        countdown = Countdown(len(tasks), self._activity.unblock)
        for task in tasks:
            task.add_done_callback(countdown.one)
        self._activity.block()
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            self._matching.cut_short(place)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        for task in tasks:
            if not task.cancelled():
                task.exception()  # the first error is raised below; unseen, the others would be complained of
            elif task.cancelling():
                self._matching.over()  # not by its own code
        errors = [task.exception() for task in tasks if not task.cancelled()]  # all are looked at, one is raised
        first = next((error for error in errors if error is not None), None)
        if first is not None:
            raise first
        return [task.result() for task in tasks]

    async def until(self, future: asyncio.Future[T]) -> T:
        """Wait for another branch, without keeping the job from being parked meanwhile."""
        if not future.done():
            self._matching.go_on()
            self._activity.block()
            future.add_done_callback(lambda _future: self._activity.unblock())
        return await future

    async def within(self, work: Awaitable[T], prefix: str) -> T:
        """Do work in the running task, with places below `prefix`."""
        token = current.set(Branch(prefix, asyncio.current_task()))
        try:
            return await work
        finally:
            current.reset(token)

    def _start(self, branch: Awaitable[T], prefix: str) -> asyncio.Task[T]:
        self._activity.unblock()  # a branch more is active; its end takes it back
        context = copy_context()
        task = asyncio.get_running_loop().create_task(ends(branch), context=context)
        context.run(current.set, Branch(prefix, task))
        task.add_done_callback(lambda _task: self._activity.block())
        return task
