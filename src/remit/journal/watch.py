"""Readers that wait for news of the journal, and how news of other processes reach them where the storage cannot tell.

A *mark* grows with every write that was noticed. A caller with the newest mark waits; one with an older mark missed
something and returns at once. So a write between two looks is never missed, whether anyone waited then or not.

Where nothing was written for a while, the kernel is asked to tell of the next write to the file (inotify, on Linux),
and three looks a second are enough: a process that waits for nothing hardly wakes for it.

There are two marks. Most writes only add events to streams that exist, which concerns only their followers; the
other one grows when a head changed in more than its newest event: a stream was made, woken, parked or closed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Final

from remit.errors import JournalError
from remit.journal.commit import journal_closed

if TYPE_CHECKING:
    from remit.journal.event import Commit
    from remit.journal.port import Store

_POLL_S: Final = 0.002
"""The interval at which it is asked whether another process wrote, while someone follows events."""
_HEADS_POLL_S: Final = 0.01
"""The same, while heads are all that is waited for."""
_QUIET_S: Final = 1.0
"""After so long without a write the kernel is asked to tell of the next one."""
_SLOW_POLL_S: Final = 0.3
"""The interval at which it is asked all the same then, should the kernel miss one."""
_MODIFIED, _ONCE = 0x2, 0x80000000
"""IN_MODIFY and IN_ONESHOT of inotify(7)."""


class ChangeMarker:
    """One mark, and those that wait for it to grow."""

    def __init__(self) -> None:
        self.value = 1
        self.waiting: set[asyncio.Future[None]] = set()

    def grow(self) -> None:
        """Something happened."""
        self.value += 1
        for future in self.waiting:
            if not future.done():
                future.set_result(None)

    def fail(self, error: JournalError) -> None:
        """Nothing will happen any more."""
        for future in self.waiting:
            if not future.done():
                future.set_exception(error)


class FileBell:
    """Rings at the next write to a file, by any process; only Linux tells (inotify(7))."""

    def __init__(self, path: str) -> None:
        self._path = os.fsencode(path)
        self._descriptor = -1
        self._loop = asyncio.get_running_loop()
        self._ring: Callable[[], None] | None = None

    def arm(self, ring: Callable[[], None]) -> bool:
        """Have `ring` called once, on the event loop. False where the system does not tell."""
        if sys.platform != "linux":
            return False
        import ctypes  # noqa: PLC0415 - only a process that is quiet for a while needs it

        system = ctypes.CDLL(None)
        try:
            if self._descriptor < 0:
                self._descriptor = system.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
                self._loop.add_reader(self._descriptor, self._rang)
            if system.inotify_add_watch(self._descriptor, self._path, _MODIFIED | _ONCE) >= 0:
                self._ring = ring
                return True
        except (AttributeError, NotImplementedError, OSError, ValueError):  # another libc, an event loop of its own
            pass
        self.close()
        return False

    def disarm(self) -> None:
        """Call no one any more."""
        self._ring = None

    def close(self) -> None:
        """Let go of what the kernel keeps for it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(NotImplementedError):  # an event loop that could not watch it either
                self._loop.remove_reader(descriptor)
            os.close(descriptor)

    def _rang(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._descriptor, 4_096)
        ring, self._ring = self._ring, None
        if ring is not None:
            ring()


class JournalMarks:
    """Marks of one opened journal; used on its event loop only.

    `others` is a cheap number that changes with every write of another process; None: no other process writes. It may
    return None where it cannot tell at the moment, and raise JournalError. `bell` rings at such a write.
    """

    def __init__(self, others: Callable[[], int | None] | None = None, bell: FileBell | None = None) -> None:
        self._others = others
        self._bell = bell
        self._stirred = monotonic()
        """When something was last written."""
        self._stamp: int | None = None
        """Nothing can have been missed before the first look."""
        self._closed = False
        self._events, self._heads = ChangeMarker(), ChangeMarker()
        self._poller: asyncio.Task[None] | None = None

    async def changed(self, since: int) -> int:
        return await self._grown(self._events, since)

    async def heads_changed(self, since: int) -> int:
        return await self._grown(self._heads, since)

    async def _grown(self, mark: ChangeMarker, since: int) -> int:
        if self._closed:
            raise journal_closed()
        self._look()
        if since < mark.value:
            return mark.value
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        mark.waiting.add(future)
        if self._poller is None and self._others is not None:
            self._poller = asyncio.create_task(self._poll(), name="remit:journal-watch")
        try:
            await future
        finally:
            mark.waiting.discard(future)
        return mark.value

    def notify(self, heads: bool) -> None:
        """This process wrote; `heads`: more than events."""
        self._stirred = monotonic()
        self._events.grow()
        if heads:
            self._heads.grow()

    async def close(self) -> None:
        """Tell a waiter that the journal was closed."""
        self._closed = True
        self.fail(journal_closed())
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.wait([self._poller])
        if self._bell is not None:
            self._bell.close()

    def fail(self, error: JournalError) -> None:
        """A waiter gets this error instead of news."""
        self._events.fail(error)
        self._heads.fail(error)

    def _look(self) -> None:
        stamp = self._others() if self._others is not None else None
        if stamp is None or stamp == self._stamp:
            return
        if self._stamp is not None:
            self._stirred = monotonic()
            self._events.grow()
            self._heads.grow()
        self._stamp = stamp

    async def _poll(self) -> None:
        """While someone waits, look for writes of other processes."""
        try:
            while self._events.waiting or self._heads.waiting:
                quiet = self._bell is not None and monotonic() - self._stirred > _QUIET_S
                if not (quiet and self._bell is not None and await self._rung(self._bell)):
                    pause = _POLL_S if self._events.waiting else _HEADS_POLL_S
                    # Real time, whatever clock the journal has: other processes do not wait for a manual one.
                    await asyncio.sleep(pause)  # noqa: TID251 - see above
                self._look()
        except JournalError as error:
            self.fail(error)
        finally:
            self._poller = None

    async def _rung(self, bell: FileBell) -> bool:
        """Wait for the next write, or for the slow look; False where the bell does not ring on this system."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def ring() -> None:
            self._stirred = monotonic()
            if not future.done():
                future.set_result(None)

        if not bell.arm(ring):
            self._bell = None
            return False
        self._look()  # what was written before the bell was armed
        try:
            if monotonic() - self._stirred > _QUIET_S:
                await asyncio.wait([future], timeout=_SLOW_POLL_S)
        finally:
            bell.disarm()
        return True


Took = Callable[[float], None]
"""Called with the seconds that a commit took from its submission until it was done."""


async def done(store: Store, commit: Commit, took: Took | None) -> JournalError | None:
    """Submit, and wait; the error that it failed with. Cancelling the wait does not take the commit back."""
    future: asyncio.Future[JournalError | None] = asyncio.get_running_loop().create_future()
    commit.on_done = lambda error: None if future.done() else future.set_result(error)
    began = perf_counter()
    store.submit(commit)
    error = await future
    if took is not None:
        took(perf_counter() - began)
    return error
