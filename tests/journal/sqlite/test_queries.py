from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw
import pytest

from remit.clock import SECOND
from remit.journal.event import Commit, HeadPatch, HeadQuery, Lease, StreamHead
from remit.journal.labels import conditions
from remit.journal.sqlite import queries
from remit.journal.sqlite import queries as queue
from remit.journal.sqlite.groups import GroupWriter
from remit.journal.sqlite.schema import LABELS, migrate
from remit.journal.writer import StreamWriter
from remit_testing.clock import START, ManualClock
from remit_testing.journal.storage import LEASE, note, terms


@pytest.fixture
def db() -> apsw.Connection:
    db = apsw.Connection(":memory:")
    migrate(db)
    return db


def make(db: apsw.Connection, stream: str, patch: HeadPatch) -> None:
    append = StreamWriter(stream, "job", ManualClock()).stage(note(1), patch=patch)
    assert GroupWriter(db).write([Commit(appends=(append,), at=START)]) == [None]


def wake(db: apsw.Connection, stream: str) -> None:
    assert GroupWriter(db).write([Commit(appends=(), wakes=(stream,), at=START)]) == [None]


def head(db: apsw.Connection) -> StreamHead:
    found = queries.head(db, "job/a")
    assert found is not None
    return found


def taken(db: apsw.Connection, over: str | None = None, now: int = START) -> list[Lease]:
    leases = queries.acquire(db, "job/a", terms("me", now, state="running"), over)
    assert leases
    return leases


@pytest.mark.parametrize("due", [None, START - SECOND, START + SECOND])
def test_a_lease_given_back_leaves_no_trace_but_its_epoch(db: apsw.Connection, due: int | None) -> None:
    make(db, "job/a", HeadPatch(due_at=due, state="pending"))
    queries.give_back(db, taken(db), START)
    found = head(db)
    assert (found.state, found.due_at, found.lease_owner, found.lease_until) == ("pending", due, None, None)
    assert found.epoch == 1


def test_a_wake_up_during_a_lease_given_back_counts(db: apsw.Connection) -> None:
    make(db, "job/a", HeadPatch(due_at=None))
    leases = taken(db)
    wake(db, "job/a")
    queries.give_back(db, leases, START + 5)
    assert (head(db).due_at, head(db).wakes) == (START + 5, 1)


def test_what_was_taken_over_and_given_back_is_due_at_once(db: apsw.Connection) -> None:
    make(db, "job/a", HeadPatch(due_at=None, state="waiting"))
    taken(db)
    queries.give_back(db, taken(db, over="me"), START + 5)
    assert (head(db).state, head(db).due_at, head(db).lease_owner) == ("running", START + 5, None)


def test_a_lease_that_somebody_else_has_by_now_is_not_given_back(db: apsw.Connection) -> None:
    make(db, "job/a", HeadPatch(due_at=None))
    late = taken(db)
    taken(db, now=START + LEASE)
    queries.give_back(db, late, START)
    assert (head(db).lease_owner, head(db).epoch) == ("me", 2)


def plans(db: apsw.Connection, ask: Callable[[], object]) -> list[str]:
    """How SQLite finds what is asked for, one line for each statement."""
    asked: list[tuple[str, Any]] = []

    def note_down(_cursor: apsw.Cursor, sql: str, bindings: Any) -> bool:
        asked.append((sql, bindings))
        return True

    db.set_exec_trace(note_down)
    ask()
    db.set_exec_trace(None)
    return [" ".join(row[3] for row in db.execute("EXPLAIN QUERY PLAN " + sql, values)) for sql, values in asked]


