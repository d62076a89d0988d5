"""A journal's file that cannot be written to is read as it is, and nothing is made or changed beside it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import apsw
import pytest

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import JournalError, UsageError
from remit.journal.event import HeadQuery
from remit.journal.journal import Journal
from remit.journal.sqlite.connection import copy_file
from remit.journal.sqlite.schema import MIGRATIONS, VERSION
from remit.journal.sqlite.store import SqliteStore
from remit_testing.journal.storage import job, note
from tests.patience import PATIENCE_S

NOBODY = 65_534
Lock = Callable[[Path], None]


@contextmanager
def unprivileged() -> Iterator[None]:
    """As a user whom permissions hold."""
    privileged = os.geteuid() == 0
    if privileged:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if privileged:
            os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody can reach."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "folder"
        place.parent.chmod(0o755)
        place.mkdir(mode=0o755)
        yield place
        place.chmod(0o755)


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Journal]:
    journal = Journal(SqliteStore(str(path), SystemClock()))
    try:
        yield journal
    finally:
        await journal.close()


async def made(path: Path, *streams: str) -> None:
    async with opened(path) as journal:
        for stream in streams:
            await job(journal, stream)
    for beside in path.parent.iterdir():
        beside.chmod(0o644)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def shown(journal: Journal) -> set[str]:
    return {head.stream for head in await journal.heads(HeadQuery())}


def file(path: Path) -> None:
    path.chmod(0o444)


def both(path: Path) -> None:
    file(path)
    path.parent.chmod(0o555)


def with_its_log(path: Path) -> None:
    """As it lies after a crash: the newest is in the log, and the index of the log was not kept."""
    _crashed(path, "-wal")
    both(path)


def with_its_log_and_index(path: Path) -> None:
    _crashed(path, "-wal", "-shm")
    both(path)


def _crashed(path: Path, *endings: str) -> None:
    db = apsw.Connection(str(path))
    db.execute("UPDATE heads SET title = 'from the log'")
    kept = {ending: Path(f"{path}{ending}").read_bytes() for ending in endings}
    before = path.read_bytes()
    db.close()
    path.write_bytes(before)
    for ending, data in kept.items():
        Path(f"{path}{ending}").write_bytes(data)
        Path(f"{path}{ending}").chmod(0o644)


@pytest.mark.whole
@pytest.mark.parametrize("lock", [file, both, with_its_log, with_its_log_and_index])
async def test_it_is_read_with_what_its_log_says_and_nothing_is_written(folder: Path, lock: Lock) -> None:
    path = folder / "j.db"
    await made(path, "job/a", "job/b")
    lock(path)
    before = files(folder)
    with unprivileged():
        async with opened(path) as journal:
            titles = {head.title for head in await journal.heads(HeadQuery())}
            assert await journal.verify("job/a") > 0
            assert await journal.integrity() == []
            for write in (journal.post("job/a", "job", note(1)), journal.prune(), journal.compact()):
                with pytest.raises(JournalError) as error:
                    await write
                assert (error.value.code, bool(error.value.remedy)) == (Code.JOURNAL_READ_ONLY, True)
    assert titles == ({"from the log"} if lock in {with_its_log, with_its_log_and_index} else {""})
    assert files(folder) == before


async def test_an_older_journal_is_shown_and_stays_of_its_version(folder: Path) -> None:
    path = folder / "j.db"
    db = apsw.Connection(str(path))
    for script in MIGRATIONS[: VERSION - 2]:
        db.execute(script)
    db.execute(f"PRAGMA application_id = {0x524D4954}")
    db.execute(f"PRAGMA user_version = {VERSION - 2}")
    db.execute("INSERT INTO heads (stream, kind, seq, hash, created_at, updated_at) VALUES ('job/old','job',0,x'',1,1)")
    db.close()
    both(path)
    before = files(folder)
    with unprivileged():
        async with opened(path) as journal:
            assert await shown(journal) == {"job/old"}
    assert files(folder) == before


async def test_what_others_write_meanwhile_is_shown_and_followed(folder: Path) -> None:
    path = folder / "j.db"
    await made(path, "job/a")
    os.link(path, folder.parent / "alias.db")
    path = folder.parent / "alias.db"  # another name, as of a folder that is mounted read-only: no log beside it
    path.chmod(0o444)
    with unprivileged():
        journal = Journal(SqliteStore(str(path), SystemClock()))
        assert await shown(journal) == {"job/a"}
    mark = await journal.changed(0)
    path.chmod(0o644)
    await made(folder / "j.db", "job/b")
    async with asyncio.timeout(PATIENCE_S):
        assert await journal.changed(mark) > mark
    assert await shown(journal) == {"job/a", "job/b"}
    await journal.close()


async def test_one_in_use_is_read_through_its_shared_memory(folder: Path) -> None:
    path = folder / "j.db"
    path.touch()
    path.chmod(0o644)
    async with opened(path) as writer:
        await job(writer, "job/a")
        both(path)
        with unprivileged():
            reader = Journal(SqliteStore(str(path), SystemClock()))
            assert await shown(reader) == {"job/a"}
        await job(writer, "job/b")
        assert await shown(reader) == {"job/a", "job/b"}
        await reader.close()


def test_a_copy_that_cannot_be_made_blames_its_own_place(tmp_path: Path) -> None:
    source = apsw.Connection(":memory:")
    with pytest.raises(UsageError, match="nowhere"):
        copy_file(source, str(tmp_path / "nowhere/b.db"), 0)
