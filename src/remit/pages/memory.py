"""The sources of pages: stories of jobs, so that the next page reads only what came since, and counts of a day."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final, NamedTuple

from remit.clock import SECOND
from remit.pages.chart import BOUNDS, HOUR, first_hour
from remit.record.job_story import JobStory

if TYPE_CHECKING:
    from remit.journal.event import StreamTally
    from remit.service.jobs import Jobs

KEPT: Final = 16
"""Stories kept at once; the one that was asked for longest ago goes first."""
BYTES: Final = 64 * 1024 * 1024
"""Of the events that kept stories were read from, at most."""


RECENT: Final = 12
"""Pages of one reader that are remembered."""
READERS: Final = 1_000
"""Readers whose pages are; those who looked longest ago go first."""


class Recent(NamedTuple):
    """A page that someone looked at."""

    title: str
    path: str


class Memory:
    """The stories of the jobs that were looked at last, the counts of the day, and who looked at which page."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self.day = Day(jobs)
        self._kept: OrderedDict[str, JobStory] = OrderedDict()
        self._recent: OrderedDict[str, deque[Recent]] = OrderedDict()

    def note(self, reader: str, title: str, here: str) -> None:
        """Remember that someone looked at a page."""
        recent = self._recent.setdefault(reader, deque(maxlen=RECENT))
        path = here.partition("?")[0]
        for visit in [visit for visit in recent if visit.path == path]:
            recent.remove(visit)
        recent.appendleft(Recent(title, path))
        self._recent.move_to_end(reader)
        while len(self._recent) > READERS:
            self._recent.popitem(last=False)

    def recent(self, reader: str) -> tuple[Recent, ...]:
        """The pages that someone looked at last, newest first, until the server ends."""
        return tuple(self._recent.get(reader, ()))

    async def story(self, job: str) -> JobStory:
        """A job as it is now. Raises NotFoundError."""
        story = await self._jobs.story(job, self._kept.get(job))
        self._kept[job] = story
        self._kept.move_to_end(job)
        while len(self._kept) > KEPT or (self._kept and self._size() > BYTES):
            self._kept.popitem(last=False)
        return story

    def _size(self) -> int:
        return sum(story.story.size for story in self._kept.values())


FRESH: Final = 60 * SECOND
"""Microseconds for which counts are not made again."""
OLD: Final = 10 * FRESH
"""Microseconds after which a page waits for new counts; until then it shows the old ones while they are made."""


class Day:
    """The number of jobs that were created in each of the last hours."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._found: tuple[int, list[StreamTally]] = 0, []
        self._at = -OLD
        self._making: asyncio.Task[None] | None = None

    async def tallies(self, now: int) -> tuple[int, list[StreamTally]]:
        """Return when the first hour began, and the counts."""
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
