"""The counts of the last day, made at most once a minute: it takes longer the more jobs there were."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from remit.clock import SECOND
from remit.pages.chart import BOUNDS, HOUR, first_hour

if TYPE_CHECKING:
    from remit.journal.event import Tally
    from remit.service.jobs import Jobs

FRESH: Final = 60 * SECOND
"""Microseconds for which counts are not made again."""
OLD: Final = 10 * FRESH
"""Microseconds after which a page waits for new counts; until then it shows the old ones while they are made."""


class Day:
    """How many jobs were created in each of the last hours."""

    def __init__(self, jobs: Jobs) -> None:
        """Count the jobs of `jobs`."""
        self._jobs = jobs
        self._found: tuple[int, list[Tally]] = 0, []
        self._at = -OLD
        self._making: asyncio.Task[None] | None = None

    async def tallies(self, now: int) -> tuple[int, list[Tally]]:
        """When the first hour began, and the counts."""
        age = now - self._at
        if not 0 <= age < OLD:
            await asyncio.shield(self._make(now))
        elif age >= FRESH:
            _ = self._make(now)  # no page waits for it
        return self._found

    def _make(self, now: int) -> asyncio.Task[None]:
        if self._making is None or self._making.done():
            self._making = asyncio.create_task(self._count(now), name="remit:day")
            self._making.add_done_callback(_seen)
        return self._making

    async def _count(self, now: int) -> None:
        since = first_hour(now)
        self._found = since, await self._jobs.tallies(since, HOUR, BOUNDS)
        self._at = now


def _seen(task: asyncio.Task[None]) -> None:
    """A count that failed is made again with the next page, and fails that page once the old counts are too old."""
    if not task.cancelled():
        task.exception()
