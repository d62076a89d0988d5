"""The journal: what the rest of Remit writes to and reads from. It owns the storage port and is its only caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from itertools import islice
from typing import Any, Final
from weakref import WeakValueDictionary

from msgspec.structs import replace

from remit.clock import Clock, SystemClock
from remit.codes import Code
from remit.errors import AppendConflictError, ChainBrokenError, JournalError, NotFoundError
from remit.journal import values
from remit.journal.event import (
    NO_PATCH,
    Append,
    Blob,
    Commit,
    Ends,
    Event,
    HeadPatch,
    HeadQuery,
    Lease,
    LeaseClaim,
    Placed,
    Scanned,
    StreamHead,
)
from remit.journal.examination import STRETCH, EventValues, Examined, Visit, examine, pass_by, prove
from remit.journal.kinds import OptionalRaw, OptionalRef, Payload, encode
from remit.journal.port import Store
from remit.journal.references import Salt, erasure_of, salted
from remit.journal.seals import Seals, keyless
from remit.journal.values import Folds, whole
from remit.journal.watch import Took, done
from remit.journal.writer import Draft, StreamWriter, copy_error, fail_all
from remit.randomness import salt

PAGE: Final = 1_000
"""Events fetched at once when a stream is read."""
BACKLOG_LIMIT: Final = 4 * 1024 * 1024
"""Bytes that may wait in memory before a writer is made to wait."""
_UNWEIGHED: Final = 16 * 1024
"""Bytes that are submitted one by one before it is asked how many wait."""
_POST_ATTEMPTS: Final = 100
_BLOB_PAGE: Final = 16
_PRUNED: Final = 100
"""Blobs erased in one transaction."""


class Journal:
    """Append-only streams with heads, leases and blobs, over any storage backend.

    The store is opened; `clock` stamps events and decides what is due, `salt` hides values about a subject. `seals`
    seal the head with every append; a head whose seal does not hold is not believed then.
    """

    def __init__(self, store: Store, clock: Clock | None = None, salt: Salt = salt, seals: Seals | None = None) -> None:
        self.folds, self.cut, self.compact, self.snapshot = Folds(store), store.cut, store.compact, store.snapshot
        self.missing, self.answers = store.missing, store.answers
        self.leases, self.routes, self.wakes, self.integrity = store.leases, store.routes, store.wakes, store.integrity
        self.tallies, self.due, self.drained, self.counts = store.tallies, store.due, store.drained, store.counts
        self._store, self.seals, self._salt = store, seals, salt
        self.missing_key = b""
        """The id of the key that heads are sealed under, where no key of theirs is here: nothing is written."""
        self.key_file = ""
        """The file of the keys in `seals`, where that is known."""
        self._subjects: WeakValueDictionary[str, StreamWriter] = WeakValueDictionary()
        """By root: a writer of a stream with a subject, which what is made below it shares."""
        self._posting: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._unweighed = 0
        self.clock = clock or SystemClock()
        self.took: Took | None = None
        """Told how long each commit took that was waited for."""

    @property
    def is_older(self) -> bool:
        return self._store.is_older()

    @property
    def url(self) -> str:
        return self._store.url

    def backlog(self) -> int:
        return self._store.backlog

    # --- writing

    def writer(
        self, stream: str, kind: str, head: StreamHead | None = None, above: StreamHead | None = None
    ) -> StreamWriter:
        """A writer that goes on from `head`, or creates the stream.

        A new stream has the subject of the root it is below: of `above`, its head, or of the root's writer here. Raises
        JournalError (KEY_MISSING) where the journal is sealed and its key is not here.
        """
        self.require_key()
        writer = StreamWriter(stream, kind, self.clock, head, self.seals)
        if head is None and (root := above or self._subjects.get(writer.root)) is not None:
            writer.subject = root.subject  # what the stream holds can be erased with its root
        if writer.subject:
            self._know(writer)
        return writer

    def require_key(self) -> None:
        """Raise JournalError (KEY_MISSING) where the journal is sealed and its key is not here."""
        if self.missing_key:
            raise keyless(self.missing_key)

    def _know(self, writer: StreamWriter) -> None:
        if writer.stream == writer.root:
            self._subjects[writer.root] = writer
        else:
            self._subjects.setdefault(writer.root, writer)

    async def append(
        self,
        writer: StreamWriter,
        *payloads: Payload,
        synced: bool,
        patch: HeadPatch = NO_PATCH,
        blobs: Sequence[Blob] = (),
        wakes: tuple[str, ...] = (),
        expect_wakes: int | None = None,
    ) -> int:
        """Append to one stream. `synced` waits until the storage flushed it; otherwise it is queued, in order.

        Returns the time of its events. Raises AppendConflictError where another writer holds the stream, JournalError
        where the storage fails; both also for an earlier append of the same writer.
        """
        draft = writer.draft(*payloads, patch=patch, expect_wakes=expect_wakes)
        if writer.subject:
            (draft,), blobs = self._salted((draft,), blobs)
        append = writer.chain(draft)
        commit = Commit(
            appends=(append,), blobs=tuple(blobs), wakes=wakes, synced=synced, at=append.at, on_error=writer.fail
        )
        if synced:
            await self._written(commit, writer)
        else:
            self._store.submit(commit)
            if writer.failure is not None:
                raise copy_error(writer.failure)
            self._unweighed += commit.size
            if self._unweighed > _UNWEIGHED and self._is_full():
                await self._store.drained()
        return append.at

    async def commit(
        self, *drafts: Draft, synced: bool, blobs: Sequence[Blob] = (), wakes: tuple[str, ...] = ()
    ) -> None:
        """Append to several streams in one transaction. They share the root of their names (`job/J`, `job/J/inbox`).

        Drafts get their places here, and are submitted before anything else can run: however many tasks share a writer,
        its appends reach the storage in the order of their places. Raises as `append` does.
        """
        roots = {draft.writer.root for draft in drafts}
        if len(roots) > 1:
            msg = f"one commit over streams that do not share a root: {', '.join(sorted(roots))}"
            raise JournalError(msg, code=Code.RECORD_INVALID, remedy="Use one root, or commit them separately.")
        for draft in drafts:  # all before the first: a writer that has given out a place must use it
            if draft.writer.failure is not None:
                raise copy_error(draft.writer.failure)
        if any(draft.payloads for draft in drafts):
            drafts, blobs = self._salted(drafts, blobs)
        writers = [draft.writer for draft in drafts]
        appends = tuple([draft.writer.chain(draft) for draft in drafts])
        commit = Commit(appends=appends, blobs=tuple(blobs), wakes=wakes, synced=synced, at=appends[0].at)
        commit.on_error = fail_all(writers)
        if synced:
            await self._written(commit, *writers)
        elif self._queued(commit, *writers):
            await self._store.drained()

    def _salted(self, drafts: Sequence[Draft], blobs: Sequence[Blob]) -> tuple[tuple[Draft, ...], tuple[Blob, ...]]:
        """The drafts of streams with a subject, with their values where they can be erased."""
        for draft in drafts:
            self._know(draft.writer)
        payloads, salted_blobs = salted([payload for draft in drafts for payload in draft.payloads], blobs, self._salt)
        left = iter([(payload.KIND, encode(payload)) for payload in payloads])
        hiding = [replace(draft, events=tuple(islice(left, len(draft.payloads)))) for draft in drafts]
        return tuple(hiding), salted_blobs

    def _queued(self, commit: Commit, *writers: StreamWriter) -> bool:
        """Submit what no one waits for; whether so much waits in memory that its writer should."""
        self._store.submit(commit)
        for writer in writers:
            if writer.failure is not None:
                raise copy_error(writer.failure)
        return self._is_full()

    def _is_full(self) -> bool:
        self._unweighed = 0
        return self._store.backlog > BACKLOG_LIMIT

    async def _written(self, commit: Commit, *writers: StreamWriter) -> None:
        """Submit, and wait until it has happened. Raises what one of its writers failed with first, or its error."""
        error = await done(self._store, commit, self.took)
        if error is not None:
            raise next((copy_error(writer.failure) for writer in writers if writer.failure is not None), error)

    async def create(
        self, stream: str, kind: str, *payloads: Payload, patch: HeadPatch = NO_PATCH, blobs: Sequence[Blob] = ()
    ) -> StreamWriter:
        """Create a stream durably. Raises AppendConflictError where it exists."""
        writer = self.writer(stream, kind)
        await self.append(writer, *payloads, synced=True, patch=patch, blobs=blobs)
        return writer

    async def post(
        self, stream: str, kind: str, *payloads: Payload, blobs: Sequence[Blob] = (), wakes: tuple[str, ...] = ()
    ) -> StreamWriter:
        """Append durably to a stream that many may write to and that is never leased, creating it where needed."""
        # Within this process they take turns; against other processes they try again.
        async with self._posting.setdefault(stream, asyncio.Lock()):
            for _ in range(_POST_ATTEMPTS):
                writer = self.writer(stream, kind, await self.head(stream))
                if writer.seq == 0 and writer.root != stream and (above := await self.head(writer.root)) is not None:
                    writer.subject = above.subject
                try:
                    await self.append(writer, *payloads, synced=True, blobs=blobs, wakes=wakes)
                except AppendConflictError:
                    continue
                return writer
        msg = f"{stream}: too many writers at the same moment"
        raise AppendConflictError(msg, remedy="Try again.")

    async def wake(self, stream: str, *, aside: bool = False) -> None:
        """Make a stream's worker look again: it becomes due now, unless someone holds it or it is closed."""
        await self._written(Commit(appends=(), wakes=(stream,), at=self.clock.now(), aside=aside))

    async def park(self, writer: StreamWriter, patch: HeadPatch, *, seen_wakes: int) -> bool:
        """Change the head durably, unless something woke the stream meanwhile; then False, and the writer goes on.

        Raises what an earlier queued append of the writer failed with.
        """
        append = writer.stage(patch=patch, expect_wakes=seen_wakes)
        error = await done(self._store, Commit(appends=(append,), at=append.at), self.took)
        if writer.failure is not None:
            raise copy_error(writer.failure)
        if error is not None and not isinstance(error, AppendConflictError):
            raise error
        return error is None

    # --- reading

    async def head(self, stream: str) -> StreamHead | None:
        """The newest head of a stream."""
        return await self._store.head(stream)

    async def heads(self, query: HeadQuery) -> list[StreamHead]:
        return await self._store.heads(query)

    async def read(self, stream: str, after: int = 0) -> list[Event]:
        """Return every event with seq > `after`. Raises RecordPrunedError if some of them were removed."""
        return whole(stream, after, await self.left(stream, after))

    async def page(self, stream: str, after: int = 0, limit: int = PAGE) -> list[Event]:
        """The next events with seq > `after`, at most `limit`. Raises RecordPrunedError if some were removed."""
        return whole(stream, after, await self._store.read(stream, after, limit))

    async def left(self, stream: str, after: int = 0) -> list[Event]:
        """Return every event with seq > `after` that is there: of a pruned stream those from its stub on."""
        events = page = await self._store.read(stream, after, PAGE)
        while len(page) == PAGE:
            page = await self._store.read(stream, page[-1].seq, PAGE)
            events += page
        return events

    async def pages(self, head: StreamHead) -> AsyncIterator[list[Event]]:
        """Give the events up to a head that are there, page by page."""
        after = 0
        while after < head.seq and (page := await self._store.read(head.stream, after, min(STRETCH, head.seq - after))):
            yield page
            after = page[-1].seq

    async def follow(self, stream: str, after: int = 0) -> AsyncIterator[Event]:
        """Every event with seq > `after`, then each new one as it comes, until the stream is closed."""
        mark, closed = 0, False
        while True:
            # News first: followers wait for them. What came between them and the head is read once more.
            while page := await self.page(stream, after):
                for event in page:
                    yield event
                after = page[-1].seq
            if closed:
                return
            head = await self._store.head(stream)
            closed = head is not None and head.closed
            if not closed:
                mark = await self._store.changed(mark)

    async def scan(self, after: int = 0, kinds: Iterable[str] = (), limit: int = PAGE) -> Scanned:
        """A page of all streams' events in the order of their commits, beginning after a position (see Store.scan)."""
        return await self._store.scan(after, tuple(kinds), limit)

    async def ends(self, after: int = 0, limit: int = PAGE) -> Ends:
        return await self._store.ends(after, limit)

    async def follow_all(self, after: int = 0, kinds: Iterable[str] = ()) -> AsyncGenerator[Placed, None]:
        """Every event of every stream after a position, then each new one as it comes, until the journal is closed."""
        wanted, mark = tuple(kinds), 0
        while True:
            mark = await self._store.changed(mark)  # before the look, so that nothing written meanwhile is missed
            more = True
            while more:
                page = await self._store.scan(after, wanted, PAGE)
                for placed in page.events:
                    yield placed
                after, more = page.position, page.more

    async def changed(self, since: int) -> int:
        return await self._store.changed(since)

    async def heads_changed(self, since: int) -> int:
        return await self._store.heads_changed(since)

    async def value(self, inline: OptionalRaw, ref: OptionalRef) -> bytes | None:
        """The JSON bytes of a recorded value, wherever they are kept; None where none was recorded.

        Raises PayloadErasedError if it was erased with its subject, ChainBrokenError if the bytes are not those that
        were recorded, or gone (BLOB_MISSING).
        """
        return await values.value(self._store, inline, ref)

    async def blob(self, digest: str) -> bytes | None:
        return await self._store.blob(digest)

    async def schema(self, digest: str) -> Any:
        """The schema behind a hash; None: an older Remit did not keep it. Raises ChainBrokenError for another one."""
        return await values.schema(self._store, digest)

    async def blobs(self, after: str = "") -> list[Blob]:
        """A page of blobs with a digest > `after`, in the order of digests; empty: there are no more."""
        return await self._store.blobs(after, _BLOB_PAGE)

    async def replicate(self, append: Append, *, unleased: bool = False) -> None:
        """Append events as they are chained, durably and aside. Raises as `append` does; `unleased`: see Commit."""
        await self._written(Commit(appends=(append,), at=append.at, aside=True, unleased=unleased))

    async def put_blobs(self, blobs: Sequence[Blob]) -> None:
        """Store blobs that no event here names, durably: of another journal, or what can be found again."""
        await self._written(Commit(appends=(), blobs=tuple(blobs), at=self.clock.now(), aside=True))

    async def prune(self) -> int:
        """Erase the blobs that were to be kept until now; how many. Events stay, with the digests."""
        erased, now = 0, self.clock.now()
        while (more := await self._store.prune(now, _PRUNED)) == _PRUNED:
            erased += more
        return erased + more

    async def verify(self, stream: str) -> int:
        """Check a stream as `examine` does, and raise as it does; how many events it has."""
        return (await self.examine(stream)).events

    async def examine(
        self,
        stream: str,
        proven: set[str] | None = None,
        visit: Visit = pass_by,
        beside: EventValues | None = None,
        *,
        keyless_too: bool = False,
    ) -> Examined:
        """Check a stream's chain, its head, and the values it refers to; an erasure has to be on record.

        `proven` holds the digests of values that were checked, with other streams too, and grows. `visit` is given
        the events, page by page, as far as they are intact. `beside` reads the values instead of the journal.

        Raises NotFoundError, or ChainBrokenError naming the first bad event, what the head says, or what value is gone.
        Raises JournalError (KEY_MISSING) as `examine` does.
        """
        if (head := await self._store.head(stream)) is None:
            raise NotFoundError(f"{stream}: no such stream", code=Code.STREAM_NOT_FOUND)
        now, pages = self.clock.now(), self.pages(head)
        examined = await examine(
            head, pages, self.seals, beside or self, now, proven=proven, visit=visit, keyless_too=keyless_too
        )
        if examined.erased and await self._store.head(erasure_of(head.subject)) is None:
            msg = f"{stream}: {examined.erased} values are gone, and no erasure of their subject is on record"
            raise ChainBrokenError(msg, code=Code.BLOB_MISSING, remedy=values.RESTORE)
        return examined

    def prove(self, head: StreamHead, events: Sequence[Event]) -> None:
        """Raise ChainBrokenError unless these events, up to the head's, are those it stands for (rule 14)."""
        prove(head, events, self.seals)

    # --- leases

    async def claim(self, claim: LeaseClaim) -> list[Lease]:
        self.require_key()
        return await self._store.claim(claim)

    async def acquire(self, stream: str, claim: LeaseClaim, over: str | None = None) -> Lease | None:
        """Lease one stream, due or not; None if it is closed or someone else's lease runs, unless `over` held it."""
        self.require_key()
        return await self._store.acquire(stream, claim, over)

    async def renew(self, leases: Iterable[tuple[str, int]], lease_until: int) -> list[str]:
        return await self._store.renew(tuple(leases), lease_until)

    async def next_due(self, kind: str, routes: tuple[str, ...] = ()) -> int | None:
        return await self._store.next_due(kind, routes)

    async def close(self) -> None:
        await self._store.close()
