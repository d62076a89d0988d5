"""Follows jobs, in whatever process, until each has ended or waits for someone.

While people can be asked here, the questions of the jobs are put to them one by one as they come up; the jobs go on
meanwhile. A question that someone else answers first is withdrawn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from remit.cli.news import news_of
from remit.jobs.state import job_of, stream_of
from remit.record.job_story import JobStory
from remit.record.views import ConfirmationView

if TYPE_CHECKING:
    from remit.cli.opened import Opened

_SPACING_S: Final = 0.02
"""At most so often the journal is looked at."""
_SHARE: Final = 5
"""Looking may take one part in so many of the time, however long a job's history is."""
_LONGEST_S: Final = 1.0
"""The job is looked at at least this often, in case a look waited for a server that was away."""


async def followed(remit: Opened, job: str) -> JobStory:
    """A job with everything that is recorded of it by now. Raises NotFoundError."""
    found = JobStory(await remit.service.jobs.row(job))
    found.story.read(await remit.service.streams.events(stream_of(job)))
    return found


class View(Protocol):
    """Shows how far jobs are."""

    def show(self, jobs: Sequence[JobStory]) -> None:
        """Something may have changed."""
        ...

    def pause(self) -> None:
        """Leave the terminal to a question."""
        ...

    def go_on(self) -> None:
        """The question is answered."""
        ...

    def parked(self, job: JobStory) -> None:
        """The job waits for someone, and so do we."""
        ...


class Asker(Protocol):
    """Puts questions to the person at the terminal."""

    current: str
    """The question on the screen, or the one last left for later; empty while an answer is being recorded."""

    def ask(self, question: ConfirmationView) -> Coroutine[Any, Any, bool]:
        """Return whether it was answered; False: it is left for later."""
        ...

    def withdraw(self) -> None:
        """The question on the screen needs no answer any more."""
        ...


class Watch:
    """Follows some jobs."""

    def __init__(
        self, remit: Opened, jobs: Sequence[JobStory], view: View, asker: Asker | None, *, patient: bool
    ) -> None:
        self.jobs = jobs
        self._remit = remit
        self._news = news_of(remit, [job.job for job in jobs])
        self._view = view
        self._asker = asker
        self._patient = patient
        self._later: set[str] = set()
        self._parked: set[tuple[str, str]] = set()
        self._asking: asyncio.Task[bool] | None = None
        self._asks = ""
        """The job whose question that is."""
        self._changing: asyncio.Task[int] | None = None
        self._pause_s = _SPACING_S

    async def run(self) -> None:
        """Return once every job has ended or is left to others. Raises RemitError if the journal or server fails."""
        async with self._news as news:
            try:
                mark = await news.changed(0)
                while True:
                    await self._look()
                    await self._put_questions()
                    if self._asking is None and all(self._settled(job) for job in self.jobs) and await self._still():
                        return
                    mark = await self._change(mark, news.failed)
            finally:
                await _end(self._changing)
                await _end(self._asking)

    # --- looking

    async def _look(self) -> None:
        clock = self._news.clock
        began = clock.monotonic()
        for job in self.jobs:
            if not job.ended or not job.story.events:  # one that ended at once was never read
                job.row = await self._remit.service.jobs.row(job.job)
                job.story.read(await self._remit.service.streams.events(stream_of(job.job), job.story.events))
        self._view.show(self.jobs)
        self._pause_s = min(max(_SPACING_S, _SHARE * (clock.monotonic() - began)), _LONGEST_S)

    async def _still(self) -> bool:
        """Say whether nothing happened to any job since it was looked at; what was read after its row may be newer."""
        for job in self.jobs:
            if not job.ended and await self._remit.service.jobs.row(job.job) != job.row:
                return False
        return True

    async def _change(self, mark: int, failed: asyncio.Future[Any]) -> int:
        """Wait until there may be something new; the mark to wait from next."""
        if self._changing is None:
            self._changing = asyncio.create_task(self._next(mark))
        waited: set[asyncio.Future[Any]] = {failed, self._changing}
        if self._asking is not None:
            waited.add(self._asking)
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            failed.result()
        if self._asking is not None and self._asking.done():
            self._answered(self._asking)
        if not self._changing.done():
            return mark
        changed, self._changing = self._changing, None
        return changed.result()

    async def _next(self, mark: int) -> int:
        new = await self._news.changed(mark)
        await self._news.clock.sleep(self._pause_s)
        return new

    def _settled(self, job: JobStory) -> bool:
        if job.ended:
            return True
        if not job.idle(self._news.clock.now(), self._news.served):
            return False
        if not self._patient or job.row.stuck:
            return True
        key = (job.job, job.row.waiting_for)
        if key not in self._parked:
            self._parked.add(key)
            self._view.parked(job)
        return False

    # --- asking

    async def _put_questions(self) -> None:
        if self._asker is None:
            return
        if self._asking is not None:
            await self._reconsider(self._asker)
            return
        pending = [question for job in self.jobs for question in await self._pending(job)]
        fresh = [question for question in pending if question.confirmation not in self._later]
        if fresh:
            self._view.pause()
            self._asks, self._asker.current = job_of(fresh[0].caller), ""
            self._asking = asyncio.create_task(self._asker.ask(fresh[0]))

    async def _reconsider(self, asker: Asker) -> None:
        """Withdraw the question on the screen once it can no longer be answered.

        What its job waits for does not tell: one that was edited here is open before the job has seen it.
        """
        shown = asker.current
        if not shown:
            return
        unanswered = {one.confirmation for one in await self._remit.service.confirmations.pending(self._asks)}
        if shown not in unanswered and asker.current == shown:
            await self._withdraw(asker)

    async def _pending(self, job: JobStory) -> list[ConfirmationView]:
        if job.ended or not any(wait.type == "human" for wait in job.waits):
            return []
        return await self._remit.service.confirmations.pending(job.job)

    async def _withdraw(self, asker: Asker) -> None:
        await _end(self._asking)
        self._asking = None
        asker.withdraw()
        self._view.go_on()

    def _answered(self, asking: asyncio.Task[bool]) -> None:
        self._asking = None
        if not asking.result() and self._asker is not None:
            self._later.add(self._asker.current)
        self._view.go_on()


async def _end(task: asyncio.Task[Any] | None) -> None:
    """Cancel a task and see it off. Where we are cancelled meanwhile, that is not taken for its end."""
    if task is None or task.done():
        return
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
