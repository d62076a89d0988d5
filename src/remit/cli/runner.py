"""Runs a command's coroutine, and ends it decently when the process is told to stop.

Each signal takes one step more than the one before:

    gentle only   `Stop.requested` is set
    then          the coroutine is cancelled, and unwinds through `async with Remit`: everything recorded is written
    then          `Stop.hurry` is run, so that what unwinding still waits for is cut short
    then          KeyboardInterrupt, wherever Python is

SIGINT, SIGTERM and SIGHUP count alike, unless the parent process ignores them.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import Any, Final, TypeVar

from remit.cli.errors import InterruptedByUserError
from remit.tasks import first

T = TypeVar("T")

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_START_S: Final = 1.0
_GARBAGE: Final = (700, 10, 10)
"""Objects that Python makes before it looks for garbage, as of old, and so many looks before it looks further."""


class SignalStop:
    """The stop that signals have asked for."""

    def __init__(self, *, gentle: bool) -> None:
        self.requested = asyncio.Event()
        self.hurry: Callable[[], Coroutine[Any, Any, None]] | None = None
        """The call that cuts unwinding short."""
        self._hurried: asyncio.Task[None] | None = None
        self._steps: list[Callable[[], None]] = [self.requested.set] if gentle else []
        self._count = 0
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def came(self) -> bool:
        """Return whether there was a signal."""
        return self._count > 0

    async def unless(self, opening: Coroutine[Any, Any, T]) -> T | None:
        """Return what is opened; None, and it is given up, where the stop comes first: a server may never answer."""
        task = asyncio.ensure_future(opening)
        await first(task, self.requested.wait())
        return None if task.cancelled() else task.result()

    @contextlib.contextmanager
    def handling(self, task: asyncio.Task[Any]) -> Iterator[None]:
        """Handle signals while the task runs."""
        self._loop, self._task = task.get_loop(), task
        self._steps += [self._cancel, self._hurry]
        handlers = {number: signal.getsignal(number) for number in _SIGNALS}
        taken = [number for number, handler in handlers.items() if handler is not signal.SIG_IGN]
        for number in taken:
            signal.signal(number, self._handle)
        try:
            yield
        finally:
            for number in taken:
                signal.signal(number, handlers[number])

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _hurry(self) -> None:
        if self.hurry is not None:
            self._hurried = asyncio.ensure_future(self.hurry())

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        # A Python-level handler, not the loop's own: it also gets through where code of the user blocks the loop.
        self._count += 1
        if self._loop is None or self._count > len(self._steps):
            raise KeyboardInterrupt
        self._loop.call_soon_threadsafe(self._steps[self._count - 1])


def run_async(work: Callable[[SignalStop], Coroutine[Any, Any, T]], *, gentle: bool = False) -> T:
    """Return what `work` returns. Raises InterruptedByUserError where a signal cancelled it."""
    loop = asyncio.new_event_loop()
    stop = SignalStop(gentle=gentle)
    task = loop.create_task(work(stop))
    loop.call_later(_START_S, gc.set_threshold, *_GARBAGE)  # it stays up: `main` put this off while it starts
    try:
        with stop.handling(task):
            return loop.run_until_complete(task)
    except asyncio.CancelledError:
        if not stop.came:
            raise
        raise InterruptedByUserError from None
    finally:
        if task.done():
            _close(loop)


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` returns, if only a signal ends it early. Raises InterruptedByUserError."""
    return run_async(lambda _stop: work)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Everything but the thread pool is seen off: a tool's thread cannot be stopped and is not waited for."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
