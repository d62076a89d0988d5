"""Events of schedules: what they are, and the outcome of each time. All of these are ours."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from remit.clock import isoformat
from remit.journal.kinds.payload import Payload


class ScheduleChanged(Payload, frozen=True, kw_only=True):
    """Ours, first in the stream of a schedule, and each time that it becomes another: this holds from now on."""

    KIND: ClassVar[str] = "schedule_changed"
    schedule: str
    """Its name."""
    revision: int
    """The number of times that it became another, from 1; the identifiers of its jobs follow from it."""
    spec: msgspec.Raw
    """The schedule, as in a `[[schedules]]` table."""
    digest: str
    """SHA-256 of that, in canonical form."""
    source: Literal["person", "settings", "recipe"]
    """The place where it stands: a person made it, in remit.toml, or in `@recipe`."""
    place: str = ""
    """The file of that, if there is one."""
    by: str = ""
    """Its author; for a file the principal of the process that read it."""
    next: int | None = None
    """The first time, in microseconds since the Unix epoch; null: none comes."""

    def words(self) -> str:
        return f"{self.schedule} revision {self.revision} by {self.by or self.source}"


class ScheduleRemoved(Payload, frozen=True, kw_only=True):
    """Ours: nothing starts by it any more, until it is added again."""

    KIND: ClassVar[str] = "schedule_removed"
    by: str = ""

    def words(self) -> str:
        return f"by {self.by}"


class SchedulePaused(Payload, frozen=True, kw_only=True):
    """Ours: nothing starts by it until someone resumes it; times that come meanwhile are passed over."""

    KIND: ClassVar[str] = "schedule_paused"
    cause: Literal["person", "failures", "undeclared"]
    """A person did it, so many jobs in a row failed, or the file does not have it any more."""
    by: str = ""
    reason: str = ""

    def words(self) -> str:
        return f"{f'by {self.by}: ' if self.by else ''}{self.reason}"


class ScheduleResumed(Payload, frozen=True, kw_only=True):
    """Ours: it goes on."""

    KIND: ClassVar[str] = "schedule_resumed"
    by: str = ""
    next: int | None = None
    """The first time after that."""

    def words(self) -> str:
        return f"by {self.by}"


class ScheduleDayBegan(Payload, frozen=True, kw_only=True):
    """Ours: outcomes of its times are recorded in the stream of this day from now on."""

    KIND: ClassVar[str] = "schedule_day_began"
    day: str

    def words(self) -> str:
        return self.day


class ScheduleRunAsked(Payload, frozen=True, kw_only=True):
    """Ours: someone wants jobs for times of the past, or one for now."""

    KIND: ClassVar[str] = "schedule_run_asked"
    by: str = ""
    start: int
    """The first time, in microseconds since the Unix epoch."""
    end: int
    """The moment before which the last one is."""
    times: int
    """The number of times."""

    def words(self) -> str:
        return f"by {self.by}: {self.times} times from {isoformat(self.start)}"


class Occurrence(Payload, frozen=True, kw_only=True):
    """The outcome of a time, and where the schedule stands after it."""

    at: int
    """The time, in microseconds since the Unix epoch: as the schedule says it, without jitter."""
    next: int | None = None
    """The time that comes next; null: none does."""
    revision: int
    after: int
    """The newest event of the schedule's own stream then."""
    running: tuple[str, ...] = ()
    """The newest of its jobs that had not ended when it was last looked at."""
    failures: int = 0
    """The number of its jobs that failed in a row."""
    missed: int = 0
    """The number of times just before it that passed without a job, since they were noticed too late; at most 999."""


class ScheduleFired(Occurrence, frozen=True, kw_only=True):
    """Ours: the job of a time is started."""

    KIND: ClassVar[str] = "schedule_fired"
    job: str

    def words(self) -> str:
        return f"{isoformat(self.at)} {self.job}"


class ScheduleSkipped(Occurrence, frozen=True, kw_only=True):
    """Ours: a time passed without a job."""

    KIND: ClassVar[str] = "schedule_skipped"
    why: Literal["missed", "overlap", "refused"]
    """It was noticed too late, its last job still ran, or no job could be made."""
    code: str = ""
    """The code with which a job was refused."""
    reason: str = ""

    def words(self) -> str:
        return f"{isoformat(self.at)} {self.why} {self.code} {self.reason}".rstrip()


class ScheduleWaited(Occurrence, frozen=True, kw_only=True):
    """Ours: a time has come, and its job has to wait; `next` is still that time."""

    KIND: ClassVar[str] = "schedule_waited"
    code: str = ""
    """The code with which there was no room; empty: the last job still runs (`overlap = "queue"`)."""
    reason: str = ""

    def words(self) -> str:
        return f"{isoformat(self.at)} {self.code} {self.reason}".rstrip()
