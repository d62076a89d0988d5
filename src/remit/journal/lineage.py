"""Events of other jobs: copies that a retry took over, and those that a fork shares with them by reference.

A retry holds copies, and their times. A fork holds none: its `job_forked` names a job and the last event of it that
counts as the fork's own. Both may have been made of forks and retries. What had not ended at that event is not shared,
nor what says how the other job as a whole began, went and ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from typing import Final, NamedTuple, Protocol

import msgspec

from remit.errors import ChainBrokenError, RecordPrunedError
from remit.journal import kinds as k
from remit.journal.event import Event

LEFT_BEHIND: Final = (
    k.JobCreated,
    k.JobForked,
    k.RecoveryStarted,
    k.RecoveryCompleted,
    k.VersionMismatchRecorded,
    k.JobCompleted,
    k.JobFailed,
    k.JobCancelled,
)
"""Events that say how a job as a whole began, went and ended: no other job takes them over."""
OWN: Final = 2
"""Events before those that are shared: that the job was created, and that it was forked."""
_CUT_OFF: Final = frozenset({"retryable_failure", "uncertain"})


class JournalPages(Protocol):
    """The journal, read page by page."""

    async def page(self, stream: str, after: int = 0, limit: int = ...) -> list[Event]:
        """The next events with seq > `after`, at most `limit`."""
        ...


class EventOrigin(NamedTuple):
    """Place at which an event was recorded first."""

    at: int
    """Microseconds since the Unix epoch."""
    job: str
    """The job that it was taken from; empty: the job itself recorded it."""


class EventOrigins:
    """Reads a job's events in order, and says of each when and where it was recorded first."""

    def __init__(self) -> None:
        self._stream = ""
        self._shares = False
        self._job = ""
        self._left = 0
        self._times: Iterator[int] = iter(())

    def of(self, payload: k.Payload | None, event: Event) -> EventOrigin:
        """Return the origin of the next event; its payload is None if its kind is not known here."""
        self._stream = self._stream or event.stream
        if self._shares and event.stream != self._stream:
            return EventOrigin(event.at, event.stream.partition("/")[2])
        if self._left:
            self._left -= 1
            return EventOrigin(next(self._times, event.at), self._job)
        if isinstance(payload, k.JobForked):
            self._job, self._left, self._shares = payload.job, payload.taken, payload.shared
            self._times = accumulate(payload.times)
        return EventOrigin(event.at, "")


def recorded_times(events: Iterable[Event]) -> list[int]:
    """Return when each event of a job was recorded first, wherever that was."""
    origins = EventOrigins()
    return [origins.of(k.decode(event.kind, event.data), event).at for event in events]


def intervals(times: Iterable[int]) -> tuple[int, ...]:
    """The first time, then from each to the next: as JobForked holds them."""
    return tuple(later - earlier for earlier, later in pairwise((0, *times)))


def origin_of(forked: k.JobForked | None) -> tuple[str, str]:
    """Return the job that this one retries, and the one that it is a fork of; empty if it does not, or is not."""
    if forked is None:
        return "", ""
    return ("", forked.job) if forked.shared else (forked.job, "")


async def whole(journal: JournalPages, events: list[Event]) -> list[Event]:
    """Return a job's events with those that it shares, in the order in which they happened.

    `events` are its own, from the first on; they come back as they are if the job shares nothing. What is shared keeps
    the stream in which it stands. Raises ChainBrokenError if that is not what it was when the job was forked.
    """
    line: list[list[Event]] = []
    jobs: set[str] = set()
    while (forked := _shared(events)) is not None:
        line.append(events)
        events = await _before(journal, forked, jobs)
    for own in reversed(line):
        events = [*own[:OWN], *_kept(events), *own[OWN:]]
    return events


async def inherited(journal: JournalPages, stream: str) -> list[Event]:
    """Return the events that a job shares with others, none if it is no fork. Raises as `whole` does."""
    own = (await journal.page(stream, 0, OWN))[:OWN]
    return (await whole(journal, own))[len(own) :]


async def forebears(journal: JournalPages, stream: str) -> list[str]:
    """Return the streams of the jobs whose events a job shares, the nearest first; none if it is no fork.

    A job that was pruned does not say any more what it shared.
    """
    streams: list[str] = []
    with suppress(RecordPrunedError):
        while (forked := _shared(await journal.page(stream, 0, OWN))) and f"job/{forked.job}" not in streams:
            stream = f"job/{forked.job}"
            streams.append(stream)
    return streams


def _shared(events: Sequence[Event]) -> k.JobForked | None:
    """Return what a job shares with another one; None: nothing."""
    if len(events) < OWN or events[1].kind != k.JobForked.KIND:
        return None
    forked = k.decode(events[1].kind, events[1].data)
    return forked if isinstance(forked, k.JobForked) and forked.shared else None


async def _before(journal: JournalPages, forked: k.JobForked, jobs: set[str]) -> list[Event]:
    """Return the other job's events up to the last one that is shared. Raises ChainBrokenError."""
    events: list[Event] = []
    while forked.job not in jobs and len(events) < forked.seq:
        page = await journal.page(f"job/{forked.job}", len(events))
        if not page:
            break
        events += page
    jobs.add(forked.job)
    events = events[: forked.seq]
    if len(events) < forked.seq or events[-1].hash.hex() != forked.hash:
        reason = f"the events that were shared with {forked.job} are not there as they were"
        raise ChainBrokenError(reason, remedy=f"Run `remit verify {forked.job}`, and restore a backup.")
    return events


def _kept(events: Iterable[Event]) -> list[Event]:
    """Return the events of steps that had ended, as of when they were recorded first."""
    origins = EventOrigins()
    shared: list[tuple[Event, k.Payload]] = []
    for event in events:
        payload = k.decode(event.kind, event.data)
        at = origins.of(payload, event).at
        stuck = isinstance(payload, k.JobWaiting) and payload.correlation_key.startswith(k.STUCK)
        if payload is None or stuck or isinstance(payload, LEFT_BEHIND):
            continue
        if isinstance(payload, k.WaitCompleted) and payload.inbox_seq:  # it came into the inbox of that job
            data = k.encode(msgspec.structs.replace(payload, inbox_seq=0))
            shared.append((msgspec.structs.replace(event, at=at, data=data), payload))
        else:
            shared.append((event if at == event.at else msgspec.structs.replace(event, at=at), payload))
    under_way = _under_way(payload for _, payload in shared)
    return [
        event
        for event, payload in shared
        if isinstance(payload, k.StepArgsGiven) or getattr(payload, "step", "") not in under_way
    ]


def _under_way(payloads: Iterable[k.Payload]) -> set[str]:
    """Return the steps that had begun and not ended: a call or question without its outcome, a wait for something."""
    pending: set[tuple[str, str]] = set()
    for payload in payloads:
        match payload:
            case k.ToolInvocationStarted() | k.CommandStarted() | k.ConfirmationRequested() | k.CompensationStarted():
                pending.add((payload.step, ""))
            case k.JobWaiting():
                pending.add((payload.step, payload.correlation_key))
            case k.WaitCompleted() | k.TimerFired():
                pending.discard((payload.step, payload.correlation_key))
            case k.ToolInvocationFinished() if payload.step_outcome not in _CUT_OFF:
                pending.discard((payload.step, ""))
            case k.CommandCommitted() if payload.again_ms is None:
                pending.discard((payload.step, ""))
            case k.GateRefused() | k.CompensationCompleted():
                pending.discard((payload.step, ""))
            case _:
                pass
    return {step for step, _ in pending if step}
