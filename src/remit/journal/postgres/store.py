"""The journal's PostgreSQL backend: one connection that writes in groups, a few that read and claim, one that listens.

`synced` and `written` are the two values of `synchronous_commit`: a group that holds a synced commit waits for the
server's flush, which brings every group before it as well; a group without one does not. Leases are always flushed:
unlike SQLite's machine, the server can go down while the holders of its leases go on.

A schema's tables sent to another server as they are: row by row, with their numbers, in one transaction there.

Lookups that come at the same moment are one statement: heads by name, pages of events.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar

import msgspec

from remit.clock import Clock, SystemClock
from remit.errors import JournalError, UsageError
from remit.journal.commit import journal_closed, settle, taken
from remit.journal.event import (
    Append,
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
from remit.journal.postgres import queries
from remit.journal.postgres.groups import CommitTask
from remit.journal.postgres.queries import Horizon
from remit.journal.postgres.schema import migrate
from remit.journal.postgres.server import (
    ANSWER_S,
    PATIENCE_S,
    Address,
    PostgresLink,
    Readers,
    connect,
    load_driver,
    persist,
    translated,
)
from remit.journal.sharded.shard import NAME, ShardIdentity, Size
from remit.journal.watch import JournalMarks
from remit.journal.writer import copy_error
from remit.tasks import Tasks

if TYPE_CHECKING:
    import asyncpg


_TABLES: Final = ("heads", "events", "blobs", "folds", "labels")
_NUMBERS: Final = (("heads", "id"), ("events", "position"))
_COLUMNS: Final = """
SELECT array_agg(attname ORDER BY attnum) FROM pg_attribute
WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped
"""
_PIECES: Final = 16
"""Pieces of a table that wait for the target at most."""
_LONG_S: Final = 24 * 3_600.0


async def send(source: Address, target: Address) -> None:
    """Fill the tables of the target. Raises UsageError unless they are empty, JournalError."""
    begin = end = None
    try:
        begin, end = await connect(source), await connect(target)
        async with begin.transaction(isolation="repeatable_read", readonly=True), end.transaction():
            await end.execute("LOCK TABLE heads IN EXCLUSIVE MODE")
            if await end.fetchval("SELECT EXISTS (SELECT FROM heads)"):
                raise UsageError(f"{target} has records already", remedy="Name an empty schema: ?schema=NAME.")
            for table in _TABLES:
                await _table(begin, end, table)
            for table, column in _NUMBERS:
                last, used = await begin.fetchrow(f"SELECT last_value, is_called FROM {table}_{column}_seq")  # noqa: S608 - ours
                await end.execute("SELECT setval($1::regclass, $2, $3)", f"{table}_{column}_seq", last, used)
    except (JournalError, UsageError):
        raise
    except Exception as error:
        raise translated(error, f"{source} to {target}") from error
    finally:
        for connection in (begin, end):
            if connection is not None:
                connection.terminate()


async def _table(begin: asyncpg.Connection, end: asyncpg.Connection, table: str) -> None:
    """Send one table, piece by piece."""
    await end.execute(f"DELETE FROM {table}")  # noqa: S608 - ours; folds may hold what the target thought it was
    columns = await begin.fetchval(_COLUMNS, table)
    pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_PIECES)

    async def read() -> None:
        sql = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608 - names of our columns
        await begin.copy_from_query(sql, output=pieces.put, format="binary", timeout=_LONG_S)
        await pieces.put(None)

    async def taken() -> AsyncIterator[bytes]:
        while (piece := await pieces.get()) is not None:
            yield piece

    async with asyncio.TaskGroup() as group:
        group.create_task(read())
        group.create_task(end.copy_to_table(table, source=taken(), columns=columns, format="binary", timeout=_LONG_S))


Key = TypeVar("Key")
Found = TypeVar("Found")

_AT_ONCE: Final = 2
"""Questions under way: one that brings much holds up no other lookup."""


class Lookups(Generic[Key, Found]):
    """Lookups of one sort."""

    def __init__(self, ask: Callable[[Sequence[Key]], Awaitable[Sequence[Found]]], most: int) -> None:
        self._ask = ask
        self._most = most
        self._waiting: list[tuple[Key, asyncio.Future[Found]]] = []
        self._asking = 0
        self._tasks = Tasks()

    async def find(self, key: Key) -> Found:
        """Return what belongs to a key; read after this was called. Raises JournalError."""
        future: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, future))
        if self._asking < _AT_ONCE:
            self._asking += 1
            self._tasks.begin(self._answer(), name="remit:journal-lookups")
        return await future

    async def _answer(self) -> None:
        try:
            await self._until_none_waits()
        finally:  # now, not once the task is seen to be done: a lookup in between would wait forever
            self._asking -= 1

    async def _until_none_waits(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            try:
                answers = await self._ask([key for key, _ in group])
            except JournalError as error:
                for _, waiter in group:
                    if not waiter.done():
                        waiter.set_exception(copy_error(error))
                continue
            for (_, waiter), answer in zip(group, answers, strict=True):
                if not waiter.done():
                    waiter.set_result(answer)


T = TypeVar("T")

_HEADS: Final = 256
_PAGES: Final = 16
"""Heads, and pages of events, that are looked up in one statement at most."""


class PostgresStore:
    """Streams in one schema of a PostgreSQL database.

    Making it begins to connect, on the running event loop; its first use waits for that. Raises SettingsError for a URL
    that cannot be used, or where the driver is missing.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        load_driver()
        self._address = Address.parse(url)
        self._clock = clock
        self._watch = JournalMarks()
        self._commits: CommitTask | None = None
        self._identity: ShardIdentity | None = None
        """Its place among the shards of a journal, if it is one."""
        self._early: list[Commit] = []
        self._readers = Readers(self._address)
        self._heads = Lookups[str, StreamHead | None](
            lambda streams: self._readers.run(lambda db: queries.heads_of(db, streams)), _HEADS
        )
        self._events = Lookups[tuple[str, int, int], list[Event]](
            lambda wanted: self._readers.run(lambda db: queries.events(db, wanted)), _PAGES
        )
        self._horizon = Horizon()
        self._listener = PostgresListener(self._address, self._watch.notify, self._watch.fail)
        self._closed = False
        self._opening = asyncio.create_task(self._open(), name="remit:journal-open")

    @property
    def url(self) -> str:
        return str(self._address)

    async def _open(self) -> JournalError | None:
        try:
            connection = await connect(self._address)
            try:
                await migrate(connection, self._address.schema)
                for fold in await queries.folds(connection, NAME, ()):
                    self._identity = msgspec.json.decode(fold.data, type=ShardIdentity)
            finally:
                await connection.close()
            await self._readers.open()
        except Exception as error:  # noqa: BLE001 - the journal's user is told
            failure = error if isinstance(error, JournalError) else translated(error, self.url)
            early, self._early = self._early, []
            settle([(commit, failure) for commit in early])
            return failure
        self._commits = CommitTask(PostgresLink(self._address), self._watch.notify)
        early, self._early = self._early, []
        for commit in early:
            self.submit(commit)
        return None

    async def _opened(self) -> CommitTask:
        if self._commits is None and not self._closed:
            await asyncio.wait([self._opening])
        if self._commits is None or self._closed:
            raise self._unusable()
        return self._commits

    def _unusable(self) -> JournalError:
        """Return why nothing can be done: it could not be opened, or it is closed."""
        opened = self._opening.done() and not self._opening.cancelled()
        return (self._opening.result() if opened else None) or journal_closed()

    # --- writing

    def submit(self, commit: Commit) -> None:
        if self._identity is not None and (error := self._identity.refusal(commit)) is not None:
            settle([(commit, error)])
        elif self._commits is not None:
            self._commits.submit(commit)
        elif self._closed or self._opening.done():
            settle([(commit, self._unusable())])
        else:
            self._early.append(commit)

    @property
    def backlog(self) -> int:
        return self._commits.backlog if self._commits is not None else sum(commit.size for commit in self._early)

    async def drained(self) -> None:
        await (await self._opened()).drained()

    # --- reading

    async def _reading(self, work: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Read, after what this process submitted has been written."""
        await (await self._opened()).drained()
        return await self._readers.run(work)

    async def head(self, stream: str) -> StreamHead | None:
        await self.drained()
        return await self._heads.find(stream)

    async def heads(self, query: HeadQuery) -> list[StreamHead]:
        return await self._reading(lambda db: queries.heads(db, query))

    async def counts(self, kind: str) -> dict[str, int]:
        return await self._reading(lambda db: queries.counts(db, kind))

    async def tallies(self, kind: str, since: int, width: int, bounds: Sequence[int]) -> list[StreamTally]:
        return await self._reading(lambda db: queries.tallies(db, kind, since, width, bounds))

    async def read(self, stream: str, after: int, limit: int) -> list[Event]:
        await self.drained()
        return await self._events.find((stream, after, limit))

    async def scan(self, after: int, kinds: tuple[str, ...], limit: int) -> Scanned:
        return await self._reading(lambda db: queries.scan(db, self._horizon, after, kinds, limit))

    async def level(self, position: int) -> int:
        last = await self._reading(lambda db: queries.level(db, position))
        self._horizon.level(last)
        return last

    async def freeze(self, append: Append) -> None:
        await self._reading(lambda db: queries.freeze(db, append))
        self._watch.notify(heads=True)

    async def send(self, target: Self) -> None:
        await self._opened()
        await target.drained()  # its tables are there
        await send(self._address, target._address)

    async def size(self) -> Size:
        return await self._reading(queries.size)

    async def ends(self, after: int, limit: int) -> Ends:
        return await self._reading(lambda db: queries.ends(db, self._horizon, after, limit))

    async def folds(self, name: str, parts: tuple[str, ...]) -> list[JournalFold]:
        return await self._reading(lambda db: queries.folds(db, name, parts))

    async def keep_folds(self, folds: Sequence[JournalFold], before: int) -> bool:
        return await self._reading(lambda db: queries.keep_folds(db, folds, before))

    async def blob(self, digest: str) -> bytes | None:
        return await self._reading(lambda db: queries.blob(db, digest))

    async def blobs(self, after: str, limit: int) -> list[Blob]:
        return await self._reading(lambda db: queries.blobs(db, after, limit))

    async def prune(self, now: int, limit: int) -> int:
        return await self._reading(lambda db: queries.prune(db, now, limit))

    async def cut(self, cut: Cut) -> bool:
        done = await self._reading(lambda db: queries.cut(db, cut))
        if done:
            self._watch.notify(heads=True)
        return done

    async def snapshot(self, path: str) -> None:
        """Do nothing: the server has its own tools."""

    async def compact(self) -> int:
        return 0

    async def wakes(self, streams: Sequence[str]) -> dict[str, int]:
        return await self._reading(lambda db: queries.wakes(db, streams))

    async def next_due(self, kind: str, routes: tuple[str, ...]) -> int | None:
        return await self._reading(lambda db: queries.next_due(db, kind, routes))

    async def due(self, claim: LeaseClaim) -> list[StreamHead]:
        return await self._reading(lambda db: queries.due(db, claim))

    async def routes(self, kind: str) -> list[str]:
        return await self._reading(lambda db: queries.routes(db, kind))

    async def leases(self, kind: str) -> list[StreamHead]:
        return await self._reading(lambda db: queries.leases(db, kind))

    def is_older(self) -> bool:
        return False

    def missing(self) -> list[str]:
        return []

    async def answers(self, stream: str) -> bool:
        return self._identity is None or self._identity.holds(stream)

    async def integrity(self) -> list[str]:
        return await self._reading(queries.integrity)

    # --- leases

    async def claim(self, claim: LeaseClaim) -> list[Lease]:
        return await self._leased(lambda db: queries.claim(db, claim))

    async def acquire(self, stream: str, claim: LeaseClaim, over: str | None) -> Lease | None:
        leases = await self._leased(lambda db: queries.acquire(db, stream, claim, over))
        return leases[0] if leases else None

    async def _leased(self, work: Callable[[asyncpg.Connection], Awaitable[list[Lease]]]) -> list[Lease]:
        """Take leases. Those of a request whose answer was lost lapse by themselves."""
        leases = await taken(
            asyncio.create_task(self._reading(work)),
            lambda leases: self._readers.run(lambda db: queries.give_back(db, leases, self._clock.now())),
        )
        if leases:
            self._watch.notify(heads=True)
        return leases

    async def renew(self, leases: Sequence[tuple[str, int]], lease_until: int) -> list[str]:
        return await self._reading(lambda db: queries.renew(db, leases, lease_until))

    # --- watching

    async def changed(self, since: int) -> int:
        await self._listening()
        return await self._watch.changed(since)

    async def heads_changed(self, since: int) -> int:
        await self._listening()
        return await self._watch.heads_changed(since)

    async def _listening(self) -> None:
        await self._opened()
        await self._listener.listening()

    async def close(self) -> None:
        self._closed = True
        await self._watch.close()
        if not self._early:
            self._opening.cancel()  # a server that says nothing is not waited for where nothing is to be written
        await asyncio.wait([self._opening])
        if self._commits is not None:
            await self._commits.close()
        await self._listener.close()
        await self._readers.close()


_log: Final = logging.getLogger("remit.journal")
_CLOSE_S: Final = 5.0
_PING_S: Final = 15.0
"""The interval at which the server is asked for a sign of life: nothing else is ever said over this connection."""
_CLOCK: Final = SystemClock()
_ANYTHING: Final = True
"""Report, whenever listening begins, that heads may have changed meanwhile."""


class PostgresListener:
    """Listens from the first wait on, for as long as the journal is open."""

    def __init__(self, address: Address, news: Callable[[bool], None], failed: Callable[[JournalError], None]) -> None:
        self._address = address
        self._news = news
        self._failed = failed
        self._connection: asyncpg.Connection | None = None
        self._opening = asyncio.Lock()
        self._again: asyncio.Task[None] | None = None
        self._pinging: asyncio.Task[None] | None = None
        self._closed = False

    async def listening(self) -> None:
        """Return once nothing that is written from now on goes unnoticed. Raises JournalError."""
        if self._connection is not None and not self._connection.is_closed():
            return
        async with self._opening:
            if self._connection is None or self._connection.is_closed():
                self._connection = await persist(self._open, str(self._address))

    async def close(self) -> None:
        """Stop listening."""
        self._closed = True
        if self._again is not None:
            self._again.cancel()
            await asyncio.wait([self._again])
        async with self._opening:
            if self._pinging is not None:
                self._pinging.cancel()
                await asyncio.wait([self._pinging])
            if self._connection is not None and not self._connection.is_closed():
                with contextlib.suppress(OSError, TimeoutError):
                    await self._connection.close(timeout=_CLOSE_S)

    async def _open(self) -> asyncpg.Connection:
        connection = await connect(self._address)
        channel = f"{self._address.schema}_changed"
        try:
            await connection.add_listener(channel, lambda *news: self._news(news[-1] == "heads"))
        except BaseException:  # as when connecting
            connection.terminate()
            raise
        connection.add_termination_listener(lambda _connection: self._lost())
        if self._pinging is not None:
            self._pinging.cancel()
        self._pinging = asyncio.create_task(_ping(connection), name="remit:journal-ping")
        self._news(_ANYTHING)
        return connection

    def _lost(self) -> None:
        if not self._closed and self._again is None:
            # Of all connections this is the one that is always there: its loss is the one that people are told of.
            _log.warning("%s: connection lost; trying again for up to %d s", self._address, PATIENCE_S)
            self._again = asyncio.get_running_loop().create_task(self._reopen(), name="remit:journal-listen")

    async def _reopen(self) -> None:
        try:
            await self.listening()
            _log.warning("%s: connected again", self._address)
        except JournalError as error:
            self._failed(error)
        finally:
            self._again = None


async def _ping(connection: asyncpg.Connection) -> None:
    """Give up a connection that fell silent."""
    while not connection.is_closed():
        await _CLOCK.sleep(_PING_S)
        try:
            await connection.fetchval("SELECT 1", timeout=ANSWER_S)
        except Exception:  # noqa: BLE001 - whatever it is, the connection is of no use any more
            connection.terminate()
