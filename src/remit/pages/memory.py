"""What pages were made from: stories of jobs, so that the next page reads only what came since, and counts of a day."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from remit.clock import SECOND
from remit.pages.chart import BOUNDS, HOUR, first_hour
from remit.service.story import JobStory

if TYPE_CHECKING:
    from remit.journal.event import Tally
    from remit.service.jobs import Jobs

KEPT: Final = 16
"""Stories kept at once; the one that was asked for longest ago goes first."""
BYTES: Final = 64 * 1024 * 1024
"""Of the events that kept stories were read from, at most."""


FRESH: Final = 60 * SECOND
"""Microseconds for which counts of a day are not made again: it takes longer the more jobs there were."""


class Memory:
    """The stories of the jobs that were looked at last, and the counts of the day."""

    def __init__(self, jobs: Jobs) -> None:
        """Read them from `jobs`."""
        self._jobs = jobs
        self._day: tuple[int, asyncio.Task[list[Tally]]] | None = None
        self._kept: OrderedDict[str, JobStory] = OrderedDict()

    async def story(self, job: str) -> JobStory:
        """A job as it is now. Raises NotFoundError."""
        story = await self._jobs.story(job, self._kept.get(job))
        self._kept[job] = story
        self._kept.move_to_end(job)
        while len(self._kept) > KEPT or (self._kept and self._size() > BYTES):
            self._kept.popitem(last=False)
        return story

    async def day(self, now: int) -> tuple[int, list[Tally]]:
        """How many jobs were created in each of the last hours, and since when; at most a minute old."""
        if self._day is None or not self._day[0] <= now < self._day[0] + FRESH or _failed(self._day[1]):
            counting = self._jobs.tallies(first_hour(now), HOUR, BOUNDS)
            self._day = now, asyncio.create_task(counting, name="remit:day")
        made, counted = self._day
        return first_hour(made), await asyncio.shield(counted)

    def _size(self) -> int:
        return sum(story.story.size for story in self._kept.values())


def _failed(task: asyncio.Task[list[Tally]]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
