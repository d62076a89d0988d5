"""One simulated process's hold on the shelf: a queue of operations, and somebody else who says when each is done.

As in a real storage, everything of one process happens in the order it was submitted, and reads see what was submitted
before. Unlike there, nothing happens by itself: `step` does the oldest operation. A `die` loses what was not done yet.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from remit.clock import Clock
from remit.errors import JournalError
from remit.journal.commit import journal_closed
from remit.journal.event import (
    Blob,
    Commit,
    Cut,
    Ends,
    Event,
    HeadQuery,
    JournalFold,
    Lease,
    LeaseClaim,
    Scanned,
    StreamEnd,
    StreamHead,
    StreamTally,
)
from tests.simulation.shelf import Shelf

T = TypeVar("T")
Operation = Callable[[], None]


class ShelfStore:
    """A Store (journal/port.py) over a shelf; without a `wanted`, every operation is done in the loop's next turn."""

    def __init__(self, shelf: Shelf, clock: Clock, wanted: Callable[[], None] | None = None) -> None:
        self.shelf = shelf
        self.url = "shelf"
        self.backlog = 0
        self.wrote: Callable[[Commit, JournalError | None], None] | None = None
        """Told of every commit, and of its outcome."""
        self._clock = clock
        self._wanted = wanted
        self._queue: deque[tuple[str, Operation]] = deque()
        self._closed = False
        self._dead = False
        self._waiting: set[asyncio.Future[None]] = set()
        shelf.watchers.append(self._notice)

    # --- whoever steers

    @property
    def pending(self) -> str | None:
        """The oldest operation that is not done."""
        return self._queue[0][0] if self._queue else None

    def step(self) -> None:
        """Do the oldest operation."""
        _, operation = self._queue.popleft()
        operation()

    def die(self) -> None:
        """The process is gone: nothing more of it reaches the shelf."""
        self._dead = True
        self._queue.clear()
        self.shelf.watchers.remove(self._notice)

    def _enqueue(self, name: str, operation: Operation) -> None:
        if self._dead:
            return
        self._queue.append((name, operation))
        if self._wanted is None:
            asyncio.get_running_loop().call_soon(self.step)
        else:
            self._wanted()

    async def _done(self, name: str, work: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
        """Queue an operation, and wait for it. One that was cancelled meanwhile happens all the same, and is undone."""
        if self._closed or self._dead:
            raise journal_closed()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def operation() -> None:
            before = self.shelf.version
            try:
                result = work()
            except JournalError as error:
                if not future.done():
                    future.set_exception(error)
                return
            if not future.done():
                future.set_result(result)
            if self.shelf.version != before:
                self._changed()

        self._enqueue(name, operation)
        try:
            return await (asyncio.shield(future) if undo else future)
        except asyncio.CancelledError:
            if undo and not self._dead:
                undo(await future)
            raise

    def _notice(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def _changed(self) -> None:
        for notice in self.shelf.watchers:
            notice()

    # --- writing

    def submit(self, commit: Commit) -> None:
        """Queue a commit."""
        if self._closed or self._dead:
            self._settle(commit, journal_closed())
            return
        self.backlog += commit.size

        def operation() -> None:
            error = self.shelf.write(commit)
            if error is not None:
                self.shelf.noticed()  # in vain, as the port allows: storages tell of a group, whatever came of it
            self.backlog -= commit.size
            if self.wrote is not None:
                self.wrote(commit, error)
            self._settle(commit, error)
            self._changed()

        self._enqueue("+".join(e.kind for a in commit.appends for e in a.events) or "head", operation)

    def _settle(self, commit: Commit, error: JournalError | None) -> None:
        if error is not None and commit.on_error is not None:
            commit.on_error(error)
        if commit.on_done is not None:
            commit.on_done(error)

    async def drained(self) -> None:
        """Return once everything submitted before is done."""
        await self._done("drained", lambda: None)

    async def folds(self, name: str, parts: tuple[str, ...]) -> list[JournalFold]:
        """A fold and some of its parts."""
        return await self._done("folds", lambda: self.shelf.kept_folds(name, parts))

    async def keep_folds(self, folds: Sequence[JournalFold], before: int) -> bool:
        """Replace folds, if the first is still the one that they continue."""
        return await self._done("keep_folds", lambda: self.shelf.keep_folds(folds, before))

    async def prune(self, now: int, limit: int) -> int:
        """Erase blobs whose time is over; how many."""
        return await self._done("prune", lambda: self.shelf.prune(now, limit))

    async def cut(self, cut: Cut) -> bool:
        """Put stubs in the place of older events."""
        return await self._done("cut", lambda: self.shelf.cut(cut))

    async def compact(self) -> int:
        """Nothing is removed."""
        return 0

    async def snapshot(self, path: str) -> None:
        """None: it is no file."""

    # --- leases

    async def claim(self, claim: LeaseClaim) -> list[Lease]:
        """Lease due streams nobody holds."""
        return await self._leased("claim", lambda: self.shelf.claim(claim))

    async def acquire(self, stream: str, claim: LeaseClaim, over: str | None) -> Lease | None:
        """Lease one stream unless somebody else's lease runs."""
        leases = await self._leased("acquire", lambda: self.shelf.acquire(stream, claim, over))
        return leases[0] if leases else None

    async def _leased(self, name: str, work: Callable[[], list[Lease]]) -> list[Lease]:
        return await self._done(name, work, lambda taken: self.shelf.give_back(taken, self._clock.now()))

    async def renew(self, leases: Sequence[tuple[str, int]], lease_until: int) -> list[str]:
        """Prolong leases; the streams still held."""
        given = tuple(leases)
        return await self._done("renew", lambda: self.shelf.renew(given, lease_until))

    # --- reading

    async def head(self, stream: str) -> StreamHead | None:
        """The newest head of a stream."""
        return await self._done("head", lambda: self.shelf.heads.get(stream))

    async def heads(self, query: HeadQuery) -> list[StreamHead]:
        """Heads that match, newest stream first."""
        return await self._done("heads", lambda: self.shelf.listed(query))

    async def counts(self, kind: str) -> dict[str, int]:
        """How many streams of a kind are in each state."""
        return await self._done(
            "counts",
            lambda: dict(Counter(one.state for one in self.shelf.listed(HeadQuery(kind=kind, limit=1_000_000)))),
        )

    async def tallies(self, kind: str, since: int, width: int, bounds: Sequence[int]) -> list[StreamTally]:
        """How many streams of a kind were made in each stretch of time, by state and by how long they took."""

        def counted() -> list[StreamTally]:
            found = self.shelf.listed(HeadQuery(kind=kind, since=since, limit=1_000_000))
            sorts = Counter(
                (
                    (one.created_at - since) // width,
                    one.state,
                    bisect_right(bounds, one.updated_at - one.created_at) if one.closed else None,
                )
                for one in found
            )
            return [StreamTally(*sort, number) for sort, number in sorts.items()]

        return await self._done("tallies", counted)

    async def read(self, stream: str, after: int, limit: int) -> list[Event]:
        """Events with seq > `after`, in order."""
        return await self._done("read", lambda: [e for e in self.shelf.events.get(stream, []) if e.seq > after][:limit])

    async def scan(self, after: int, kinds: tuple[str, ...], limit: int) -> Scanned:
        """Events of all streams, as they were written."""
        return await self._done("scan", lambda: self.shelf.scanned(after, kinds, limit))

    async def ends(self, after: int, limit: int) -> Ends:
        """How far streams reached in a stretch of what was written."""
        page = await self.scan(after, (), limit)
        newest: dict[str, Event] = {}
        for placed in page.events:
            newest.pop(placed.event.stream, None)  # in the order of positions
            newest[placed.event.stream] = placed.event
        ends = tuple(StreamEnd(event.stream, event.seq, event.hash) for event in newest.values())
        return Ends(ends, page.position, page.more)

    async def blob(self, digest: str) -> bytes | None:
        """The bytes of a digest."""
        return await self._done("blob", lambda: b.data if (b := self.shelf.blobs.get(digest)) else None)

    async def blobs(self, after: str, limit: int) -> list[Blob]:
        """Blobs with a digest > `after`, in the order of digests."""
        found = self.shelf.blobs
        return await self._done("blobs", lambda: [found[digest] for digest in sorted(found) if digest > after][:limit])

    async def wakes(self, streams: Sequence[str]) -> dict[str, int]:
        """How often each of these streams was woken."""
        heads = self.shelf.heads
        return await self._done("wakes", lambda: {s: heads[s].wakes for s in streams if s in heads})

    async def next_due(self, kind: str, routes: tuple[str, ...]) -> int | None:
        """When the next stream of a kind wants a worker."""
        return await self._done("next_due", lambda: self.shelf.next_due(kind, routes))

    async def routes(self, kind: str) -> list[str]:
        """Every route on which streams of a kind are due some time."""
        return await self._done("routes", lambda: self.shelf.routes(kind))

    async def due(self, claim: LeaseClaim) -> list[StreamHead]:
        """What a claim would get now."""
        return await self._done("due", lambda: self.shelf.due(claim))

    async def leases(self, kind: str) -> list[StreamHead]:
        """Every stream of a kind that somebody holds."""
        return await self._done("leases", lambda: self.shelf.held(kind))

    def is_older(self) -> bool:
        return False

    def missing(self) -> list[str]:
        return []

    async def answers(self, _stream: str) -> bool:
        return True

    async def integrity(self) -> list[str]:
        """Nothing can be wrong with a shelf."""
        return await self._done("integrity", list)

    # --- watching and the end

    async def changed(self, since: int) -> int:
        """Wait for a write by any process after the mark `since`."""
        if self._closed or self._dead:
            raise journal_closed()
        while since >= self.shelf.version:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(future)
            try:
                await future
            finally:
                self._waiting.discard(future)
        return self.shelf.version

    async def heads_changed(self, since: int) -> int:
        """Wait for a change of a head by any process after the mark `since`."""
        await self.changed(0)
        while since >= self.shelf.heads_version:
            await self.changed(self.shelf.version)
        return self.shelf.heads_version

    async def close(self) -> None:
        """Do what was submitted, then take nothing more."""
        if self._closed or self._dead:
            return
        self._closed = True
        for future in self._waiting:
            if not future.done():
                future.set_exception(journal_closed())
        future = asyncio.get_running_loop().create_future()
        self._enqueue("close", lambda: future.set_result(None))
        await future
        self.shelf.watchers.remove(self._notice)
