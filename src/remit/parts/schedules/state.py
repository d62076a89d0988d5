"""Where a schedule stands, by its events: what it is, whether it pauses, and which time comes next.

The stream of a schedule holds few events; the one of a day holds one for each time, of which the newest is read alone.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import ChainBrokenError, NotFoundError
from remit.journal.event import verify
from remit.journal.kinds import decode
from remit.journal.values import RESTORE
from remit.parts.schedules import kinds as k
from remit.parts.schedules.schedule import Schedule

if TYPE_CHECKING:
    from remit.journal.event import Event, StreamHead
    from remit.journal.journal import Journal

KIND: Final = "schedule"
"""The kind of the streams of schedules, which workers lease."""
DAY_KIND: Final = "schedule_day"


def stream_of(name: str, day: str = "") -> str:
    """The stream of a schedule, or of the outcomes of a day."""
    return f"schedule/{name}/{day}" if day else f"schedule/{name}"


def day_of(at: int) -> str:
    """The day of a moment, in UTC."""
    return datetime.fromtimestamp(at / SECOND, UTC).strftime("%Y-%m-%d")


class Record:
    """The events of a schedule's own stream, folded; carried on from where it was left."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.seq = 0
        self.hash: bytes | None = None
        self.spec: Schedule | None = None
        self.change: k.ScheduleChanged | None = None
        """The revision that holds."""
        self.pause: k.SchedulePaused | None = None
        self.removed = False
        self.first: int | None = None
        """The time that was to come next when it was changed or resumed last."""
        self.since = 0
        """The event that said so: occurrences before it say nothing of the next time any more."""
        self.day = ""
        """The day whose stream is open."""

    def carry_on(self, head: StreamHead, events: list[Event]) -> None:
        """Fold further events, up to a head. Raise ChainBrokenError unless they are those that it stands for."""
        before = None if self.hash is None else (self.seq, self.hash)
        if verify(self.stream, events, before) != (head.seq, head.hash):
            raise _broken(self.stream)
        self.seq, self.hash = head.seq, head.hash
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        match decode(event.kind, event.data):
            case k.ScheduleChanged() as change:
                self.change, self.pause, self.removed = change, None if self.removed else self.pause, False
                self.spec = msgspec.json.decode(change.spec, type=Schedule)
                self.first, self.since = change.next, event.seq
            case k.ScheduleRemoved():
                self.removed = True
            case k.SchedulePaused() as pause:
                self.pause = pause
            case k.ScheduleResumed() as resumed:
                self.pause, self.first, self.since = None, resumed.next, event.seq
            case k.ScheduleDayBegan() as began:
                self.day = began.day
            case _:
                pass


class ScheduleState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a schedule stands."""

    record: Record
    day: StreamHead | None
    """The head of the day's stream."""
    occurrence: k.Occurrence | None
    """The outcome of the newest time."""
    occurred_at: int = 0
    """When that was recorded."""

    @property
    def holds(self) -> bool:
        """Return whether the newest occurrence says which time comes next."""
        return self.occurrence is not None and self.occurrence.after >= self.record.since

    @property
    def next(self) -> int | None:
        """Return the time that comes next, as it is recorded."""
        return self.occurrence.next if self.occurrence is not None and self.holds else self.record.first

    @property
    def failures(self) -> int:
        """Return how many jobs failed in a row since it was changed or resumed."""
        return self.occurrence.failures if self.occurrence is not None and self.holds else 0

    @property
    def running(self) -> tuple[str, ...]:
        """Return the jobs that had not ended when they were last looked at."""
        return self.occurrence.running if self.occurrence is not None else ()

    @property
    def wait(self) -> k.ScheduleWaited | None:
        """Return why the time that comes next has no job yet, though it came."""
        return self.occurrence if self.holds and isinstance(self.occurrence, k.ScheduleWaited) else None

    @property
    def word(self) -> Literal["on", "waits", "paused", "removed"]:
        """Return where it stands, in a word."""
        if self.record.removed:
            return "removed"
        return "paused" if self.record.pause is not None else "waits" if self.wait is not None else "on"


async def read_state(journal: Journal, head: StreamHead, record: Record | None = None) -> ScheduleState:
    """Read where a schedule stands; a `record` of before is carried on. Raise ChainBrokenError."""
    record = record or Record(head.stream)
    record.carry_on(head, [each for each in await journal.read(head.stream, record.seq) if each.seq <= head.seq])
    if not record.day:
        return ScheduleState(record=record, day=None, occurrence=None)
    stream = f"{head.stream}/{record.day}"
    day = await journal.head(stream)
    if day is None:
        raise NotFoundError(f"{stream} is gone", code=Code.STREAM_NOT_FOUND, remedy="Restore the journal.")
    newest = await _newest(journal, day)
    occurrence = decode(newest.kind, newest.data)
    return ScheduleState(
        record=record,
        day=day,
        occurrence=occurrence if isinstance(occurrence, k.Occurrence) else None,
        occurred_at=newest.at,
    )


async def _newest(journal: Journal, day: StreamHead) -> Event:
    """Return the newest event of a day. Raise ChainBrokenError unless the head stands for it."""
    events = [each for each in await journal.read(day.stream, max(0, day.seq - 2)) if each.seq <= day.seq]
    before = (events[0].seq, events[0].hash) if day.seq > 1 else None
    if verify(day.stream, events[1:] if before else events, before) != (day.seq, day.hash):
        raise _broken(day.stream)
    return events[-1]


def _broken(stream: str) -> ChainBrokenError:
    return ChainBrokenError(f"{stream}: its events do not match its head", remedy=RESTORE)
