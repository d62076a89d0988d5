"""The SQL that reads heads, events and blobs, hands out leases, and finds the horizon of a reader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import JournalError
from remit.journal.commit import COLUMNS, HEADS, conflict, reached, to_head
from remit.journal.event import (
    OPEN_STATES,
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
    StreamEnd,
    StreamHead,
    StreamTally,
)
from remit.journal.kinds import StreamPruned
from remit.journal.labels import KIND, MANY, by_label, is_indexed
from remit.journal.postgres.groups import CommitGroup
from remit.journal.references import names_in
from remit.journal.scan import page, reach
from remit.journal.sharded.shard import Size
from remit.regex import regex

if TYPE_CHECKING:
    import asyncpg

# The newest position first: the locks are looked at after the snapshot was taken.
_LOOK: Final = """
SELECT (SELECT max(position) FROM events), pg_is_in_recovery(), ARRAY(
    SELECT virtualtransaction FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'events'::regclass AND mode = 'RowExclusiveLock'
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
)
"""
_PAUSE_S: Final = 0.005
_LOOKS: Final = 20
"""The number of times that writers are waited for before a page comes without what they write."""
_CLOCK: Final = SystemClock()

_STANDBY: Final = "Name the primary server: a standby does not say who is writing."


class Horizon:
    """The position up to which the whole journal can be read without passing an event that is still being written.

    Positions are given as events are inserted, and become visible as transactions commit: not in the same order. A
    reader that went on after the newest one it saw would miss those below it that are committed later. So it looks who
    is writing: every transaction that was given a position holds a lock on the table until it has ended. Once each of
    those that were seen beside a position has ended, nothing can appear below it any more.

    Appends do nothing for this and never wait. Transactions that do not write events do not count.
    """

    def __init__(self) -> None:
        self._settled = 0
        """Below it nothing can appear."""
        self._newest = 0
        self._writing: frozenset[str] = frozenset()
        """The transactions that were writing when `seen` was the newest position; empty: none to wait for."""
        self._looking = asyncio.Lock()
        self._level = 0
        """Positions up to here were given out, used or not."""

    def level(self, position: int) -> None:
        """Count positions that were given out and left out as if events had them."""
        self._level = max(self._level, position)

    async def reach(self, db: asyncpg.Connection, after: int) -> tuple[int, int]:
        """The last position that may be read, and the newest there is; waits a moment for those that write.

        Raises JournalError on a standby.
        """
        newest = 0
        for _ in range(_LOOKS):
            async with self._looking:  # one after the other, or an older look would speak for a newer one
                newest = await self._look(db)
            if self._settled > after or newest <= after:
                break
            await _CLOCK.sleep(_PAUSE_S)
        return self._settled, newest

    async def _look(self, db: asyncpg.Connection) -> int:
        level = self._level
        newest_txid, standby, who = await db.fetchrow(_LOOK)
        if standby:
            raise JournalError("a standby cannot be read across streams", code=Code.JOURNAL_READ_ONLY, remedy=_STANDBY)
        newest, writing = max(newest_txid or 0, level), frozenset(who)
        if self._writing.isdisjoint(writing):
            self._settled, self._writing = max(self._settled, self._newest), frozenset()
        if not writing:
            self._settled = max(self._settled, newest)
        elif not self._writing:
            self._newest, self._writing = newest, writing
        return int(newest)


_STEP: Final = 100_000
"""Positions left out in one statement at most."""
_EVENTS: Final = """
SELECT w.place, e.seq, e.kind, e.at, e.data, e.hash
FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS w (stream, after, most, place), LATERAL (
    SELECT e.seq, e.kind, e.at, e.data, e.hash FROM heads h JOIN events e ON e.stream = h.id AND e.seq <= h.seq
    WHERE h.stream = w.stream AND e.seq > w.after ORDER BY e.seq LIMIT w.most
) AS e ORDER BY w.place, e.seq
"""
_SCAN: Final = """
SELECT e.position, h.stream, e.seq, e.kind, e.at, e.data, e.hash
FROM events e JOIN heads h ON h.id = e.stream AND e.seq <= h.seq
WHERE e.position > $1 AND e.position <= $2 AND (cardinality($3::text[]) = 0 OR e.kind = ANY ($3))
ORDER BY e.position LIMIT $4
"""
_ENDS: Final = """
SELECT h.stream, e.seq, e.hash
FROM (SELECT stream, max(seq) AS seq FROM events WHERE position > $1 AND position <= $2 GROUP BY stream) AS newest
JOIN events e ON e.stream = newest.stream AND e.seq = newest.seq
JOIN heads h ON h.id = e.stream AND e.seq <= h.seq
ORDER BY e.position
"""
_PRUNE: Final = """
WITH gone AS (
    DELETE FROM blobs WHERE digest IN (
        SELECT digest FROM blobs WHERE until <= $1 ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING 1
) SELECT count(*) FROM gone
"""
_PRUNE_WRITERS: Final = "DELETE FROM writers WHERE at < now() - interval '7 days'"
"""Those of processes that ended without a word."""
_TELL: Final = "pg_notify(current_schema() || '_changed', 'heads')"
"""Every process hears of leases that are taken or returned, once in a transaction. No process waits for a renewal."""
_CLAIM: Final = f"""
SELECT {", ".join(f"(head).{name}" for name in COLUMNS)}, was_state, was_owner, was_due, turn, {_TELL}
FROM claim($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""  # noqa: S608 - fixed parts
_DUE: Final = f"SELECT {', '.join(f'(head).{name}' for name in COLUMNS)} FROM due($1, $2, $3, $4, $5, $6)"  # noqa: S608 - fixed parts
_ACQUIRE: Final = f"""
WITH free AS (
    SELECT id, state AS was_state, lease_owner AS was_owner, due_at AS was_due FROM heads
    WHERE stream = $1 AND NOT closed AND (lease_owner IS NULL OR lease_until <= $2 OR lease_owner = $3)
    FOR NO KEY UPDATE
)
UPDATE heads h SET epoch = epoch + 1, lease_owner = $4, lease_until = $5, due_at = $5,
    state = CASE WHEN state IN {OPEN_STATES} THEN coalesce($6, state) ELSE state END
FROM free WHERE h.id = free.id
RETURNING {", ".join(f"h.{name}" for name in COLUMNS)}, was_state, was_owner, was_due, {_TELL}, runs_jobs()
"""  # noqa: S608 - fixed parts
_RENEW: Final = """
WITH held AS (
    SELECT h.id FROM heads h JOIN unnest($1::text[], $2::bigint[]) AS l (stream, epoch)
        ON h.stream = l.stream AND h.epoch = l.epoch
    WHERE h.lease_owner IS NOT NULL AND NOT h.closed ORDER BY h.stream FOR NO KEY UPDATE OF h
)
UPDATE heads h SET lease_until = $3, due_at = $3 FROM held WHERE h.id = held.id RETURNING h.stream
"""
_GIVE_BACK: Final = f"""
UPDATE heads SET lease_owner = NULL, lease_until = NULL, state = $1,
    due_at = CASE WHEN wakes = $2 THEN $3::bigint ELSE $4::bigint END
WHERE stream = $5 AND epoch = $6 RETURNING {_TELL}
"""  # noqa: S608 - fixed parts
_HELD: Final = f"{HEADS} WHERE kind = $1 AND lease_owner IS NOT NULL AND NOT closed ORDER BY lease_until"
_TORN: Final = f"""
SELECT coalesce(h.stream, 'a stream without a head'), coalesce(h.seq, 0), coalesce(e.found, 0), coalesce(e.last, 0)
FROM heads h
FULL JOIN (SELECT stream, count(*) AS found, max(seq) AS last, min(seq) AS first FROM events GROUP BY stream) e
    ON e.stream = h.id
WHERE coalesce(h.seq, 0) <> coalesce(e.last, 0) OR e.found <> e.last - e.first + 1 OR e.first > 1
    AND (SELECT kind FROM events f WHERE f.stream = e.stream AND f.seq = e.first) <> '{StreamPruned.KIND}' LIMIT 20
"""  # noqa: S608 - fixed parts
_STREAMS: Final = "SELECT FROM heads WHERE stream = ANY ($1) ORDER BY stream FOR NO KEY UPDATE"
_BEFORE: Final = """
DELETE FROM events e USING unnest($1::text[], $2::bigint[]) AS c (stream, seq), heads h
WHERE h.stream = c.stream AND e.stream = h.id AND e.seq < c.seq
"""
_TALLIES: Final = """
SELECT (created_at - $2) / $3, state, CASE WHEN closed THEN {took} END, count(*) FROM heads
WHERE kind = $1 AND created_at >= $2 AND id > coalesce((
    SELECT id FROM heads WHERE kind = $1 AND created_at < $2 ORDER BY id DESC LIMIT 1), 0)
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
_EVICT: Final = """
UPDATE heads SET epoch = epoch + 1, lease_until = least(lease_until, $1), due_at = least(due_at, $1)
WHERE lease_owner IS NOT NULL AND NOT closed
"""
"""As if the leases had lapsed: who claims a stream next learns who had it."""
_RUNS: Final = "SELECT runs_jobs() FROM folds WHERE name = 'shard'"
"""Refuses what a shard that moved would keep: nothing of it goes to the other server any more."""
_LAST: Final = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM events_position_seq"
_LEVEL: Final = f"""
SELECT max(nextval('events_position_seq')) FROM generate_series(1, least({_STEP}, $1 - ({_LAST})))
"""  # noqa: S608 - fixed parts
_SIZE: Final = """
SELECT (SELECT count(*) FROM heads), (
    SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r')
"""
_WHOLE_JOURNAL_S: Final = 3_600.0
_LAST_CHARACTER: Final = "\U0010ffff"


_PLAIN: Final = regex("[a-z]{1,20}")
_EQUAL: Final = "key = {0} AND left(value, 200) = left({1}, 200) AND value = {1}"
_TYPED: Final = "key = {0} AND type = {1}"
_FEW: Final = f"SELECT count(*) FROM (SELECT FROM labels WHERE {{terms}} LIMIT {MANY}) AS fit"  # noqa: S608 - fixed parts
_AMONG: Final = "id = ANY (ARRAY(SELECT head FROM labels WHERE {terms}))"
_EVERY: Final = "(SELECT true FROM labels WHERE head = heads.id AND {terms})"


async def heads_of(db: asyncpg.Connection, streams: Sequence[str]) -> list[StreamHead | None]:
    """The head of each of these streams."""
    by_stream = {row[0]: to_head(row) for row in await db.fetch(f"{HEADS} WHERE stream = ANY ($1)", streams)}
    return [by_stream.get(stream) for stream in streams]


async def heads(db: asyncpg.Connection, query: HeadQuery) -> list[StreamHead]:
    """Heads that match, newest first."""
    where, values = ["true"], list[Any]()

    def given(value: object) -> str:
        values.append(value)
        return f"${len(values)}"

    if query.kind is not None:
        where.append(f"kind = {given(query.kind)}")
    if query.states[1:]:
        where.append(f"state = ANY ({given(query.states)})")
    elif query.states:
        # Written out where it can be: a plan for any state would look at the newest streams, whatever theirs is.
        state = query.states[0]
        where.append(f"state = '{state}'" if _PLAIN.fullmatch(state) else f"state = {given(state)}")
    if query.prefix:
        # A range, not LIKE: it needs no escaping. Names are compared byte by byte.
        where.append(f"stream >= {given(query.prefix)} AND stream < {given(query.prefix + _LAST_CHARACTER)}")
    where += await _labeled(db, query, given)
    if query.subject:
        where.append(f"subject = {given(query.subject)} AND subject <> ''")
    if query.text:
        where.append(f"""position({given(query.needle)} in lower(title COLLATE "C")) > 0""")
    if query.is_timed:
        where.append(f"created_at >= {given(query.since)} AND created_at < {given(query.until)}")
    if query.before is not None:
        where.append(f"id < (SELECT id FROM heads WHERE stream = {given(query.before)})")  # noqa: S608 - numbers only
    sql = f"{HEADS} WHERE {' AND '.join(where)} ORDER BY id DESC LIMIT {given(query.limit)}"
    return [to_head(row) for row in await db.fetch(sql, *values)]


async def _labeled(db: asyncpg.Connection, query: HeadQuery, bind: Callable[[object], str]) -> list[str]:
    """The conditions on labels; `bind` takes a value, and returns its place.

    Where many heads fit one, the newest heads are looked at one by one; few are looked up.
    """
    conditions: list[tuple[str, tuple[object, ...]]] = [
        (_EQUAL, (key, value)) for key, value in query.labels.items() if query.kind == KIND and is_indexed(key)
    ]
    other = {key: value for key, value in query.labels.items() if query.kind != KIND or not is_indexed(key)}
    for label_type, bounds in by_label(query.bounds).items():
        sizes = "".join(f" AND size {bound.operator} {{{place}}}" for place, bound in enumerate(bounds, 2))
        conditions.append((_TYPED + sizes, (*label_type, *(bound.size for bound in bounds))))
    where = [f"labels @> {bind(msgspec.json.encode(other).decode())}::jsonb"] if other else []
    are_open = set(query.states) == set(OPEN_STATES)
    for terms, values in conditions:
        places = ("$1::text", "$2::text", *(f"${place}::float8" for place in range(3, len(values) + 1)))
        few = not are_open and await db.fetchval(_FEW.format(terms=terms.format(*places)), *values) < MANY
        where.append((_AMONG if few else _EVERY).format(terms=terms.format(*map(bind, values))))
    return where


async def counts(db: asyncpg.Connection, kind: str) -> dict[str, int]:
    """Return how many streams of a kind are in each state."""
    rows = await db.fetch("SELECT state, count(*) FROM heads WHERE kind = $1 GROUP BY state", kind)
    return {row[0]: row[1] for row in rows}


async def tallies(
    db: asyncpg.Connection, kind: str, since: int, width: int, bounds: Sequence[int]
) -> list[StreamTally]:
    """Return how many streams of a kind were made in each stretch of time; only streams since then are looked at."""
    rows = await db.fetch(_TALLIES.format(took=reached(bounds)), kind, since, width)
    return [StreamTally(*row) for row in rows]


async def events(db: asyncpg.Connection, wanted: Sequence[tuple[str, int, int]]) -> list[list[Event]]:
    """For each stream, `after` and limit: events with seq > `after`, in order."""
    eventses: list[list[Event]] = [[] for _ in wanted]
    for place, *event in await db.fetch(_EVENTS, *map(list, zip(*wanted, strict=True))):
        eventses[place - 1].append(Event(wanted[place - 1][0], *event))
    return eventses


async def scan(db: asyncpg.Connection, horizon: Horizon, after: int, kinds: Sequence[str], limit: int) -> Scanned:
    """Events of all streams, as far as nothing can appear before them any more."""
    settled, newest = await horizon.reach(db, after)
    reached = reach(after, settled, kinds)
    return page(await db.fetch(_SCAN, after, reached, kinds, limit), limit, reached=reached, newest=newest)


async def ends(db: asyncpg.Connection, horizon: Horizon, after: int, limit: int) -> Ends:
    """Return how far streams reached in a stretch of positions; nothing can appear before its end any more."""
    settled, newest = await horizon.reach(db, after)
    reached = max(after, min(settled, after + limit))
    rows = await db.fetch(_ENDS, after, reached)
    return Ends(tuple([StreamEnd(*row) for row in rows]), reached, more=reached < newest)


async def level(db: asyncpg.Connection, position: int) -> int:
    """Use up positions as far as this one; the last one that was given out."""
    last = await db.fetchval(_LAST)
    while last < position:
        last = await db.fetchval(_LEVEL, position) or await db.fetchval(_LAST)
    return int(last)


async def size(db: asyncpg.Connection) -> Size:
    """Return how much there is."""
    return Size(*await db.fetchrow(_SIZE))


async def blob(db: asyncpg.Connection, digest: str) -> bytes | None:
    """The bytes of a digest."""
    data: bytes | None = await db.fetchval("SELECT data FROM blobs WHERE digest = $1", digest)
    return data


async def blobs(db: asyncpg.Connection, after: str, limit: int) -> list[Blob]:
    """Blobs in the order of their digests."""
    sql = "SELECT digest, data, until FROM blobs WHERE digest > $1 ORDER BY digest LIMIT $2"
    return [Blob(*row) for row in await db.fetch(sql, after, limit)]


async def folds(db: asyncpg.Connection, name: str, parts: Sequence[str]) -> list[JournalFold]:
    """A fold and some of its parts."""
    names = [name, *(f"{name}/{part}" for part in parts)]
    sql = "SELECT name, position, data FROM folds WHERE name = ANY ($1) ORDER BY name"
    return [JournalFold(*row) for row in await db.fetch(sql, names)]


async def keep_folds(db: asyncpg.Connection, journal_folds: Sequence[JournalFold], before: int) -> bool:
    """Replace folds, if the first is still the one that they continue."""
    async with db.transaction():
        # The lock of this fold, for one that is not kept yet has no row to lock; then its parts.
        await db.execute(
            "SELECT pg_advisory_xact_lock(hashtext(current_schema() || ' fold ' || $1))", journal_folds[0].name
        )
        if (await db.fetchval("SELECT position FROM folds WHERE name = $1", journal_folds[0].name) or 0) != before:
            return False
        await db.executemany(
            "INSERT INTO folds VALUES ($1, $2, $3) ON CONFLICT (name) "
            "DO UPDATE SET position = excluded.position, data = excluded.data",
            [(fold.name, fold.position, fold.data) for fold in journal_folds],
        )
        await db.execute(_RUNS)  # at the end: a move waits for this transaction, or is seen by it
    return True


async def prune(db: asyncpg.Connection, now: int, limit: int) -> int:
    """Erase blobs whose time is over; how many."""
    await db.execute(_PRUNE_WRITERS)
    return int(await db.fetchval(_PRUNE, now, limit))


async def cut(db: asyncpg.Connection, cut: Cut) -> bool:
    """Put stubs in the place of older events.

    Heads first, as writers lock them; then the events, so that no process writes one between the look and the end.
    """
    streams = [append.stream for append in cut.appends]
    async with db.transaction():
        if not cut.aside:
            await db.execute("SELECT runs_jobs()")
        await db.execute(_STREAMS, streams)
        await db.execute("LOCK TABLE events IN SHARE MODE")
        async for (data,) in db.cursor("SELECT data FROM events WHERE position > $1", cut.position):
            if not cut.names.isdisjoint(names_in(data)):
                return False
        for append in cut.appends:
            statement, columns = CommitGroup([Commit(appends=(append,), at=append.at)]).alone()
            if await db.fetchval(statement, *columns):
                raise conflict(append.stream)
        await db.execute(_BEFORE, streams, [append.events[0].seq for append in cut.appends])
        await db.execute("DELETE FROM blobs WHERE digest = ANY ($1)", list(cut.blobs))
        await db.execute(f"SELECT {_TELL}")
    return True


async def freeze(db: asyncpg.Connection, append: Append) -> None:
    """End every lease and append, while nothing else is written."""
    async with db.transaction():
        await db.execute("LOCK TABLE heads, folds IN EXCLUSIVE MODE")
        await db.execute(_EVICT, append.at)
        statement, columns = CommitGroup([Commit(appends=(append,), at=append.at)]).alone()
        if await db.fetchval(statement, *columns):
            raise conflict(append.stream)
        await db.execute(f"SELECT {_TELL}")


async def claim(db: asyncpg.Connection, request: LeaseClaim) -> list[Lease]:
    """Lease due streams, passing over those that someone else is leasing at this moment."""
    rows = await db.fetch(
        _CLAIM,
        request.kind,
        request.owner,
        request.now,
        request.lease_until,
        request.limit,
        request.states,
        request.state,
        request.routes,
        request.after,
    )
    return [replace(_lease(row), turn=row["turn"]) for row in rows]


async def due(db: asyncpg.Connection, request: LeaseClaim) -> list[StreamHead]:
    """Heads of due streams, as a claim would lease them."""
    values = (request.kind, request.now, request.limit, request.states, request.routes, request.after)
    return [to_head(row) for row in await db.fetch(_DUE, *values)]


async def acquire(db: asyncpg.Connection, stream: str, request: LeaseClaim, over: str | None) -> list[Lease]:
    """Lease one stream; nothing if it is closed or someone else's lease runs."""
    values = (stream, request.now, over, request.owner, request.lease_until, request.state)
    return [_lease(row) for row in await db.fetch(_ACQUIRE, *values)]


def _lease(row: asyncpg.Record) -> Lease:
    return Lease(
        head=to_head(row),
        previous_state=row["was_state"],
        previous_owner=row["was_owner"],
        previous_due=row["was_due"],
    )


async def give_back(db: asyncpg.Connection, leases: Sequence[Lease], now: int) -> None:
    """Undo leases that no worker heard of; what was woken or taken over meanwhile is due at once."""
    for lease in leases:
        due = now if lease.previous_owner else lease.previous_due
        values = (lease.previous_state, lease.head.wakes, due, now, lease.head.stream, lease.head.epoch)
        await db.execute(_GIVE_BACK, *values)


async def renew(db: asyncpg.Connection, leases: Sequence[tuple[str, int]], until: int) -> list[str]:
    """Prolong leases given as (stream, epoch)."""
    streams, epochs = [stream for stream, _ in leases], [epoch for _, epoch in leases]
    return [row[0] for row in await db.fetch(_RENEW, streams, epochs, until)]


async def wakes(db: asyncpg.Connection, streams: Sequence[str]) -> dict[str, int]:
    """Return how often each of these streams was woken."""
    rows = await db.fetch("SELECT stream, wakes FROM heads WHERE stream = ANY ($1)", list(streams))
    return {row[0]: row[1] for row in rows}


async def next_due(db: asyncpg.Connection, kind: str, routes: Sequence[str]) -> int | None:
    """The earliest due time of a kind, over all priorities."""
    first_due: int | None = await db.fetchval("SELECT next_due($1, $2)", kind, routes)
    return first_due


async def routes(db: asyncpg.Connection, kind: str) -> list[str]:
    """Every route on which streams of a kind are due some time."""
    names: list[str] = await db.fetchval("SELECT routes_used($1, '{}')", kind)
    return names


async def leases(db: asyncpg.Connection, kind: str) -> list[StreamHead]:
    """Heads that someone holds."""
    return [to_head(row) for row in await db.fetch(_HELD, kind)]


async def integrity(db: asyncpg.Connection) -> list[str]:
    """Streams whose head and events do not belong together, at most 20."""
    rows = await db.fetch(_TORN, timeout=_WHOLE_JOURNAL_S)
    return [f"{row[0]}: the head says {row[1]} events, {row[2]} are there, the last is {row[3]}" for row in rows]
