"""The guarantees of a storage backend. Journal (journal.py) is its only caller; testing/journal/ is its contract suite.

Promises of every backend, on every machine it runs on:

1. A commit happens whole or not at all, and commits of one process on one stream happen in the order of `submit`.
2. An append is refused (AppendConflictError) unless the head's seq, chain value and epoch, and its wakes where stated,
   are exactly those the writer expected; comparison and write are one transaction. A refused commit writes nothing,
   blobs and wakes included, and no other commit suffers from it, nor from one that holds what the storage cannot take
   (RECORD_INVALID).
3. Once a `synced` commit is done, it and everything submitted before it survive the loss of the machine's
   power. A commit that was not synced survives the death of the process once it was written, which happens soon.
4. A commit that failed leaves no part behind, and what its writer appended after it is refused as well.
5. Of two claims, at most one gets a stream; a claim raises its epoch, so that the former holder's appends are refused.
   Leases need not survive the loss of power where it ends every holder as well.
6. A blob without bytes stands for one that was erased: it takes the place of bytes kept under that digest, and no bytes
   ever take its place.
7. In a journal that runs no jobs (standing.py) a commit is refused unless it is `aside`, and no stream is leased; look
   and write are one transaction. Once an `unleased` commit is done, no lease runs, and nothing is written any more by
   what looked before it.
8. Events are removed by `cut` alone, and only before a stub in the same stream.
9. After `close`, and for callers that still wait in `changed` then, everything raises JournalError (JOURNAL_CLOSED); a
   submitted commit is refused with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from remit.codes import Code
from remit.errors import JournalError
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
    StreamHead,
    StreamTally,
)


class Writing(Protocol):
    """The writing side of a store."""

    def submit(self, commit: Commit) -> None:
        """Queue a commit; returns at once. Its callbacks are called on the event loop, `on_error` before `on_done`.

        After `close` they are called before this returns.
        """
        ...

    async def drained(self) -> None:
        """Return once everything submitted before has been written (not necessarily flushed)."""
        ...

    @property
    def backlog(self) -> int:
        """Bytes submitted and not yet written."""
        ...

    async def keep_folds(self, folds: Sequence[JournalFold], before: int) -> bool:
        """Put a fold and parts of it in the place of those kept, in one transaction.

        Nothing is written, and the answer is False, unless the first of them is kept at the position `before` (0: not).
        """
        ...

    def is_older(self) -> bool:
        """Return whether an older Remit made it: what is written brings it to today's schema, and looking does not."""
        ...

    async def prune(self, now: int, limit: int) -> int:
        """Erase at most `limit` blobs that are kept `until` now or earlier; how many."""
        ...

    async def cut(self, cut: Cut) -> bool:
        """Append each stub, remove the events before it, and the bytes, in one transaction that survives a power loss.

        Nothing is written, and the answer is False, if an event after `seen` holds one of the names: look again.
        Raises AppendConflictError if a head is not the one that was expected, JournalError as a commit does.
        """
        ...

    async def snapshot(self, path: str) -> Store | None:
        """Open a copy of all of this as of one moment, made at a path where nothing is, while others write.

        No lease in it runs. None: this storage has other means for that.
        """
        ...

    async def compact(self) -> int:
        """Give back the space of what was removed, where that takes an order; how many bytes. May take long."""
        ...


class Reading(Protocol):
    """The reading side of a store."""

    async def head(self, stream: str) -> StreamHead | None:
        """The newest head, with everything this process submitted before taken into account."""
        ...

    async def heads(self, query: HeadQuery) -> list[StreamHead]:
        """Heads that match, newest stream first."""
        ...

    async def counts(self, kind: str) -> dict[str, int]:
        """Return how many streams of a kind there are in each state; a state without one is left out."""
        ...

    async def tallies(self, kind: str, since: int, width: int, bounds: Sequence[int]) -> list[StreamTally]:
        """Count the streams of a kind made from `since` on, by stretches of `width` and by `bounds` of their time.

        All in microseconds; the bounds are in order. Stretch, state and time without a stream are left out.
        """
        ...

    async def read(self, stream: str, after: int, limit: int) -> list[Event]:
        """Events with seq > `after`, in order, at most `limit`."""
        ...

    async def scan(self, after: int, kinds: tuple[str, ...], limit: int) -> Scanned:
        """Events of all streams with a position > `after`, at most `limit`; of these kinds, or of any if it is empty.

        Positions grow: within a stream with seq, and from a commit that is done to every commit submitted after that.
        No event ever appears at a position that a page has passed, however slow the transaction that writes it. After a
        loss of power, events that were not synced are gone and others may get their positions.
        """
        ...

    async def ends(self, after: int, limit: int) -> Ends:
        """The newest event of each stream among the next `limit` positions > `after`, in the order of positions.

        Positions are those of `scan`, with its promises.
        """
        ...

    async def folds(self, name: str, parts: tuple[str, ...]) -> list[JournalFold]:
        """A fold and these parts of it, by name, of one moment; those that are not kept are left out."""
        ...

    async def blob(self, digest: str) -> bytes | None:
        """The bytes of a digest."""
        ...

    async def blobs(self, after: str, limit: int) -> list[Blob]:
        """Blobs with a digest > `after`, in the order of digests, at most `limit`."""
        ...


