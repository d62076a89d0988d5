"""The SQL that reads heads, events and blobs, and hands out leases.

Lock order: a transaction here takes the database's one write lock first (BEGIN IMMEDIATE), so two of them never wait
for each other in a circle.

The queue: which streams want a worker, in which order, and the leases that a claim takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from heapq import merge
from itertools import islice, zip_longest
from typing import Any, Final, NamedTuple

import apsw
import msgspec

from remit.errors import JournalError
from remit.journal.commit import COLUMNS, HEADS, reached, to_head
from remit.journal.event import (
    OPEN_STATES,
    Blob,
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
from remit.journal.references import names_in
from remit.journal.retirement import RETIRED, STREAM, busy, refusal
from remit.journal.scan import page, reach
from remit.journal.sqlite.schema import LABELS, label

_NEXT_ROUTE: Final = """
SELECT min(route) FROM heads WHERE kind = ? AND route > ? AND due_at IS NOT NULL AND NOT closed
"""
_TOP_PRIORITY: Final = """
SELECT max(priority) FROM heads WHERE kind = ? AND route = ? AND priority < ? AND due_at IS NOT NULL AND NOT closed
"""
_EARLIEST: Final = """
SELECT min(due_at) FROM heads WHERE kind = ? AND route = ? AND priority = ? AND due_at IS NOT NULL AND NOT closed
"""
_NEXT_SHARE: Final = """
SELECT min(share) FROM heads INDEXED BY heads_share
WHERE kind = ? AND route = ? AND priority = ? AND share >= ? AND due_at IS NOT NULL AND NOT closed
"""
_DUE: Final = """
WHERE due_at <= ?1 AND kind = ? AND route = ? AND priority = ?{share} AND due_at IS NOT NULL AND NOT closed
  AND (lease_owner IS NULL OR lease_until <= ?1){states}
