"""The journal's SQLite backend: one file in WAL mode, one thread that writes, one that reads.

`synced` and `written` (design: durability follows the effect) are the two values of `PRAGMA synchronous`: a group that
holds a synced commit is flushed to the disk as it commits (FULL), which flushes every group before it as well; a group
without one is only handed to the operating system (NORMAL), and so are leases, which mean nothing once the machine is
down. In memory there is one connection and one thread for everything.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import apsw

from remit.clock import Clock
from remit.codes import Code
from remit.errors import JournalError
from remit.journal.commit import CommitThread, ReadThread, journal_closed, taken
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
from remit.journal.sqlite import queries
from remit.journal.sqlite.connection import (
    EMPTY,
    MEMORY,
    ReadConnection,
    SqliteErrors,
    copy_file,
    instead,
    is_older,
    open_reader,
    open_writer,
)
from remit.journal.sqlite.groups import GroupWriter, data_version
from remit.journal.sqlite.schema import Transaction
from remit.journal.watch import FileBell, JournalMarks
from remit.journal.writer import copy_error

T = TypeVar("T")

__all__ = ["BUSY_MS", "EMPTY", "MEMORY", "SqliteStore"]

_CHECKPOINT_PAGES: Final = 1_000
_PATIENCE: Final = 25
"""After so many looks in vain, a twentieth of a second or more, our own commit takes long."""
BUSY_MS: Final = 10_000
"""The time that a write waits for another process's transaction, in milliseconds."""