@pytest.mark.parametrize(
    "ask",
    [
        lambda db: queries.head(db, "job/a"),
        lambda db: queries.events(db, "job/a", 0, 10),
        lambda db: queries.blob(db, "sha256:0"),
        lambda db: queue.claim(db, terms(states=("pending", "running"))),
        lambda db: queue.next_due(db, "job", ()),
        lambda db: queries.leases(db, "job"),
        lambda db: queries.renew(db, [("job/a", 1)], START),
        lambda db: queries.wakes(db, ["job/a"]),
        lambda db: queries.acquire(db, "job/a", terms(), None),
        lambda db: queries.heads(db, HeadQuery(kind="job")),
        lambda db: queries.heads(db, HeadQuery(kind="job", states=("pending", "running"), limit=1)),
    ],
)
def test_what_is_asked_often_never_looks_at_everything(
    db: apsw.Connection, ask: Callable[[apsw.Connection], object]
) -> None:
    make(db, "job/a", HeadPatch(due_at=START))
    found = plans(db, lambda: ask(db))
    assert found
    for steps in found:
        assert "SEARCH" in steps
        assert "SCAN heads" not in steps
        assert "SCAN events" not in steps


@pytest.mark.parametrize(
    "query",
    [
        HeadQuery(prefix="job/a/"),
        HeadQuery(kind="confirmation", prefix="job/a/", limit=1_000),
        HeadQuery(kind="confirmation", states=("pending",), prefix="job/a/", limit=1_000),
    ],
)
def test_a_prefix_is_looked_up_by_name(db: apsw.Connection, query: HeadQuery) -> None:
    (steps,) = plans(db, lambda: queries.heads(db, query))
    assert "(stream>? AND stream<?)" in steps


@pytest.mark.parametrize(
    "query", [HeadQuery(), HeadQuery(kind="job"), HeadQuery(kind="job", states=("pending",), before="job/a")]
)
def test_a_page_is_found_in_order_and_not_sorted(db: apsw.Connection, query: HeadQuery) -> None:
    (steps,) = plans(db, lambda: queries.heads(db, query))
    assert "TEMP B-TREE" not in steps


def test_next_due_passes_over_a_queue_that_empties_while_it_looks(db: apsw.Connection) -> None:
    make(db, "job/a", HeadPatch(due_at=START, priority=1))
    make(db, "job/b", HeadPatch(due_at=START + 1))
    asked = 0

    def meanwhile(_connection: object, sql: str, _bindings: object) -> bool:
        nonlocal asked
        asked += "min(due_at)" in sql
        if asked == 1 and "min(due_at)" in sql:
            db.set_exec_trace(None)
            db.execute("UPDATE heads SET due_at = NULL WHERE stream = 'job/a'")
        return True

    db.set_exec_trace(meanwhile)
    assert queue.next_due(db, "job", ()) == START + 1
    assert asked == 1


@pytest.mark.parametrize("key", LABELS)
@pytest.mark.parametrize("states", [(), ("pending",), ("pending", "running")])
def test_a_label_that_is_looked_for_has_an_index(db: apsw.Connection, key: str, states: tuple[str, ...]) -> None:
    query = HeadQuery(kind="job", states=states, labels={key: "a"})
    (steps,) = plans(db, lambda: queries.heads(db, query))
    assert steps.count(f"heads_{key.removeprefix('remit.')} (<expr>=?") == max(1, len(states))


def test_several_states_are_read_by_the_index_of_each(db: apsw.Connection) -> None:
    (steps,) = plans(db, lambda: queries.heads(db, HeadQuery(kind="job", states=("pending", "running"), limit=5)))
    assert steps.count("heads_state (kind=? AND state=?)") == 2
    assert "heads_kind" not in steps


def test_of_two_conditions_that_many_fit_neither_is_looked_for_among_all_labels(
    db: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MANY", 0)
    bounds = conditions(("size<5", "age>=5")).bounds
    steps = plans(db, lambda: queries.heads(db, HeadQuery(kind="job", bounds=bounds)))[-1]
    assert steps.count("labels EXISTS USING PRIMARY KEY (head=? AND key=?)") == len(bounds)


def test_what_lies_between_two_sizes_is_looked_up(db: apsw.Connection) -> None:
    bounds = conditions(("size<6", "size>=5")).bounds
    steps = plans(db, lambda: queries.heads(db, HeadQuery(kind="job", bounds=bounds)))[-1]
    assert "labels_size (key=? AND type=? AND size>? AND size<?)" in steps


def test_only_streams_since_then_are_counted(db: apsw.Connection) -> None:
    (steps,) = plans(db, lambda: queries.tallies(db, "job", START, SECOND, (SECOND,)))
    assert "heads_kind (kind=? AND rowid>?)" in steps
