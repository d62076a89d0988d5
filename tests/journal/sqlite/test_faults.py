"""What the user is told when the disk fails, and that nothing acknowledged is lost by it."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import TypeVar

import apsw
import pytest

from remit.codes import Code
from remit.errors import JournalError, RemitError
from remit.journal.event import Event
from remit.journal.journal import Journal
from remit.journal.sqlite.store import SqliteStore
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import head_of, job, note, numbers
from tests.journal.sqlite.disk import Disk, inserted

T = TypeVar("T")
FAULTS = [
    ("write", apsw.FullError, Code.JOURNAL_FULL, "Free space"),
    ("write", apsw.IOError, Code.JOURNAL_IO, "Check the disk"),
    ("write", apsw.ReadOnlyError, Code.JOURNAL_READ_ONLY, "writable"),
    ("write", apsw.CorruptError, Code.JOURNAL_CORRUPT, "backup"),
    ("sync", apsw.IOError, Code.JOURNAL_IO, "Check the disk"),
    ("sync", apsw.FullError, Code.JOURNAL_FULL, "Free space"),
]
IDS = [f"{operation}-{error.__name__}" for operation, error, _, _ in FAULTS]


@pytest.fixture
def disk() -> Iterator[Disk]:
    with inserted() as disk:
        yield disk


def opened(path: Path, disk: Disk | None = None) -> Journal:
    clock = ManualClock()
    return Journal(SqliteStore(str(path), clock, vfs=disk.name if disk else "", busy_ms=1), clock)


@pytest.mark.parametrize(("operation", "error", "code", "remedy"), FAULTS, ids=IDS)
async def test_a_refused_append_says_why_and_what_to_do_and_costs_nothing(
    operation: str, error: type[apsw.Error], code: Code, remedy: str, disk: Disk, tmp_path: Path
) -> None:
    path = tmp_path / "journal.db"
    journal = opened(path, disk)
    writer = await job(journal, "job/a")
    await journal.append(writer, note(2), synced=True)
    await journal.append(writer, note(3), synced=False)
    await journal.drained()
    disk.failing[operation] = error
    with pytest.raises(JournalError) as refusal:
        await journal.append(writer, note(4), synced=True)
    assert refusal.value.code is code
    assert remedy in refusal.value.remedy
    assert str(path) in str(refusal.value)
    with pytest.raises(JournalError) as refusal:
        await journal.create("job/b", "job", note(1))
    assert refusal.value.code is code
    disk.failing.clear()
    assert await numbers(journal) == [1, 2, 3], "nothing that was written is lost, nothing of the rest is there"
    again = journal.writer("job/a", "job", await head_of(journal))
    await journal.append(again, note(4), synced=True)
    await journal.close()
    journal = opened(path)
    assert await journal.verify("job/a") == 4
    assert await journal.head("job/b") is None
    assert await journal.integrity() == []
    await journal.close()


@pytest.mark.parametrize("operation", ["read", "write", "sync"])
async def test_a_disk_that_fails_at_the_end_does_not_keep_the_journal_from_closing(
    operation: str, disk: Disk, tmp_path: Path
) -> None:
    journal = opened(tmp_path / "journal.db", disk)
    writer = await job(journal, "job/a")
    await journal.append(writer, note(2), synced=True)
    disk.failing[operation] = apsw.IOError
    # SQLite itself closes in silence; it is this disk, written in Python, whose errors come through.
    with contextlib.suppress(apsw.IOError):
        await journal.close()
    disk.failing.clear()
    journal = opened(tmp_path / "journal.db")
    assert await journal.verify("job/a") == 2
    await journal.close()


async def test_a_disk_that_cannot_be_read_is_no_empty_journal(disk: Disk, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = opened(path, disk)
    await job(journal, "job/a")
    await journal.close()
    disk.failing["read"] = apsw.IOError
    with pytest.raises(JournalError) as refusal:
        opened(path, disk)
    assert refusal.value.code is Code.JOURNAL_IO
    disk.failing.clear()
    journal = opened(path, disk)
    assert await journal.verify("job/a") == 1
    await journal.close()


@pytest.mark.parametrize("seed", range(8))
async def test_a_damaged_file_is_named_as_such_and_no_other_answer_is_given(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = opened(path)
    for name in ("job/a", "job/b"):
        writer = await job(journal, name)
        await journal.append(writer, *map(note, range(2, 200)), synced=True)
    whole = {name: await journal.read(name) for name in ("job/a", "job/b")}
    await journal.close()
    content, chance = bytearray(path.read_bytes()), random.Random(seed)
    page = chance.randrange(1, len(content) // 4096) * 4096
    content[page : page + 4096] = chance.randbytes(4096)
    path.write_bytes(content)
    damaged, error = await outcome(reopened(path))
    if damaged is None:
        assert error is not None
        assert error.code is Code.JOURNAL_CORRUPT
        return
    try:
        errors = [await told_of(damaged, name, events) for name, events in whole.items()]
        found, error = await outcome(damaged.integrity())
        assert found or error, "SQLite's own check finds it whatever was hit"
    finally:
        await damaged.close()
    codes = {error.code for error in [*errors, error] if error is not None}
    assert codes <= {Code.JOURNAL_CORRUPT, Code.CHAIN_BROKEN, Code.STREAM_NOT_FOUND}


async def reopened(path: Path) -> Journal:
    return opened(path)


async def told_of(journal: Journal, name: str, events: list[Event]) -> RemitError | None:
    """What somebody is told who verifies a stream and reads it: why it cannot be read, or what was recorded."""
    count, error = await outcome(journal.verify(name))
    if error is None:
        assert count == len(events)
        assert await journal.read(name) == events, "what verifies is what was recorded"
    return error


async def outcome(of: Awaitable[T]) -> tuple[T | None, RemitError | None]:
    """Its outcome: a value, or an error that has a code."""
    try:
        return await of, None
    except RemitError as error:
        return None, error