ORDER BY due_at, id LIMIT ?
"""
_LEASE: Final = """
UPDATE heads SET epoch = epoch + 1, lease_owner = ?1, lease_until = ?2, due_at = ?2, state = ?3 WHERE stream = ?4
"""
_DUE_AT: Final = COLUMNS.index("due_at")
_NO_PRIORITY: Final = 2**62
_LOOKS: Final = 32
"""Shares that a claim looks at although nothing of theirs may be due; then it takes what is longest due."""


def claim(db: apsw.Connection, request: LeaseClaim) -> list[Lease]:
    """Lease due streams."""
    heads, turn = _waiting(db, request)
    return [take(db, head, request, turn) for head in heads]


def take(db: apsw.Connection, stream_head: StreamHead, request: LeaseClaim, turn: str = "") -> Lease:
    """Lease a stream that is free, on the terms of a claim."""
    state = (request.state if stream_head.state in OPEN_STATES else None) or stream_head.state
    db.execute(_LEASE, (request.owner, request.lease_until, state, stream_head.stream))
    now = msgspec.structs.replace(
        stream_head,
        epoch=stream_head.epoch + 1,
        lease_owner=request.owner,
        lease_until=request.lease_until,
        due_at=request.lease_until,
        state=state,
    )
    return Lease(
        head=now,
        previous_state=stream_head.state,
        previous_owner=stream_head.lease_owner,
        previous_due=stream_head.due_at,
        turn=turn,
    )


def due(db: apsw.Connection, request: LeaseClaim) -> list[StreamHead]:
    """Heads of due streams, as a claim would lease them."""
    return _waiting(db, request)[0]


def _waiting(db: apsw.Connection, request: LeaseClaim) -> tuple[list[StreamHead], str]:
    """Heads of due streams, and the share whose turn was last.

    One index search per route and priority in use, however many streams wait. Shares take turns where more is due than
    there is room for.
    """
    stream_heads, turn = list[StreamHead](), request.after
    for priority, routes in _queues(db, request.kind, request.routes):
        room = request.limit - len(stream_heads)
        rows = list(islice(_queue(db, request, priority, routes, room + 1), room + 1))
        if len(rows) > room and len(list(islice(_shares(db, request, priority, routes, turn), 2))) > 1:
            first, turn = _in_turn(db, request, priority, routes, room, turn)
            ids = {row[-1] for row in first}
            rows = first + [row for row in rows if row[-1] not in ids]
        stream_heads += [to_head(row) for row in rows[:room]]
        if len(stream_heads) == request.limit:
            break
    return stream_heads, turn


def _queue(
    db: apsw.Connection, request: LeaseClaim, priority: int, routes: Sequence[str], limit: int, *share: str
) -> Iterator[Sequence[Any]]:
    """Rows of what is due on these routes, of one share or of all, longest due first."""
    sql = _due_sql(len(request.states), of_share=bool(share))
    terms = (priority, *share, *request.states, limit)
    each = [db.execute(sql, (request.now, request.kind, route, *terms)) for route in routes]
    return merge(*each, key=_longest_due) if len(each) > 1 else iter(each[0])


def _in_turn(
    db: apsw.Connection, request: LeaseClaim, priority: int, routes: Sequence[str], room: int, after: str
) -> tuple[list[Sequence[Any]], str]:
    """Rows of what is due, one of each share in turn, beginning after one share; and the share looked at last."""
    rows, queues, share = list[Sequence[Any]](), [], after
    for share in islice(_shares(db, request, priority, routes, after), room + _LOOKS):
        queue = _queue(db, request, priority, routes, room, share)
        if (row := next(queue, None)) is not None:
            rows.append(row)
            queues.append(queue)
        if len(rows) == room:
            return rows, share
    later = (row for turn in zip_longest(*queues) for row in turn if row is not None)
    return rows + list(islice(later, room - len(rows))), share


def _shares(
    db: apsw.Connection, request: LeaseClaim, priority: int, routes: Sequence[str], after: str
) -> Iterator[str]:
    """Every share in which streams wait for a worker: those after this one by name, then the others."""

    def following(least: str) -> str | None:
        each = [db.execute(_NEXT_SHARE, (request.kind, route, priority, least)).get for route in routes]
        return min((share for share in each if share is not None), default=None)

    share = following(after + "\0")
    while share is not None:
        yield share
        share = following(share + "\0")
    share = following("")
    while share is not None and share <= after:
        yield share
        share = following(share + "\0")


@lru_cache(maxsize=32)
def _due_sql(states: int, *, of_share: bool) -> str:
    wanted = f" AND state IN ({', '.join('?' * states)})" if states else ""
    index, share = ("heads_share", " AND share = ?") if of_share else ("heads_due", "")
    due = _DUE.format(states=wanted, share=share)
    return f"SELECT {', '.join(COLUMNS)}, id FROM heads INDEXED BY {index} {due}"  # noqa: S608 - fixed parts


def _longest_due(row: Sequence[Any]) -> tuple[int, int]:
    return row[_DUE_AT], row[-1]


def _queues(db: apsw.Connection, kind: str, routes: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Every priority in which streams wait for a worker, the highest first, with the routes they wait on."""
    below = dict.fromkeys(("", *(routes or every_route(db, kind))), _NO_PRIORITY)
    if len(below) == 1:
        top: int | None = _NO_PRIORITY
        while (top := db.execute(_TOP_PRIORITY, (kind, "", top)).get) is not None:
            yield top, [""]
        return
    tops: dict[str, int] = {}
    while True:
        for route, priority in below.items():
            top = db.execute(_TOP_PRIORITY, (kind, route, priority)).get
            if top is not None:
                tops[route] = top
        if not tops:
            return
        highest = max(tops.values())
        below = {route: highest for route, top in tops.items() if top == highest}
        yield highest, list(below)
        for route in below:
            del tops[route]


def every_route(db: apsw.Connection, kind: str) -> Iterator[str]:
    """Every route on which streams wait for a worker."""
    route: str | None = ""
    while (route := db.execute(_NEXT_ROUTE, (kind, route)).get) is not None:
        yield route


def next_due(db: apsw.Connection, kind: str, routes: Sequence[str]) -> int | None:
    """The earliest due time of a kind, over all priorities."""
    queues = [(priority, route) for priority, waiting in _queues(db, kind, routes) for route in waiting]
    dues = [db.execute(_EARLIEST, (kind, route, priority)).get for priority, route in queues]
    return min((due for due in dues if due is not None), default=None)  # a queue may have emptied in between