class Leasing(Protocol):
    """The leases of a store."""

    async def claim(self, claim: LeaseClaim) -> list[Lease]:
        """Lease due streams without a holder, or whose lease lapsed; a caller cancelled meanwhile gives them back.

        Higher priorities come first. Where more of one is due than there is room for, shares take turns, in the order
        of their names from `after` on: claims that go on from each other's `turn` come to every share, and streams of
        one never wait for all of another's. Within a share the longest due comes first.
        """
        ...

    async def due(self, claim: LeaseClaim) -> list[StreamHead]:
        """Return what a claim would get now, in the same order; nothing is leased."""
        ...

    async def acquire(self, stream: str, claim: LeaseClaim, over: str | None) -> Lease | None:
        """Lease one stream, due or not, on the claim's terms; None if it is closed or someone else's lease runs.

        `over` names a lease owner known to be dead, whose lease may be taken before it lapses.
        """
        ...

    async def renew(self, leases: Sequence[tuple[str, int]], lease_until: int) -> list[str]:
        """Prolong leases, given as (stream, epoch); the streams that are still held."""
        ...

    async def wakes(self, streams: Sequence[str]) -> dict[str, int]:
        """Return how often each of these streams was woken, in one look."""
        ...

    async def next_due(self, kind: str, routes: tuple[str, ...]) -> int | None:
        """Say when the next stream of a kind wants a worker, of those a claim for these routes finds; None: never."""
        ...

    async def routes(self, kind: str) -> list[str]:
        """Every route on which streams of a kind are due some time; the empty one may be among them."""
        ...

    async def leases(self, kind: str) -> list[StreamHead]:
        """Every stream of a kind that someone holds, lapsed or not."""
        ...


class Watching(Protocol):
    """The news of a store."""

    async def changed(self, since: int) -> int:
        """Wait until this journal was written to, by any process, after the mark `since`; return the new mark.

        Mark 0 returns at once. May return without a change; never misses one.
        """
        ...

    async def heads_changed(self, since: int) -> int:
        """The same for heads: wait until a stream was made, woken, parked, leased or closed, or a head was patched.

        May be told of other processes' changes a little later than `changed`, while this one writes much.
        """
        ...


class Store(Writing, Reading, Leasing, Watching, Protocol):
    """A backend that keeps streams, heads and blobs."""

    @property
    def url(self) -> str:
        """Return where the journal is, without secrets, as `remit doctor` shows it."""
        ...

    def missing(self) -> list[str]:
        """Return the parts of it that do not answer now: lists and claims go on without what is there."""
        ...

    async def answers(self, stream: str) -> bool:
        """Return whether the part of it that has a stream answers; one that was never asked is waited for, briefly."""
        ...

    async def integrity(self) -> list[str]:
        """Return what the backend itself finds wrong with its storage; empty: nothing."""
        ...

    async def close(self) -> None:
        """Write what was submitted, then release everything; may be called twice."""
        ...


def newer(version: int, known: int) -> JournalError:
    """Return why a journal that a newer Remit brought to its schema is not opened: none is ever brought back."""
    reason = (
        f"a newer Remit gave the journal schema {version}, and this one knows up to {known}: no journal is brought back"
    )
    remedy = "Start the newer Remit again, or restore the backup from before it."
    return JournalError(reason, code=Code.JOURNAL_NEWER, remedy=remedy)
