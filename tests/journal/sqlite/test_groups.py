"""Folding commits into few statements changes nothing: a group does what its commits do one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remit.errors import JournalError
from remit.journal.event import NO_PATCH, Append, Blob, Commit, HeadPatch, verify
from remit.journal.sqlite import queries
from remit.journal.sqlite.groups import GroupWriter
from remit.journal.sqlite.schema import Transaction, migrate
from remit.journal.writer import StreamWriter
from remit_testing.clock import START, ManualClock
from remit_testing.journal.storage import note, noted, terms

STREAMS = ("job/a", "job/b", "job/c", "job/d")
Outcomes = Sequence[JournalError | None]


def opened() -> tuple[apsw.Connection, GroupWriter]:
    """An empty journal in which the first two streams were made, the first with an old holder and a new one."""
    db = apsw.Connection(":memory:")
    migrate(db)
    writer = GroupWriter(db)
    for stream in STREAMS[:2]:
        made = StreamWriter(stream, "job", ManualClock()).stage(note(1), patch=HeadPatch(due_at=START))
        assert writer.write([Commit(appends=(made,), at=START)]) == [None]
    return db, writer


def contents(db: apsw.Connection) -> list[list[Any]]:
    """Everything in the journal, without the numbers that streams go by inside."""
    heads = [queries.head(db, stream) for stream in STREAMS]
    events = [queries.events(db, stream, 0, 1_000) for stream in STREAMS]
    blobs = db.execute("SELECT digest, data FROM blobs ORDER BY digest").fetchall()
    return [heads, events, blobs]


def valid(db: apsw.Connection) -> None:
    """Every stream is one chain up to its head, and nothing else is there."""
    total = 0
    for stream in STREAMS:
        head, events = queries.head(db, stream), queries.events(db, stream, 0, 1_000)
        assert verify(stream, events) == ((head.seq, head.hash) if head else verify(stream, []))
        total += len(events)
    assert db.execute("SELECT count(*) FROM events").get == total


ACTIONS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 5), st.integers(1, 3)),
    st.tuples(st.just("patch"), st.integers(0, 5), st.integers(0, 3)),
    st.tuples(st.just("span"), st.integers(0, 5), st.integers(0, 5)),
    st.tuples(st.just("wake"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("insist"), st.integers(0, 5), st.integers(0, 1)),
)


def planned(db: apsw.Connection, actions: Sequence[tuple[str, int, int]]) -> list[Commit]:
    """Commits of six writers: one behind, one superseded, one rival for the same name, staged without looking."""
    old = queries.head(db, STREAMS[0])
    (lease,) = queries.acquire(db, STREAMS[0], terms(), None)
    heads = [lease.head, old, queries.head(db, STREAMS[1]), queries.head(db, STREAMS[1]), None, None]
    names = [STREAMS[0], STREAMS[0], STREAMS[1], STREAMS[1], STREAMS[2], STREAMS[2]]
    writers = [StreamWriter(name, "job", ManualClock(), head) for name, head in zip(names, heads, strict=True)]
    return [_planned(writers, index, *action) for index, action in enumerate(actions)]


def _planned(writers: Sequence[StreamWriter], index: int, action: str, one: int, other: int) -> Commit:
    blobs = (Blob(f"sha256:{index}", b"x" * index),)
    if action == "wake":
        return Commit(appends=(), at=START, wakes=(STREAMS[one],))
    writer, patch = writers[one], HeadPatch(state=str(index))
    if action == "append":
        return Commit(appends=(writer.stage(*noted(*range(other))),), at=START, blobs=blobs)
    if action == "patch":
        return Commit(appends=(writer.stage(*noted(*range(other)), patch=patch),), at=START, blobs=blobs)
    if action == "insist":
        return Commit(appends=(writer.stage(note(index), expect_wakes=other),), at=START, blobs=blobs)
    appends: tuple[Append, ...] = (writer.stage(note(index), patch=patch),)
    if writers[other].stream != writer.stream:
        appends += (writers[other].stage(note(index)),)
    return Commit(appends=appends, at=START, blobs=blobs, wakes=(STREAMS[1],))


@example([("append", 1, 1), ("append", 0, 1), ("append", 1, 1)]).via("a superseded writer left the very same event")
@example([("append", 2, 1), ("append", 3, 1), ("append", 2, 1)]).via("two writers left the very same event")
@given(st.lists(ACTIONS, max_size=14))
def test_a_group_does_what_its_commits_do_one_by_one(actions: list[tuple[str, int, int]]) -> None:
    together, apart = opened(), opened()
    commits = planned(together[0], actions)
    planned(apart[0], [])
    grouped: Outcomes = together[1].write(commits) if commits else []
    single: list[JournalError | None] = [apart[1].write([commit])[0] for commit in commits]
    assert [error is None for error in grouped] == [error is None for error in single]
    assert contents(together[0]) == contents(apart[0])
    valid(together[0])


def append(writer: StreamWriter, *numbers: int) -> Commit:
    return Commit(appends=(writer.stage(*noted(*numbers)),), at=START)


def fresh(stream: str) -> StreamWriter:
    return StreamWriter(stream, "job", ManualClock())


def unfit(db: apsw.Connection) -> Commit:
    """A commit that fails in the middle of its group."""
    head = queries.head(db, STREAMS[1])
    patch = HeadPatch(due_at=2**70)
    return Commit(appends=(StreamWriter(STREAMS[1], "job", ManualClock(), head).stage(patch=patch),), at=START)


def refused_span(db: apsw.Connection) -> Commit:
    """A commit whose second stream is elsewhere; its first would be made."""
    behind = fresh(STREAMS[1])
    behind.seq = 7
    return Commit(appends=(fresh(STREAMS[2]).stage(note(1)), behind.stage(note(1))), at=START)


@pytest.mark.parametrize("failure", [unfit, refused_span])
def test_the_number_of_a_stream_made_in_vain_is_forgotten(failure: Callable[[apsw.Connection], Commit]) -> None:
    db, writer = opened()
    if failure is unfit:
        with pytest.raises(OverflowError):
            writer.write([append(fresh(STREAMS[2]), 1), failure(db)])
    else:
        assert writer.write([failure(db)])[0] is not None
    assert writer.write([append(fresh(STREAMS[3]), 1, 2)]) == [None]
    assert writer.write([append(fresh(STREAMS[2]), 1, 2, 3)]) == [None]
    valid(db)


def test_an_interrupt_right_after_the_begin_leaves_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    db, writer = opened()
    begin = Transaction.__enter__

    def interrupted(self: Transaction) -> None:
        begin(self)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "__enter__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            writer.write([append(fresh(STREAMS[2]), 1)])
    assert not db.in_transaction
    assert writer.write([append(fresh(STREAMS[2]), 1)]) == [None]
    valid(db)


def test_many_appends_of_one_writer_are_a_handful_of_statements() -> None:
    db, writer = opened()
    statements: list[str] = []
    one = StreamWriter(STREAMS[0], "job", ManualClock(), queries.head(db, STREAMS[0]))
    commits = [append(one, number) for number in range(600)]
    db.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: statements.append(event["sql"]))
    assert writer.write(commits) == [None] * 600
    db.trace_v2(0)
    assert len(statements) <= 16
    valid(db)


def test_an_empty_patch_is_no_patch() -> None:
    db, writer = opened()
    one = StreamWriter(STREAMS[0], "job", ManualClock(), queries.head(db, STREAMS[0]))
    for patch in (NO_PATCH, HeadPatch()):
        assert writer.write([Commit(appends=(one.stage(note(1), patch=patch),), at=START)]) == [None]
    valid(db)