_HEAD: Final = HEADS + " WHERE stream = ?"
_EVENTS: Final = """
SELECT e.seq, e.kind, e.at, e.data, e.hash FROM heads h JOIN events e ON e.stream = h.id AND e.seq <= h.seq
WHERE h.stream = ? AND e.seq > ? ORDER BY e.seq LIMIT ?
"""
_SCAN: Final = """
SELECT e.position, h.stream, e.seq, e.kind, e.at, e.data, e.hash
FROM events e JOIN heads h ON h.id = e.stream AND e.seq <= h.seq
WHERE e.position > ? AND e.position <= ?{kinds} ORDER BY e.position LIMIT ?
"""
_ENDS: Final = """
SELECT h.stream, e.seq, e.hash
FROM (SELECT stream, max(seq) AS seq FROM events WHERE position > ? AND position <= ? GROUP BY stream) AS newest
JOIN events e ON e.stream = newest.stream AND e.seq = newest.seq
JOIN heads h ON h.id = e.stream AND e.seq <= h.seq
ORDER BY e.position
"""
_FREE: Final = f"""{HEADS}
WHERE stream = ?1 AND NOT closed AND (lease_owner IS NULL OR lease_until <= ?2 OR lease_owner = ?3)
"""
_RENEW: Final = """
UPDATE heads SET lease_until = ?1, due_at = ?1
WHERE stream = ?2 AND epoch = ?3 AND lease_owner IS NOT NULL AND NOT closed
"""
_GIVE_BACK: Final = """
UPDATE heads SET lease_owner = NULL, lease_until = NULL, state = ?1, due_at = CASE WHEN wakes = ?2 THEN ?3 ELSE ?4 END
WHERE stream = ?5 AND epoch = ?6
"""
_HELD: Final = f"""{HEADS}
WHERE kind = ? AND lease_owner IS NOT NULL AND NOT closed ORDER BY lease_until
"""
_GAPS: Final = """
SELECT before + 1, position - 1
FROM (SELECT position, lag(position, 1, 0) OVER (ORDER BY position) AS before FROM events)
WHERE position > before + 1 ORDER BY position LIMIT 20
"""
_PRUNE: Final = """
DELETE FROM blobs WHERE digest IN (SELECT digest FROM blobs WHERE until <= ? ORDER BY until LIMIT ?)
"""
_TORN: Final = f"""
SELECT coalesce(h.stream, 'a stream without a head'), coalesce(h.seq, 0), e.found, e.last
FROM heads h
FULL JOIN (SELECT stream, count(*) AS found, max(seq) AS last, min(seq) AS first FROM events GROUP BY stream) e
    ON e.stream = h.id
WHERE coalesce(h.seq, 0) <> coalesce(e.last, 0) OR e.found <> e.last - e.first + 1 OR e.first > 1
    AND (SELECT kind FROM events f WHERE f.stream = e.stream AND f.seq = e.first) <> '{StreamPruned.KIND}' LIMIT 20
"""  # noqa: S608 - fixed parts
_PRUNED_EVENTS: Final = f"""
SELECT coalesce(sum(seq - 1), 0) FROM events e
WHERE kind = '{StreamPruned.KIND}' AND NOT EXISTS (SELECT 1 FROM events f WHERE f.stream = e.stream AND f.seq < e.seq)
"""  # noqa: S608 - fixed parts
_RETIRED: Final = f"SELECT state, title FROM heads WHERE stream = '{STREAM}' AND state IN {RETIRED}"  # noqa: S608 - fixed parts
_LEASED: Final = """
SELECT count(*), min(stream) FROM heads WHERE lease_owner IS NOT NULL AND NOT closed AND lease_until > ?
"""
_NEWEST: Final = "SELECT * FROM (SELECT id FROM heads WHERE {where} ORDER BY id DESC LIMIT ?)"
_TALLIES: Final = """
SELECT (created_at - ?2) / ?3, state, CASE WHEN closed THEN {took} END, count(*) FROM heads
WHERE kind = ?1 AND created_at >= ?2 AND id > coalesce((
    SELECT id FROM heads WHERE kind = ?1 AND created_at < ?2 ORDER BY id DESC LIMIT 1), 0)
GROUP BY 1, 2, 3
"""
_FEW: Final = f"SELECT count(*) FROM (SELECT 1 FROM labels WHERE {{terms}} LIMIT {MANY})"  # noqa: S608 - fixed parts
_AMONG: Final = "id IN (SELECT head FROM labels WHERE {terms})"
_EACH: Final = "EXISTS (SELECT 1 FROM labels WHERE head = heads.id AND {terms})"
_LAST_CHARACTER: Final = "\U0010ffff"


