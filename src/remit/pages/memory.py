"""What pages were made from: stories of jobs, so that the next page reads only what came since, and counts of a day."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from remit.pages.day import Day
from remit.record.job_story import JobStory

if TYPE_CHECKING:
    from remit.service.jobs import Jobs

KEPT: Final = 16
"""Stories kept at once; the one that was asked for longest ago goes first."""
BYTES: Final = 64 * 1024 * 1024
"""Of the events that kept stories were read from, at most."""


class Memory:
    """The stories of the jobs that were looked at last, and the counts of the day."""

    def __init__(self, jobs: Jobs) -> None:
        """Read them from `jobs`."""
        self._jobs = jobs
        self.day = Day(jobs)
        self._kept: OrderedDict[str, JobStory] = OrderedDict()

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
