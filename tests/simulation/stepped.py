"""Counts the steps of a worker's tasks, and interrupts one of them at a step that was chosen before.

A *step* is what a task does from one await to the next, so that being interrupted after step n, for every n, is being
interrupted at every await.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, ContextVar
from types import TracebackType
from typing import Any

counted: ContextVar[bool] = ContextVar("counted", default=False)
"""Whether the running code, and every task it starts, belongs to the worker."""


class Steps:
    """The steps of one worker."""

    def __init__(self, last: int, then: Callable[[asyncio.Task[Any]], None]) -> None:
        """After the step number `last`, call `then` with the task that made it."""
        self.made = 0
        self.tasks: list[asyncio.Task[Any]] = []
        """Every task the worker started."""
        self._last = last
        self._then = then

    def factory(self, loop: asyncio.AbstractEventLoop, coro: Any, context: Context | None = None) -> asyncio.Task[Any]:
        """Make a task; for `loop.set_task_factory`."""
        if not counted.get():
            return asyncio.Task(coro, loop=loop, context=context)
        task: asyncio.Task[Any] = asyncio.Task(_Stepped(coro, self), loop=loop, context=context)
        self.tasks.append(task)
        return task

    def one(self) -> None:
        """A task of the worker made a step."""
        self.made += 1
        task = asyncio.current_task()
        if self.made == self._last and task is not None:
            asyncio.get_running_loop().call_soon(self._then, task)


class _Stepped(Coroutine[Any, Any, Any]):
    """A coroutine whose every step is counted."""

    def __init__(self, coro: Coroutine[Any, Any, Any], steps: Steps) -> None:
        self._coro = coro
        self._steps = steps

    def send(self, value: Any) -> Any:
        """One step."""
        self._steps.one()
        return self._coro.send(value)

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        value: BaseException | object = None,
        trace: TracebackType | None = None,
    ) -> Any:
        """One step, begun by an error."""
        self._steps.one()
        return self._coro.throw(kind)

    def close(self) -> None:
        """Nothing more will happen."""
        self._coro.close()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._coro.__await__()
