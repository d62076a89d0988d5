"""The tools that a check needs of the storage under test, and the few words all checks are written in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Final, Protocol

from remit.clock import SECOND, Clock
from remit.codes import Code
from remit.errors import JournalError, NotFoundError
from remit.journal.event import HeadPatch, LeaseClaim, StreamHead
from remit.journal.journal import Journal
from remit.journal.kinds import TimeRecorded
from remit.journal.writer import StreamWriter
from remit_testing.clock import START, ManualClock

PATIENCE_S: Final = 60.0
"""Seconds after which a journal that does not come to an end has failed; never waited where it keeps its promises."""
LEASE: Final = 30 * SECOND
"""The time that leases last in these checks, in microseconds."""


class Storage(Protocol):
    """Storage that is empty when a check begins."""

    def open(self, clock: Clock) -> AbstractAsyncContextManager[Journal]:
        """An instance on it, closed at the end. A storage that is not shared is opened once."""
        ...


Check = Callable[[Storage], Awaitable[None]]


@asynccontextmanager
async def opened(storage: Storage, clock: Clock | None = None) -> AsyncIterator[Journal]:
    """A journal on the storage, by a clock that stands at START."""
    async with asyncio.timeout(PATIENCE_S), storage.open(clock or ManualClock()) as journal:
        yield journal


@contextmanager
def refused(code: Code = Code.APPEND_CONFLICT) -> Iterator[None]:
    """Something that has to raise JournalError with this code."""
    actual: Code | None = None
    try:
        yield
    except (JournalError, NotFoundError) as error:
        actual = error.code
    assert actual is code, f"was refused with {actual}, not {code}" if actual else f"was not refused with {code}"


def note(number: int) -> TimeRecorded:
    """A small payload that can be told from others."""
    return TimeRecorded(step=str(number), value=number)


def noted(*numbers: int) -> list[TimeRecorded]:
    """Several of them."""
    return [note(number) for number in numbers]


def due(at: int | None = START, **more: str | int | bool) -> HeadPatch:
    """The head of a stream that wants a worker."""
    return HeadPatch(due_at=at, **more)  # type: ignore[arg-type] # fields of HeadPatch, each of its type


def terms(owner: str = "worker", now: int = START, **more: object) -> LeaseClaim:
    """A claim on streams of the kind `job`."""
    return LeaseClaim(kind="job", owner=owner, now=now, lease_until=now + LEASE, **more)  # type: ignore[arg-type] # the same


async def job(journal: Journal, stream: str, patch: HeadPatch | None = None) -> StreamWriter:
    """A new stream of the kind `job` with one event, due unless told otherwise."""
    return await journal.create(stream, "job", note(1), patch=patch if patch is not None else due())


async def holder(journal: Journal, stream: str = "job/a", *, owner: str = "worker", over: str = "") -> StreamWriter:
    """The writer that comes with a lease on an existing stream, taken over from `over` where that is named."""
    lease = await journal.acquire(stream, terms(owner, journal.clock.now()), over=over or None)
    assert lease is not None, f"{stream} cannot be leased"
    return journal.writer(stream, "job", lease.head)


async def head_of(journal: Journal, stream: str = "job/a") -> StreamHead:
    """The head of a stream that exists."""
    head = await journal.head(stream)
    assert head is not None, f"{stream} is not there"
    return head


async def numbers(journal: Journal, stream: str = "job/a") -> list[int]:
    """The sequence numbers in a stream."""
    return [event.seq for event in await journal.read(stream)]
