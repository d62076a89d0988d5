"""What is flushed when, and what becomes of a journal whose disk is full, broken or in use."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import pytest

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.event import HeadPatch
from remit.journal.journal import Journal
from remit.journal.sqlite.store import SqliteStore
from remit.journal.writer import StreamWriter
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import due, head_of, holder, job, note, numbers, refused, terms
from tests.journal.sqlite.disk import Disk, inserted
from tests.patience import PATIENCE_S


@pytest.fixture
def disk() -> Iterator[Disk]:
    with inserted() as disk:
        yield disk


@asynccontextmanager
async def opened(path: Path, *, vfs: str = "", busy_ms: int = 10_000) -> AsyncIterator[tuple[Journal, SqliteStore]]:
    clock = ManualClock()
    store = SqliteStore(str(path), clock, vfs=vfs, busy_ms=busy_ms)
    journal = Journal(store, clock)
    try:
        yield journal, store
    finally:
        await journal.close()


@asynccontextmanager
async def on(disk: Disk, folder: Path) -> AsyncIterator[tuple[Journal, StreamWriter]]:
    """A journal on a disk, and the writer of a stream in it; nothing is counted yet."""
    async with opened(folder / "journal.db", vfs=disk.name) as (journal, _):
        writer = await job(journal, "job/a")
        # The first flush of a new log also flushes the log's own header.
        await journal.append(writer, note(2), synced=True)
        disk.syncs.clear()
        yield journal, writer


async def test_a_synced_append_is_one_flush_of_the_log(disk: Disk, tmp_path: Path) -> None:
    async with on(disk, tmp_path) as (journal, writer):
        for number in range(3, 13):
            await journal.append(writer, note(number), synced=True)
            assert disk.syncs == {"wal": number - 2}


async def test_a_written_append_is_no_flush(disk: Disk, tmp_path: Path) -> None:
    async with on(disk, tmp_path) as (journal, writer):
        for number in range(3, 13):
            await journal.append(writer, note(number), synced=False)
            await journal.drained()
        assert disk.syncs == {}


async def test_a_synced_append_flushes_once_for_all_that_was_written_before(disk: Disk, tmp_path: Path) -> None:
    async with on(disk, tmp_path) as (journal, writer):
        for number in range(3, 13):
            await journal.append(writer, note(number), synced=False)
            await journal.drained()
        await journal.append(writer, note(13), synced=True)
        assert disk.syncs == {"wal": 1}


async def test_leases_are_no_flush(disk: Disk, tmp_path: Path) -> None:
    async with on(disk, tmp_path) as (journal, _):
        (lease,) = await journal.claim(terms())
        await journal.renew([("job/a", lease.head.epoch)], 2**50)
        assert await journal.acquire("job/a", terms("other"), over="worker") is not None
        assert disk.syncs == {}


async def test_synced_appends_that_wait_together_share_one_flush(disk: Disk, tmp_path: Path) -> None:
    async with opened(tmp_path / "journal.db", vfs=disk.name) as (journal, store):
        writers = [await job(journal, f"job/{number}") for number in range(20)]
        writing = threading.Event()
        busy = store._writer.run(lambda: writing.wait(PATIENCE_S))
        appends = [
            asyncio.ensure_future(journal.append(writer, note(number), synced=True))
            for number in range(2, 7)
            for writer in writers
        ]
        await asyncio.sleep(0)  # noqa: TID251 - lets them begin, and waits for nothing
        assert store.backlog > 0
        disk.syncs.clear()
        writing.set()
        await asyncio.gather(busy, *appends)
        assert disk.syncs == {"wal": 1}
        assert {await journal.verify(writer.stream) for writer in writers} == {6}


async def test_a_full_disk_costs_nothing_that_was_recorded(disk: Disk, tmp_path: Path) -> None:
    async with on(disk, tmp_path) as (journal, writer):
        other = await job(journal, "job/b")
        await journal.append(writer, note(3), synced=False)
        await journal.drained()
        disk.failing["write"] = apsw.FullError
        with refused(Code.JOURNAL_FULL):
            await journal.append(writer, note(4), synced=True)
        with refused(Code.JOURNAL_FULL):
            await journal.commit(other.draft(note(2)), journal.writer("job/b/c", "job").draft(note(1)), synced=True)
        with refused(Code.JOURNAL_FULL):
            await journal.create("job/d", "job", note(1))
        assert await numbers(journal) == [1, 2, 3]
        assert await numbers(journal, "job/b") == [1]
        disk.failing.clear()
        with refused(Code.JOURNAL_FULL):
            await journal.append(writer, note(4), synced=False)
        await _goes_on(journal)
    async with opened(tmp_path / "journal.db") as (journal, _):
        assert await journal.verify("job/a") == 4
        assert await journal.head("job/b/c") is None
        assert await journal.integrity() == []


async def _goes_on(journal: Journal) -> None:
    """New writers append, and make the streams that could not be made."""
    again = journal.writer("job/a", "job", await head_of(journal))
    await journal.append(again, note(4), synced=True)
    assert await journal.verify("job/a") == 4
    # Numbers that were given out in vain are given to other streams now.
    await journal.create("job/e", "job", note(1), note(2))
    await journal.create("job/d", "job", note(1), note(2), note(3))
    assert [await journal.verify(f"job/{name}") for name in "de"] == [3, 2]


async def test_a_full_database_is_refused_as_well(tmp_path: Path) -> None:
    async with opened(tmp_path / "journal.db") as (journal, store):
        writer = await job(journal, "job/a")
        pages = store._db.execute("PRAGMA page_count").get
        await store._writer.run(lambda: store._db.execute(f"PRAGMA max_page_count = {pages}"))
        with refused(Code.JOURNAL_FULL):
            for number in range(2, 1_000):
                await journal.append(writer, note(number), synced=True)
        assert writer.failure is not None
        assert "disk" in writer.failure.remedy
        recorded = (await head_of(journal)).seq
        assert await journal.verify("job/a") == recorded
        await store._writer.run(lambda: store._db.execute("PRAGMA max_page_count = 1000000"))
        again = journal.writer("job/a", "job", await head_of(journal))
        await journal.append(again, note(0), synced=True)
        assert await journal.verify("job/a") == recorded + 1


async def test_a_disk_that_cannot_flush_fails_the_append(disk: Disk, tmp_path: Path) -> None:
    async with on(disk, tmp_path) as (journal, writer):
        disk.failing["sync"] = apsw.IOError
        with refused(Code.JOURNAL_IO):
            await journal.append(writer, note(3), synced=True)
        disk.failing.clear()
        assert await numbers(journal) == [1, 2]
        again = journal.writer("job/a", "job", await head_of(journal))
        await journal.append(again, note(3), synced=True)
        assert await journal.verify("job/a") == 3


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A journal with one stream, closed."""
    async with opened(tmp_path / "journal.db") as (journal, _):
        await job(journal, "job/a", due(None))
    return tmp_path / "journal.db"


