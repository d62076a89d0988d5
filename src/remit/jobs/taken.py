"""When the steps that a retry took over were recorded: by another job, before this one existed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from remit.journal import kinds as k

if TYPE_CHECKING:
    from remit.journal.event import Event


class Origin(NamedTuple):
    """Where an event was recorded first."""

    at: int
    """Microseconds since the Unix epoch."""
    job: str
    """The job that a retry took it from; empty: the job itself recorded it."""


class Origins:
    """Reads a job's events in order, and says of each when and where it was recorded first."""

    def __init__(self) -> None:
        self._job = ""
        self._left = 0
        self._times: Iterator[int] = iter(())

    def of(self, payload: k.Payload | None, at: int) -> Origin:
        """The origin of the next event, which was appended `at` this time; None: its kind is not known here."""
        if self._left:
            self._left -= 1
            return Origin(next(self._times, at), self._job)
        if isinstance(payload, k.JobForked):
            self._job, self._left = payload.job, payload.taken
            self._times = accumulate(payload.times)
        return Origin(at, "")


def recorded_times(events: Iterable[Event]) -> list[int]:
    """When each event of a job was recorded first, wherever that was."""
    origins = Origins()
    return [origins.of(k.decode(event.kind, event.data), event.at).at for event in events]


def intervals(times: Iterable[int]) -> tuple[int, ...]:
    """The first time, then from each to the next: as JobForked holds them."""
    return tuple(later - earlier for earlier, later in pairwise((0, *times)))
