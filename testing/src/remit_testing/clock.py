"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count
from typing import Final

from remit.clock import SECOND

START: Final = 1_767_225_600 * SECOND
"""2026-01-01T00:00:00Z, where a manual clock begins unless told otherwise."""


class ManualClock:
    """A Clock on which time passes only in `advance`.

    Who sleeps goes on once the clock was moved to its time or past it, in the order of those times. Waking a task is
    not running it: await what it is going to do before looking at the result.
    """

    def __init__(self, now: int = START) -> None:
        self._start = now
        self._elapsed = 0
        self._order = count()
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrived: list[tuple[int, asyncio.Future[None]]] = []

    def now(self) -> int:
        return self._start + self._elapsed

    def monotonic(self) -> float:
        return self._elapsed / SECOND

    @property
    def sleepers(self) -> int:
        """Return how many tasks sleep on this clock."""
        return sum(not future.done() for _, _, future in self._sleepers)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)  # noqa: TID251 - a turn, no time
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        due = self._elapsed + round(seconds * SECOND)
        heapq.heappush(self._sleepers, (due, next(self._order), future))
        self._greet()
        await future

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass. Raises ValueError for a negative number: this clock never goes back."""
        if seconds < 0:
            raise ValueError(f"time does not go back by {-seconds} s")
        self._elapsed += round(seconds * SECOND)
        self._wake()

    async def until_asleep(self, tasks: int = 1) -> None:
        """Return once at least so many tasks sleep on this clock."""
        if self.sleepers < tasks:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._arrived.append((tasks, future))
            await future

    def _wake(self) -> None:
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            _, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)

    def _greet(self) -> None:
        waiting, self._arrived = self._arrived, []
        for tasks, future in waiting:
            if self.sleepers < tasks:
                self._arrived.append((tasks, future))
            elif not future.done():
                future.set_result(None)


class TickingClock(ManualClock):
    """A manual clock that goes on by a microsecond with each look, so that no two events have the same time."""

    def now(self) -> int:
        self._elapsed += 1
        return super().now()
