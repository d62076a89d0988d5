"""The queue: which streams want a worker, in which order, and the leases that a claim takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from heapq import merge
from itertools import islice, zip_longest
from typing import Any, Final

import apsw
import msgspec

from remit.journal.event import OPEN_STATES, Claim, Head, Lease
from remit.journal.rows import COLUMNS, to_head

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


def claim(db: apsw.Connection, request: Claim) -> list[Lease]:
    """Lease due streams."""
    heads, turn = _waiting(db, request)
    return [take(db, head, request, turn) for head in heads]


def take(db: apsw.Connection, found: Head, request: Claim, turn: str = "") -> Lease:
    """Lease a stream that is free, on the terms of a claim."""
    state = (request.state if found.state in OPEN_STATES else None) or found.state
    db.execute(_LEASE, (request.owner, request.lease_until, state, found.stream))
    now = msgspec.structs.replace(
        found,
        epoch=found.epoch + 1,
        lease_owner=request.owner,
        lease_until=request.lease_until,
        due_at=request.lease_until,
        state=state,
    )
    return Lease(
        head=now, previous_state=found.state, previous_owner=found.lease_owner, previous_due=found.due_at, turn=turn
    )


def due(db: apsw.Connection, request: Claim) -> list[Head]:
    """Heads of due streams, as a claim would lease them."""
    return _waiting(db, request)[0]


def _waiting(db: apsw.Connection, request: Claim) -> tuple[list[Head], str]:
    """Heads of due streams, and the share whose turn was last.

    One index search per route and priority in use, however many streams wait. Shares take turns where more is due than
    there is room for.
    """
    found, turn = list[Head](), request.after
    for priority, routes in _queues(db, request.kind, request.routes):
        room = request.limit - len(found)
        rows = list(islice(_queue(db, request, priority, routes, room + 1), room + 1))
        if len(rows) > room and len(list(islice(_shares(db, request, priority, routes, turn), 2))) > 1:
            first, turn = _in_turn(db, request, priority, routes, room, turn)
            ids = {row[-1] for row in first}
            rows = first + [row for row in rows if row[-1] not in ids]
        found += [to_head(row) for row in rows[:room]]
        if len(found) == request.limit:
            break
    return found, turn


def _queue(
    db: apsw.Connection, request: Claim, priority: int, routes: Sequence[str], limit: int, *share: str
) -> Iterator[Sequence[Any]]:
    """Rows of what is due on these routes, of one share or of all, longest due first."""
    sql = _due_sql(len(request.states), of_share=bool(share))
    terms = (priority, *share, *request.states, limit)
    each = [db.execute(sql, (request.now, request.kind, route, *terms)) for route in routes]
    return merge(*each, key=_longest_due) if len(each) > 1 else iter(each[0])


def _in_turn(
    db: apsw.Connection, request: Claim, priority: int, routes: Sequence[str], room: int, after: str
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


def _shares(db: apsw.Connection, request: Claim, priority: int, routes: Sequence[str], after: str) -> Iterator[str]:
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
