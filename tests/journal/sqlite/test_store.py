"""How a store tells what other processes wrote from what it wrote itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw

from remit.journal.journal import Journal
from remit.journal.sqlite.store import SqliteStore
from remit_testing.clock import START, ManualClock
from remit_testing.journal.storage import LEASE, PATIENCE_S, due, head_of, holder, job, note, terms


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[tuple[Journal, SqliteStore]]:
    clock = ManualClock()
    store = SqliteStore(str(path), clock)
    journal = Journal(store, clock)
    try:
        yield journal, store
    finally:
        await journal.close()


async def test_nothing_it_writes_itself_is_news(tmp_path: Path) -> None:
    async with opened(tmp_path / "journal.db") as (journal, store):
        before = store._others_wrote()
        await job(journal, "job/a")
        writer = await holder(journal)
        await journal.append(writer, note(2), synced=True)
        await journal.append(writer, note(3), synced=False)
        assert await journal.renew([("job/a", writer.epoch)], START + 2 * LEASE) == ["job/a"]
        await journal.wake("job/a")
        assert store._others_wrote() == before


async def test_what_others_write_is_seen_whether_it_writes_or_not(tmp_path: Path) -> None:
    async with opened(tmp_path / "journal.db") as (journal, store):
        await job(journal, "job/a", due(None))
        other = apsw.Connection(str(tmp_path / "journal.db"))
        with store._writer._working:  # it told of the job a moment before it was done with it
            pass
        before = store._others_wrote()
        other.execute("UPDATE heads SET wakes = 1")
        seen = store._others_wrote()
        assert seen != before
        with store._writer._working:  # as if it always wrote: it cannot look in between
            other.execute("UPDATE heads SET wakes = 2")
            assert store._others_wrote() == seen
        store._writer._usual_s = 1.0  # a slow disk: the thread writes
        await job(journal, "job/b", due(None))
        with store._writer._working:
            assert store._others_wrote() != seen, "the thread that always writes looks too"
        other.close()


async def test_what_others_write_is_seen_while_our_own_commit_waits_for_their_lock(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), opened(tmp_path / "journal.db") as (journal, store):
        await job(journal, "job/a", due(None))
        other = apsw.Connection(str(tmp_path / "journal.db"))
        mark = await journal.changed(0)
        with store._writer._working:  # as long as this lasts
            for wakes in range(1, 4):
                other.execute("UPDATE heads SET wakes = ?", (wakes,))
                mark = await journal.changed(mark)
        other.close()


async def test_leases_that_nobody_heard_of_are_given_back_and_who_looks_for_work_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path / "journal.db") as (journal, store):
        await job(journal, "job/a")
        gate = threading.Event()
        _ = store._writer.run(gate.wait)
        claiming = asyncio.create_task(journal.claim(terms()))
        await asyncio.sleep(0)  # noqa: TID251 - lets it begin, and waits for nothing
        claiming.cancel()
        mark = await journal.heads_changed(0)
        gate.set()
        await asyncio.wait([claiming])
        assert claiming.cancelled()
        assert (await head_of(journal)).lease_owner is None
        assert await journal.heads_changed(0) > mark


async def test_what_lies_behind_the_end_of_a_stream_is_reported_and_never_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = Journal(SqliteStore(str(path), ManualClock()), ManualClock())
    await job(journal, "job/a")
    db = apsw.Connection(str(path))
    db.execute(
        "INSERT INTO events (stream, seq, kind, at, data, hash) VALUES (1, 2, 'job_completed', 0, x'7b7d', x'00')"
    )
    db.execute(
        "INSERT INTO events (stream, seq, kind, at, data, hash) VALUES (9, 1, 'job_completed', 0, x'7b7d', x'00')"
    )
    db.close()
    assert [event.seq for event in await journal.read("job/a")] == [1]
    assert [placed.event.seq for placed in (await journal.scan()).events] == [1]
    torn = await journal.integrity()
    assert [line.split(":")[0] for line in torn] == ["job/a", "a stream without a head"]
    await journal.close()


async def test_a_stream_that_was_taken_out_whole_leaves_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = Journal(SqliteStore(str(path), ManualClock()), ManualClock())
    for name in ("job/a", "job/b", "job/c"):
        await job(journal, name)
    assert await journal.integrity() == []
    db = apsw.Connection(str(path))
    db.execute("DELETE FROM events WHERE stream = 2")
    db.execute("DELETE FROM heads WHERE id = 2")
    db.close()
    assert await journal.integrity() == ["events were removed from the journal: 1, at position 2"]
    await journal.close()