async def test_another_programs_lock_is_waited_for(path: Path) -> None:
    other = apsw.Connection(str(path))
    async with opened(path) as (journal, _):
        other.execute("BEGIN IMMEDIATE")
        wake = asyncio.ensure_future(journal.wake("job/a"))
        assert (await head_of_reader(journal)) == 0
        other.execute("COMMIT")
        await wake
        assert (await head_of(journal)).wakes == 1
    other.close()


async def head_of_reader(journal: Journal) -> int:
    """Wake-ups as others see them while the write waits."""
    store = journal._store
    assert isinstance(store, SqliteStore)
    return int(store._db_read.execute("SELECT wakes FROM heads").get)


async def test_a_lock_that_is_not_given_up_is_an_error(path: Path) -> None:
    other = apsw.Connection(str(path))
    async with opened(path, busy_ms=1) as (journal, _):
        writer = journal.writer("job/a", "job", await head_of(journal))
        other.execute("BEGIN IMMEDIATE")
        with refused(Code.JOURNAL_LOCKED):
            await journal.append(writer, note(2), synced=True)
        with refused(Code.JOURNAL_LOCKED):
            await journal.claim(terms())
        assert await numbers(journal) == [1], "reading goes on"
        other.execute("ROLLBACK")
        with refused(Code.JOURNAL_LOCKED):
            await journal.append(writer, note(2), synced=True)
        await journal.append(await holder(journal), note(2), synced=True, patch=HeadPatch(release=True))
        assert await journal.verify("job/a") == 2
    other.close()


async def test_a_database_in_exclusive_use_cannot_be_opened(path: Path) -> None:
    other = apsw.Connection(str(path))
    other.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT").fetchall()
    with pytest.raises(JournalError) as refusal:
        SqliteStore(str(path), ManualClock(), busy_ms=1)
    assert refusal.value.code is Code.JOURNAL_LOCKED
    other.close()
    async with opened(path) as (journal, _):
        assert await numbers(journal) == [1]