def head(db: apsw.Connection, stream: str) -> StreamHead | None:
    """The head of a stream."""
    row = db.execute(_HEAD, (stream,)).fetchone()
    return to_head(row) if row else None


class _Labeled(NamedTuple):
    """The conditions on labels, and their values."""

    where: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    is_narrow: bool = False
    """Whether an index of labels has few heads to look at."""


def heads(db: apsw.Connection, query: HeadQuery) -> list[StreamHead]:
    """Heads that match, newest first."""
    labeled = _labeled(db, query)
    if query.kind is None or query.prefix or not query.states[1:]:
        where, values = _where(query, query.states, labeled)
        sql = f"{HEADS} WHERE {where} ORDER BY id DESC LIMIT ?"
    else:
        # The index on states has the newest of each at hand, and of several states none.
        each = [_where(query, (state,), labeled) for state in dict.fromkeys(query.states)]
        newest = " UNION ALL ".join(_NEWEST.format(where=where) for where, _ in each)
        values = [value for _, parameters in each for value in (*parameters, query.limit)]
        sql = f"{HEADS} WHERE id IN ({newest}) ORDER BY id DESC LIMIT ?"
    return [to_head(row) for row in db.execute(sql, (*values, query.limit))]


def _where(query: HeadQuery, states: Sequence[str], labeled: _Labeled) -> tuple[str, list[Any]]:
    """The condition of a query for streams in some of these states, and its values."""
    where, values = ["1"], list[Any]()
    # A plus keeps SQLite from the indexes on kinds: names that share a prefix are few, streams of a kind are not.
    plus = "+" if query.prefix or labeled.is_narrow else ""
    if query.kind is not None:
        where.append(f"{plus}kind = ?")
        values.append(query.kind)
    if states:
        where.append(f"{plus}state IN ({', '.join('?' * len(states))})")
        values += states
    if query.prefix:
        # A range, not LIKE: it uses the index on names and needs no escaping.
        where.append("stream >= ? AND stream < ?")
        values += [query.prefix, query.prefix + _LAST_CHARACTER]
    where += labeled.where
    values += labeled.values
    if query.subject:
        where.append("subject = ? AND subject <> ''")
        values.append(query.subject)
    if query.text:
        where.append("instr(lower(title), ?) > 0")
        values.append(query.needle)
    if query.is_timed:
        where.append("created_at >= ? AND created_at < ?")
        values += [query.since, query.until]
    if query.before is not None:
        where.append("id < (SELECT id FROM heads WHERE stream = ?)")
        values.append(query.before)
    return " AND ".join(where), values


def _labeled(db: apsw.Connection, query: HeadQuery) -> _Labeled:
    """The conditions on labels.

    Of streams that are open there are few, and the indexes of labels hold every stream that there ever was. Where many
    heads fit a condition, the newest heads are looked at one by one: as a list of them all they would be sorted first.
    """
    are_open = set(query.states) == set(OPEN_STATES)
    filter_ = _Labeled()
    for key, value in query.labels.items():
        if key in LABELS and not are_open:  # as its index has it
            filter_ = _Labeled((*filter_.where, f"{label(key)} = ?"), (*filter_.values, value), is_narrow=True)
        elif query.kind == KIND and is_indexed(key) and not are_open:
            filter_ = _met(db, filter_, "key = ? AND value = ?", (key, value))
        else:
            path = "$." + msgspec.json.encode(key).decode()
            filter_ = filter_._replace(
                where=(*filter_.where, "labels ->> ? = ?"), values=(*filter_.values, path, value)
            )
    for label_type, bounds in by_label(query.bounds).items():
        terms = "key = ? AND type = ?" + "".join(f" AND size {bound.operator} ?" for bound in bounds)
        sizes = (bound.size for bound in bounds)
        filter_ = _met(db, filter_, terms, (*label_type, *sizes), are_open=are_open)
    return filter_


