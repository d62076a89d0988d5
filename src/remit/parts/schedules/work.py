"""Schedules as work of an engine: a pass over one that is due starts the job of its next time, once.

The order of a pass, and what happens where a process dies in it, stands in remit.parts.schedules.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from remit.clock import SECOND
from remit.codes import Code
from remit.engines.passes import FreeWork, ShortPass
from remit.errors import AppendConflictError, BusyError, JournalError, RemitError
from remit.jobs.end import PassEnd
from remit.jobs.state import stream_of as job_stream
from remit.journal.event import HeadPatch
from remit.journal.kinds import ScheduleOrigin
from remit.journal.leases import HeldLease
from remit.parts.schedules.kinds import (
    Occurrence,
    ScheduleDayBegan,
    ScheduleFired,
    SchedulePaused,
    ScheduleSkipped,
    ScheduleWaited,
)
from remit.parts.schedules.schedule import job_of
from remit.parts.schedules.state import DAY_KIND, KIND, Record, ScheduleState, day_of, read_state
from remit.service.options import Options

if TYPE_CHECKING:
    from remit.engines.port import StreamExecution
    from remit.journal.event import Lease
    from remit.journal.journal import Journal
    from remit.journal.kinds import Payload
    from remit.journal.writer import Draft
    from remit.parts.schedules.schedule import Schedule
    from remit.parts.schedules.times import Times
    from remit.service.jobs import Jobs

Why = Literal["missed", "overlap", "refused"]
_log: Final = logging.getLogger("remit.schedules")
LATE: Final = 60 * SECOND
"""A time that is older than this when it is noticed counts as missed: `catch_up = "none"` passes it over."""
_LONGEST_S: Final = 30.0
_RUNNING: Final = 16
"""So many jobs that have not ended are looked at again, the newest."""


class ScheduleWork(FreeWork):
    """The work on schedules of the recipes that this process knows."""

    def __init__(self, journal: Journal, jobs: Jobs, recipes: Callable[[], Collection[str]]) -> None:
        super().__init__(KIND, journal)
        self._jobs = jobs
        self._recipes = recipes
        self._records: dict[str, Record] = {}

    @property
    def routes(self) -> tuple[str, ...]:
        return tuple(self._recipes())

    def take(self, lease: Lease, keeper: str) -> StreamExecution:  # noqa: ARG002 - the port's
        stream = lease.head.stream
        return Pass(self.journal, self._jobs, lease, self._records.pop(stream, None), self._records)


class Due(NamedTuple):
    """The times of a schedule that are due."""

    at: int
    """The time that a job starts for, or that is passed over."""
    since: int
    """The first time that was due."""
    missed: bool
    """Whether `at` itself is passed over, as it is too late."""
    caught_up: bool = False
    """Whether `at` has a job however late it is noticed: after those that run."""


def due_of(state: ScheduleState, schedule: Schedule, times: Times, now: int) -> Due:
    """Say which times are due, of a schedule whose next time is, and for which one a job starts. Pure."""
    first = state.next or 0
    caught_up = schedule.catch_up == "all" and now - times.due(first) > LATE
    if state.wait is not None:  # that it starts was said when it came
        return Due(first, first, missed=False, caught_up=caught_up)
    limit = LATE if schedule.catch_up == "none" else schedule.window
    if schedule.catch_up != "all":
        newest = times.latest(first, now)
        return Due(newest, first, missed=now - times.due(newest) > limit)
    if now - times.due(first) <= limit:
        return Due(first, first, missed=False, caught_up=caught_up)
    oldest = times.after(now - limit - 1)
    if oldest is None or times.due(oldest) > now:
        return Due(times.latest(first, now), first, missed=True)
    return Due(oldest, first, missed=False, caught_up=caught_up)


class Pass(ShortPass):
    """A pass over a schedule: what is due of it, one job at most."""

    def __init__(
        self, journal: Journal, jobs: Jobs, lease: Lease, record: Record | None, records: dict[str, Record]
    ) -> None:
        super().__init__(journal, lease, _log)
        self._jobs = jobs
        self._record = record
        self._records = records

    async def go(self) -> PassEnd:
        """Start the job that is due, and say when the next one is."""
        await self._go()
        return PassEnd(how="parked")

    async def _go(self) -> None:
        if self.lease.writer.doubt is not None:
            self.lease.writer.follows(await self.journal.read(self.head.stream))
        state = await read_state(self.journal, self.head, self._record)
        schedule, at = state.record.spec, state.next
        if schedule is None or at is None or state.word in {"paused", "removed"}:
            await self.lease.release(patch=HeadPatch(state="waiting", due_at=None))
            return
        self._records[self.head.stream] = state.record
        log = OccurrenceLog(self.journal, self.lease, state, schedule)
        job = log.job(at)
        if await self.journal.head(job_stream(job)) is not None:  # a process died before it could say so
            await log.fired(at, job)
        elif (now := self.journal.clock.now()) < (due := log.times.due(at)):
            await self.lease.release(patch=HeadPatch(state="pending", due_at=due))
        else:
            await self._start(log, due_of(state, schedule, log.times, now))

    async def _start(self, log: OccurrenceLog, due: Due) -> None:
        schedule, most = log.schedule, log.schedule.pause_on_failure
        await log.look()
        log.missed = log.times.count(due.since, due.at) - 1 if due.since < due.at else 0
        if most and log.failures >= most:
            await log.pause(f"{log.failures} jobs in a row failed, the last one was {log.failed}")
        elif due.missed:
            await log.skipped(due.at, "missed")
        elif log.running and (schedule.overlap == "queue" or (schedule.overlap == "skip" and due.caught_up)):
            await log.waits(due.at, "", f"{log.running[-1]} still runs")
        elif log.running and schedule.overlap == "skip":
            await log.skipped(due.at, "overlap", reason=f"{log.running[-1]} still runs")
        else:
            await self._fire(log, due.at)

    async def _fire(self, log: OccurrenceLog, at: int) -> None:
        if log.schedule.overlap == "replace":
            for job in log.running:
                await self._replace(job, log.schedule.name)
            log.running = ()
        if await self.lease.current() is None:
            return None
        try:
            await self._jobs.start_named(log.schedule.recipe, log.schedule.input, log.options(at))
        except AppendConflictError:
            pass  # it is there
        except BusyError as error:
            return await log.waits(at, error.code.name, error.message)
        except JournalError as error:
            if error.code is not Code.JOURNAL_SHARD_UNAVAILABLE:
                raise
            return await log.waits(at, error.code.name, error.message)
        except RemitError as error:
            return await log.skipped(at, "refused", code=error.code.name, reason=error.message)
        await log.fired(at, log.job(at))
        return None

    async def _replace(self, job: str, name: str) -> None:
        try:
            await self._jobs.cancel(job, reason=f"the next time of the schedule {name} has come")
        except RemitError as error:
            if error.code not in {Code.JOB_FINISHED, Code.JOB_NOT_FOUND}:
                raise


class OccurrenceLog:
    """Records the outcome of a time, and gives the lease of its schedule up with that: one write."""

    def __init__(self, journal: Journal, lease: HeldLease, state: ScheduleState, schedule: Schedule) -> None:
        self.schedule = schedule
        self.times = schedule.times
        self.failures = state.failures
        self.running = state.running
        self.failed = ""
        """The job that failed last."""
        self.missed = 0
        """The number of times that passed before the one that is due."""
        self._journal = journal
        self._lease = lease
        self._state = state
        self._revision = state.record.change.revision if state.record.change is not None else 0

    def job(self, at: int) -> str:
        """Return the job of a time."""
        return job_of(self.schedule.name, self._revision, at)

    def options(self, at: int, by: str = "") -> Options:
        """Return how the job of a time is filed."""
        change, schedule = self._state.record.change, self.schedule
        principal = change.by if change is not None else ""
        return Options(
            labels={**schedule.labels, "schedule": schedule.name},
            priority=schedule.priority,
            principal=schedule.principal,
            job=self.job(at),
            schedule=ScheduleOrigin(name=schedule.name, revision=self._revision, at=at, by=by or principal),
        )

    async def look(self) -> None:
        """Look which of its jobs have ended, and how many failed in a row."""
        heads = await asyncio.gather(*(self._journal.head(job_stream(job)) for job in self.running))
        for job, head in zip(self.running, heads, strict=True):
            if head is not None and head.closed and head.state != "cancelled":
                self.failures = self.failures + 1 if head.state == "failed" else 0
                self.failed = job if head.state == "failed" else ""
        ended = {job for job, head in zip(self.running, heads, strict=True) if head is None or head.closed}
        self.running = tuple(job for job in self.running if job not in ended)

    async def fired(self, at: int, job: str) -> None:
        """Record the job of a time."""
        await self._end(self.firing(at, job))

    def firing(self, at: int, job: str) -> ScheduleFired:
        """Return what is recorded of the job of a time."""
        if self.schedule.overlap != "allow" or self.schedule.pause_on_failure:
            self.running = (*self.running, job)[-_RUNNING:]
        return ScheduleFired(at=at, job=job, **self._common(self.times.after(at)))

    async def skipped(self, at: int, cause: Why, *, code: str = "", reason: str = "") -> None:
        """Record that a time passes without a job."""
        self.failures += cause == "refused"
        occurrence = ScheduleSkipped(at=at, why=cause, code=code, reason=reason, **self._common(self.times.after(at)))
        await self._end(occurrence)

    async def waits(self, at: int, code: str, reason: str) -> None:
        """Record that the job of a time has to wait, once, and look again after a pause."""
        now, wait = self._journal.clock.now(), self._state.wait
        since = self._state.occurred_at if wait is not None else now
        again = now + int(min(max(1.0, (now - since) / SECOND / 2), _LONGEST_S) * SECOND)
        if wait is not None and (wait.at, wait.code) == (at, code):
            await self._lease.release(patch=HeadPatch(state="pending", due_at=again))
        else:
            await self._end(ScheduleWaited(at=at, code=code, reason=reason, **self._common(at)), due_at=again)

    async def pause(self, reason: str) -> None:
        """Pause the schedule, since its jobs fail."""
        paused = SchedulePaused(cause="failures", reason=reason)
        await self._lease.release(paused, patch=HeadPatch(state="waiting", due_at=None))

    def _common(self, following: int | None) -> dict[str, Any]:
        return {
            "next": following,
            "revision": self._revision,
            "after": self._state.record.seq,
            "running": self.running,
            "failures": self.failures,
            "missed": self.missed,
        }

    async def _end(self, occurrence: Occurrence, due_at: int | None = None) -> None:
        """Record an occurrence in the stream of its day, say when the next one is due, and give the lease up."""
        due = due_at if due_at is not None or occurrence.next is None else self.times.due(occurrence.next)
        began, drafts = self.drafts(occurrence)
        await self._lease.release(*began, patch=HeadPatch(state="pending", due_at=due), beside=drafts)

    def drafts(self, occurrence: Occurrence) -> tuple[tuple[Payload, ...], tuple[Draft, ...]]:
        """Return what an occurrence writes: to the schedule's own stream, and to those of days."""
        record, day, head = self._state.record, day_of(occurrence.at), self._state.day
        if head is not None and (day <= record.day):
            return (), (self._journal.writer(head.stream, DAY_KIND, head).draft(occurrence),)
        new = self._journal.writer(f"{record.stream}/{day}", DAY_KIND)
        drafts = [new.draft(occurrence, patch=HeadPatch(state="open", title=f"{self.schedule.name} {day}"))]
        if head is not None:
            closed = HeadPatch(state="completed", due_at=None, closed=True)
            drafts.append(self._journal.writer(head.stream, DAY_KIND, head).draft(patch=closed))
        return (ScheduleDayBegan(day=day),), tuple(drafts)