class SqliteStore:
    """Streams in one SQLite database.

    Making it opens connections and threads on the running event loop, and blocks for about a millisecond. `vfs` names a
    registered SQLite file layer, for tests. Raises JournalError.
    """

    def __init__(self, path: str, clock: Clock, *, busy_ms: int = BUSY_MS, vfs: str = "") -> None:
        self._path, self._vfs, in_memory = path, vfs, path in {MEMORY, EMPTY}
        self._clock = clock
        self._translating = SqliteErrors(path)
        self._looking: ReadConnection | None = None
        """The reader of a file that cannot be written to, or that an older Remit made and nothing is written to yet."""
        self._refused: JournalError | None = None
        """The error that every write to it is refused with."""
        with contextlib.ExitStack() as opened:
            self._open(opened, busy_ms)
            self._connections = opened.pop_all()
        self._synchronous, self._waits_ms = "", busy_ms
        """The setup of the writing connection: what it flushes, and how long it waits for another process's lock."""
        self._busy_ms = busy_ms
        self._vain_looks = 0
        """The number of times that it was to be seen what others wrote, and we were writing ourselves."""
        self._beside = 0
        self._seen_beside: object = 0
        """News that only the reading connection saw, and the last it saw."""
        self._log_pages = 0
        self._erased = False
        """Whether bytes were erased since the log was last emptied."""
        self._write_to(self._db)
        self._writer = CommitThread("remit-journal", self._write, self._written, self._write_at_once)
        self._watch = JournalMarks() if in_memory else JournalMarks(self._others_wrote, FileBell(f"{path}-wal"))
        self._reader = None if in_memory else ReadThread("remit-journal-read")

    def _open(self, opened: contextlib.ExitStack, busy_ms: int) -> None:
        try:
            with self._translating:
                if is_older(self._path):
                    self._looking = ReadConnection(self._path, busy_ms, writable=True)
                else:
                    self._db, self._db_read = self._connected(opened, busy_ms)
        except JournalError as error:
            opened.close()
            self._looking, self._refused = instead(error, self._path, busy_ms), error
        if self._looking is not None:
            opened.callback(self._looking.close)
            self._db = self._db_read = apsw.Connection(MEMORY)  # nothing is written, and nothing read here

    def _connected(self, opened: contextlib.ExitStack, busy_ms: int) -> tuple[apsw.Connection, apsw.Connection]:
        """Return what writes and what reads, on today's schema."""
        db = reader = open_writer(self._path, busy_ms=busy_ms, vfs=self._vfs)
        opened.callback(db.close)
        if self._path not in {MEMORY, EMPTY}:
            reader = open_reader(self._path, busy_ms=busy_ms, vfs=self._vfs)
            opened.callback(reader.close)
        return db, reader

    def _write_to(self, db: apsw.Connection) -> None:
        # Instead of SQLite's own checkpoints, which would delay the next commit.
        db.set_wal_hook(self._logged)
        self._groups = GroupWriter(db, self._path)

    def _upgrade(self, looking: ReadConnection) -> None:
        """Bring the file to today's schema, for something is to be written, and read it without a copy from now on."""
        self._db, self._db_read = self._connected(self._connections, self._busy_ms)
        self._write_to(self._db)
        self._synchronous, self._waits_ms, self._looking = "", self._busy_ms, None
        if self._reader is not None:
            _ = self._reader.run(looking.close)  # after what is read there now; not awaited, and it does not fail

    @property
    def url(self) -> str:
        return MEMORY if self._path == EMPTY else self._path

    # --- writing

    def submit(self, commit: Commit) -> None:
        self._writer.submit(commit)

    @property
    def backlog(self) -> int:
        return self._writer.backlog

    async def drained(self) -> None:
        await self._writer.run(lambda: None)

    def _write(self, group: Sequence[Commit]) -> Sequence[JournalError | None]:
        with self._translating:
            self._set_up("FULL" if any(commit.synced for commit in group) else "NORMAL", self._busy_ms)
            self._groups.look()  # where this thread always writes, no other thread comes to look
            self._vain_looks = 0
            self._erased = self._erased or any(commit.erases for commit in group)
            return self._groups.write(group)

    def _write_at_once(self, group: Sequence[Commit]) -> Sequence[JournalError | None] | None:
        """The same on the event loop; None where another process holds the lock, or the file is to be upgraded."""
        if self._looking is not None:
            return None
        try:
            with self._translating:
                self._set_up("FULL", waits_ms=0)
                self._erased = self._erased or any(commit.erases for commit in group)
                return self._groups.write(group)
        except JournalError as error:
            if error.code is Code.JOURNAL_LOCKED:
                return None
            raise

    def _written(self, heads: bool) -> None:
        self._watch.notify(heads)
        if self._erased and not self._writer.closed:
            self._erased = False
            _ = self._writer.run(self._forget)  # not awaited, and it does not fail
        if self._log_pages >= _CHECKPOINT_PAGES and not self._writer.closed:
            self._log_pages = 0
            _ = self._writer.run(self._checkpoint)  # not awaited, and it does not fail

    def _forget(self) -> None:
        """Empty the log, which still holds what was erased. If someone reads it, a later checkpoint overwrites it."""
        with contextlib.suppress(apsw.Error):
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def _logged(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self) -> None:
        """Copy the log into the database; what cannot be copied now is copied the next time."""
        with contextlib.suppress(apsw.Error):
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _set_up(self, synchronous: str, waits_ms: int) -> None:
        """Make the writing connection ready for what comes next. Raises JournalError where the file is only read."""
        if self._refused is not None:
            raise copy_error(self._refused)
        if self._looking is not None:
            self._upgrade(self._looking)
        if synchronous != self._synchronous:
            self._db.execute(f"PRAGMA synchronous = {synchronous}")
            self._synchronous = synchronous
        if waits_ms != self._waits_ms:
            self._db.set_busy_timeout(waits_ms)
            self._waits_ms = waits_ms

    def _in_transaction(self, work: Callable[[apsw.Connection], T]) -> asyncio.Future[T]:
        def run() -> T:
            with self._translating:
                self._set_up("NORMAL", self._busy_ms)
                with Transaction(self._db):
                    return work(self._db)

        return self._writer.run(run)

    # --- reading

    async def _reading(self, work: Callable[[apsw.Connection], T], stream: str = "") -> T:
        """Read on the reading connection, after what this process submitted has been written: to a stream, or all."""

        def run() -> T:
            with self._translating:
                looking = self._looking  # another thread upgrades the file
                return looking.read(work) if looking is not None else work(self._db_read)

        if self._reader is None:
            return await self._writer.run(run)
        if self._writer.backlog and (not stream or self._writer.concerns(stream)):
            await self.drained()
        if self._writer.closed:
            raise journal_closed()
        return await self._reader.run(run)

    async def head(self, stream: str) -> StreamHead | None:
        return await self._reading(lambda db: queries.head(db, stream), stream)

    async def heads(self, query: HeadQuery) -> list[StreamHead]:
        return await self._reading(lambda db: queries.heads(db, query))

    async def counts(self, kind: str) -> dict[str, int]:
        return await self._reading(lambda db: queries.counts(db, kind))

    async def tallies(self, kind: str, since: int, width: int, bounds: Sequence[int]) -> list[StreamTally]:
        return await self._reading(lambda db: queries.tallies(db, kind, since, width, bounds))

    async def read(self, stream: str, after: int, limit: int) -> list[Event]:
        return await self._reading(lambda db: queries.events(db, stream, after, limit), stream)

    async def scan(self, after: int, kinds: tuple[str, ...], limit: int) -> Scanned:
        return await self._reading(lambda db: queries.scan(db, after, kinds, limit))

    async def ends(self, after: int, limit: int) -> Ends:
        return await self._reading(lambda db: queries.ends(db, after, limit))

    async def folds(self, name: str, parts: tuple[str, ...]) -> list[JournalFold]:
        return await self._reading(lambda db: queries.folds(db, name, parts))

    async def keep_folds(self, folds: Sequence[JournalFold], before: int) -> bool:
        return await self._in_transaction(lambda db: queries.keep_folds(db, folds, before))

    async def blob(self, digest: str) -> bytes | None:
        return await self._reading(lambda db: queries.blob(db, digest))

    async def blobs(self, after: str, limit: int) -> list[Blob]:
        return await self._reading(lambda db: queries.blobs(db, after, limit))

    async def prune(self, now: int, limit: int) -> int:
        return await self._in_transaction(lambda db: queries.prune(db, now, limit))

    async def cut(self, cut: Cut) -> bool:
        def run() -> bool:
            with self._translating:
                self._set_up("FULL", self._busy_ms)
                with Transaction(self._db):
                    return self._groups.cut(cut)

        done = await self._writer.run(run)
        if done:
            self._watch.notify(heads=True)
            await self._writer.run(self._forget)
        return done

    async def snapshot(self, path: str) -> SqliteStore | None:
        if self._reader is None:
            return None
        with self._translating:
            await asyncio.to_thread(self._copy, path)
        return SqliteStore(path, self._clock)

    def _copy(self, target: str) -> None:
        now = self._clock.now()
        if self._looking is not None:
            with contextlib.closing(ReadConnection(self._path, self._busy_ms)) as looking:
                looking.read(lambda db: copy_file(db, target, now))
            return
        with contextlib.closing(open_reader(self._path, busy_ms=self._busy_ms)) as source:
            copy_file(source, target, now)

    async def compact(self) -> int:
        def run() -> int:
            with self._translating:
                self._set_up("FULL", self._busy_ms)
                before = self._pages()
                self._db.execute("VACUUM")
                return before - self._pages()

        freed = await self._writer.run(run)
        await self._writer.run(self._forget)
        return freed

    def _pages(self) -> int:
        return int(self._db.execute("PRAGMA page_count").get) * int(self._db.execute("PRAGMA page_size").get)

    async def wakes(self, streams: Sequence[str]) -> dict[str, int]:
        return await self._reading(lambda db: queries.wakes(db, streams))

    async def next_due(self, kind: str, routes: tuple[str, ...]) -> int | None:
        return await self._reading(lambda db: queries.next_due(db, kind, routes))

    async def due(self, claim: LeaseClaim) -> list[StreamHead]:
        return await self._reading(lambda db: queries.due(db, claim))

    async def routes(self, kind: str) -> list[str]:
        return await self._reading(lambda db: list(queries.every_route(db, kind)))

    async def leases(self, kind: str) -> list[StreamHead]:
        return await self._reading(lambda db: queries.leases(db, kind))

    def is_older(self) -> bool:
        return self._looking is not None and self._refused is None

    def missing(self) -> list[str]:
        return []

    async def answers(self, stream: str) -> bool:  # noqa: ARG002 - the port's signature
        return True

    async def integrity(self) -> list[str]:
        return await self._reading(queries.integrity)

    # --- leases

    async def claim(self, claim: LeaseClaim) -> list[Lease]:
        return await self._leased(lambda db: queries.claim(db, claim))

    async def acquire(self, stream: str, claim: LeaseClaim, over: str | None) -> Lease | None:
        leases = await self._leased(lambda db: queries.acquire(db, stream, claim, over))
        return leases[0] if leases else None

    async def _leased(self, work: Callable[[apsw.Connection], list[Lease]]) -> list[Lease]:
        def lease(db: apsw.Connection) -> list[Lease]:
            if (refused := queries.retired(db, self._path)) is not None:
                raise refused
            return work(db)

        leases = await taken(self._in_transaction(lease), self._give_back)
        if leases:
            self._watch.notify(heads=True)
        return leases

    async def _give_back(self, leases: list[Lease]) -> None:
        await self._in_transaction(lambda db: queries.give_back(db, leases, self._clock.now()))
        self._watch.notify(heads=True)  # who looked meanwhile saw them taken

    async def renew(self, leases: Sequence[tuple[str, int]], lease_until: int) -> list[str]:
        return await self._in_transaction(lambda db: queries.renew(db, leases, lease_until))

    # --- watching

    async def changed(self, since: int) -> int:
        return await self._watch.changed(since)

    async def heads_changed(self, since: int) -> int:
        return await self._watch.heads_changed(since)

    def _others_wrote(self) -> int:
        """Count writes of other processes, as far as is known: a read of shared memory, where we do not write now."""
        if self._looking is not None or not self._writer.meanwhile(self._look):
            self._vain_looks += 1
            if self._vain_looks >= _PATIENCE and self._reader is not None and not self._writer.closed:
                self._vain_looks = 0
                _ = self._reader.run(self._look_beside)  # not awaited, and it does not fail
        return self._groups.others + self._beside

    def _look(self) -> bool:
        """Never waits for a lock: the event loop would."""
        with self._translating, contextlib.suppress(apsw.BusyError):
            self._set_up(self._synchronous, waits_ms=0)
            self._groups.look()
        self._vain_looks = 0
        return True

    def _look_beside(self) -> None:
        """Our own commit waits for someone's lock; what others write meanwhile is not to wait for that as well.

        Seen from the reading connection our own writes look like theirs: such news are harmless, and rare.
        """
        with contextlib.suppress(apsw.Error):
            looking = self._looking
            version = looking.version() if looking is not None else data_version(self._db_read)
            if version != self._seen_beside:
                self._seen_beside = version
                self._beside += 1

    async def close(self) -> None:
        await self._watch.close()
        await self._writer.close()
        await asyncio.get_running_loop().run_in_executor(None, self._release)

    def _release(self) -> None:
        """End the reading thread and close the connections: the last of a file's writes its log back into it."""
        if self._reader is not None:
            self._reader.close()
        self._connections.close()