def _met(
    db: apsw.Connection, labeled: _Labeled, terms: str, values: tuple[Any, ...], *, are_open: bool = False
) -> _Labeled:
    """Conditions, and one more that the index of labels answers."""
    few = not are_open and db.execute(_FEW.format(terms=terms), values).get < MANY
    # A plus keeps SQLite from the index of sizes, which half of all heads may fit: a head has one label of a key.
    where = _AMONG.format(terms=terms) if few else _EACH.format(terms=terms.replace(" AND ", " AND +"))
    return _Labeled((*labeled.where, where), (*labeled.values, *values), is_narrow=labeled.is_narrow or few)


def counts(db: apsw.Connection, kind: str) -> dict[str, int]:
    """Return how many streams of a kind are in each state; the index on states answers it alone."""
    return dict(db.execute("SELECT state, count(*) FROM heads WHERE kind = ? GROUP BY state", (kind,)))


def tallies(db: apsw.Connection, kind: str, since: int, width: int, bounds: Sequence[int]) -> list[StreamTally]:
    """Return how many streams of a kind were made in each stretch of time; only streams since then are looked at."""
    return [StreamTally(*row) for row in db.execute(_TALLIES.format(took=reached(bounds)), (kind, since, width))]


def events(db: apsw.Connection, stream: str, after: int, limit: int) -> list[Event]:
    """Events with seq > `after`, in order."""
    rows: list[tuple[Any, ...]] = db.execute(_EVENTS, (stream, after, limit)).fetchall()
    return [Event(stream, *row) for row in rows]


def scan(db: apsw.Connection, after: int, kinds: Sequence[str], limit: int) -> Scanned:
    """Events of all streams; the one write lock gives positions in the order of commits."""
    newest = db.execute("SELECT max(position) FROM events").get or 0
    reached = reach(after, newest, kinds)
    wanted = f" AND e.kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
    rows = db.execute(_SCAN.format(kinds=wanted), (after, reached, *kinds, limit)).fetchall()
    return page(rows, limit, reached=reached, newest=newest)


def ends(db: apsw.Connection, after: int, limit: int) -> Ends:
    """Return how far streams reached in a stretch of positions."""
    newest = db.execute("SELECT max(position) FROM events").get or 0
    reached = max(after, min(newest, after + limit))
    rows = db.execute(_ENDS, (after, reached))
    return Ends(tuple([StreamEnd(*row) for row in rows]), reached, more=reached < newest)


def retired(db: apsw.Connection, url: str) -> JournalError | None:
    """Return why the journal runs no jobs; None: it does."""
    row = db.execute(_RETIRED).fetchone()
    return refusal(url, *row) if row else None


def leased(db: apsw.Connection, now: int) -> JournalError | None:
    """Return why nothing that ends the journal can be written: someone works in it."""
    row = db.execute(_LEASED, (now,)).fetchone()
    return busy(*row) if row and row[0] else None


def blob(db: apsw.Connection, digest: str) -> bytes | None:
    """The bytes of a digest."""
    row = db.execute("SELECT data FROM blobs WHERE digest = ?", (digest,)).fetchone()
    return row[0] if row else None


def blobs(db: apsw.Connection, after: str, limit: int) -> list[Blob]:
    """Blobs in the order of their digests."""
    rows = db.execute("SELECT digest, data, until FROM blobs WHERE digest > ? ORDER BY digest LIMIT ?", (after, limit))
    return [Blob(*row) for row in rows]


def folds(db: apsw.Connection, name: str, parts: Sequence[str]) -> list[JournalFold]:
    """A fold and some of its parts."""
    names = msgspec.json.encode([name, *(f"{name}/{part}" for part in parts)]).decode()
    sql = "SELECT name, position, data FROM folds WHERE name IN (SELECT value FROM json_each(?)) ORDER BY name"
    return [JournalFold(*row) for row in db.execute(sql, (names,))]


