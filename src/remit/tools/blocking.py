"""Work that blocks, done in a thread so that the event loop stays free."""

from __future__ import annotations

import asyncio
import fcntl
import threading
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

_BUSY_S: Final = 0.02
"""Between two looks at a lock that somebody else holds."""
_GRACE_S: Final = 5.0
"""What cancelled work may take to end; a disk that does not answer must not hold its caller for ever."""


class Stop(threading.Event):
    """Set once nobody waits for the work any more; long work looks at it and raises StoppedError."""

    def check(self) -> None:
        """Raise StoppedError if the work is to end."""
        if self.is_set():
            raise StoppedError


class StoppedError(Exception):
    """The work ended early because it was cancelled."""


async def in_thread(work: Callable[[Stop], T]) -> T:
    """What `work` returns or raises.

    A cancellation sets `stop` and passes on once the work has ended, so that nothing goes on behind the caller's back.
    """
    stop = Stop()

    def started() -> T:
        stop.check()
        return work(stop)

    task = asyncio.ensure_future(asyncio.to_thread(started))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        task.add_done_callback(_looked_at)
        await asyncio.wait([task], timeout=_GRACE_S)
        raise


def wait_for_lock(fd: int, stop: Stop) -> None:
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
