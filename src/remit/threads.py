"""Work that blocks, done in a thread so that the event loop stays free."""

from __future__ import annotations

import asyncio
import fcntl
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import Final, TypeVar

from remit.codes import Code
from remit.errors import ProviderError

T = TypeVar("T")

_LOST_PER_SLOT: Final = 4
"""Threads for each slot: the others may be lost to work that goes on after its call has ended."""
_BUSY_S: Final = 0.02
"""Between two looks at a lock that another process holds."""
_GRACE_S: Final = 5.0
"""The time that cancelled work may take to end; a disk that does not answer must not hold its caller forever."""


class StopEvent(threading.Event):
    """Set once the work is not awaited any more; long work looks at it and raises StoppedError."""

    def check(self) -> None:
        """Raise StoppedError if the work is to end."""
        if self.is_set():
            raise StoppedError


class StoppedError(Exception):
    """The work ended early because it was cancelled."""


class Threads:
    """Threads for work that blocks: so many at once, and no call is announced before there is one for it.

    A thread cannot be stopped. One whose call has ended without it gives its slot to another, until too many are lost.
    """

    def __init__(self, size: int = 16) -> None:
        self.slots = asyncio.Semaphore(size)
        """Held by each call from before it is announced until it ends."""
        self._most = size * _LOST_PER_SLOT
        self._executor = ThreadPoolExecutor(self._most, thread_name_prefix="remit:blocking")
        self._busy = 0
        """Threads at work, those whose call has ended included; changed on the event loop alone."""

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns or raises. Cancelled before the work begins, it never begins.

        Raises ProviderError (TOOL_UNAVAILABLE) if every thread is held by work that did not stop.
        """
        if self._busy >= self._most:
            msg = f"{self._busy} threads are busy with calls that have not stopped"
            raise ProviderError(msg, cause=Code.SpawnFailed, code=Code.TOOL_UNAVAILABLE)
        loop = asyncio.get_running_loop()
        self._busy += 1
        running = self._executor.submit(copy_context().run, work)
        running.add_done_callback(lambda _: self._count_down(loop))
        return await asyncio.wrap_future(running)

    async def stoppable(self, work: Callable[[StopEvent], T]) -> T:
        """As `run`, for work that looks at `stop`.

        A cancellation sets `stop` and passes on once the work has ended, so that nothing goes on behind the caller's
        back.
        """
        stop = StopEvent()

        def started() -> T:
            stop.check()
            return work(stop)

        task = asyncio.ensure_future(self.run(started))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            stop.set()
            task.add_done_callback(_looked_at)
            await asyncio.wait([task], timeout=_GRACE_S)
            raise

    def _count_down(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nothing is called here any more
            loop.call_soon_threadsafe(self._one_less)

    def _one_less(self) -> None:
        self._busy -= 1


def wait_for_lock(fd: int, stop: StopEvent) -> None:
    """Lock an open file against other descriptors; the lock goes when the descriptor is closed or the process dies.

    Raises StoppedError, or OSError where the file system has no locks.
    """
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stop.wait(_BUSY_S)
            stop.check()
        else:
            return


def _looked_at(task: asyncio.Future[T]) -> None:
    """Look at how abandoned work ended, so that the loop does not report it as forgotten."""
    if not task.cancelled():
        task.exception()