def named_since(db: apsw.Connection, names: AbstractSet[str], after: int) -> bool:
    """Return whether an event with a position > `after` holds one of these names."""
    rows = db.execute("SELECT data FROM events WHERE position > ?", (after,))
    return any(not names.isdisjoint(names_in(data)) for (data,) in rows)


def keep_folds(db: apsw.Connection, journal_folds: Sequence[JournalFold], before: int) -> bool:
    """Replace folds, if the first is still the one that they continue."""
    if (db.execute("SELECT position FROM folds WHERE name = ?", (journal_folds[0].name,)).get or 0) != before:
        return False
    db.executemany(
        "INSERT OR REPLACE INTO folds VALUES (?, ?, ?)",
        [(fold.name, fold.position, fold.data) for fold in journal_folds],
    )
    return True


def prune(db: apsw.Connection, now: int, limit: int) -> int:
    """Erase blobs whose time is over; how many."""
    db.execute(_PRUNE, (now, limit))
    return db.changes()


def acquire(db: apsw.Connection, stream: str, request: LeaseClaim, over: str | None) -> list[Lease]:
    """Lease one stream; nothing if it is closed or someone else's lease runs."""
    rows = db.execute(_FREE, (stream, request.now, over)).fetchall()
    return [take(db, to_head(row), request) for row in rows]


def give_back(db: apsw.Connection, leases: Sequence[Lease], now: int) -> None:
    """Undo leases that no worker heard of; what was woken or taken over meanwhile is due at once."""
    for lease in leases:
        head, due = lease.head, now if lease.previous_owner else lease.previous_due
        values = (lease.previous_state, head.wakes, due, now, head.stream, head.epoch)
        db.execute(_GIVE_BACK, values)


def renew(db: apsw.Connection, leases: Sequence[tuple[str, int]], until: int) -> list[str]:
    """Prolong leases given as (stream, epoch)."""
    held = []
    for stream, epoch in leases:
        db.execute(_RENEW, (until, stream, epoch))
        if db.changes():
            held.append(stream)
    return held


def wakes(db: apsw.Connection, streams: Sequence[str]) -> dict[str, int]:
    """Return how often each of these streams was woken."""
    sql = "SELECT stream, wakes FROM heads WHERE stream IN (SELECT value FROM json_each(?))"
    return dict(db.execute(sql, (msgspec.json.encode(streams).decode(),)))


def leases(db: apsw.Connection, kind: str) -> list[StreamHead]:
    """Heads that someone holds."""
    return [to_head(row) for row in db.execute(_HELD, (kind,))]


def integrity(db: apsw.Connection) -> list[str]:
    """Return the findings of SQLite's own check, or else streams whose head and events do not fit; 20 lines."""
    lines = [str(row[0]) for row in db.execute("PRAGMA integrity_check(20)")]
    if lines != ["ok"]:
        return lines  # what else a damaged file says is not worth much
    torn = db.execute(_TORN).fetchall()
    lines = [f"{row[0]}: the head says {row[1]} events, {row[2]} are there, the last is {row[3]}" for row in torn]
    return lines + _removed(db)


def _removed(db: apsw.Connection) -> list[str]:
    """Places of events that are gone, one line; stubs say how many were removed, and others leave gaps (rule 2).

    Counting is cheap; gaps are looked for only if the count says that there are some. The newest events of all leave
    no gap. Once streams were pruned, only the number is known: it is no place that a stub names.
    """
    ((count, last),) = db.execute("SELECT count(*), ifnull(max(position), 0) FROM events")
    if count == last:
        return []
    stubs = int(db.execute(_PRUNED_EVENTS).get)
    if stubs:
        beyond = last - count - stubs  # a copy gives the events that are left places without gaps
        return [f"events were removed from the journal: {beyond} that no stub stands for"] if beyond > 0 else []
    gaps = [f"{first} to {end}" if first < end else str(first) for first, end in db.execute(_GAPS)]
    return [f"events were removed from the journal: {last - count}, at position {', '.join(gaps)}"]
