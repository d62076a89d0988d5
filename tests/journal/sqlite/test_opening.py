"""How a journal's file is made, checked and opened."""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from remit.canonical import sha256
from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import JournalError
from remit.journal.event import Blob
from remit.journal.journal import Journal
from remit.journal.sqlite.connection import EMPTY
from remit.journal.sqlite.schema import APPLICATION_ID, VERSION
from remit.journal.sqlite.store import SqliteStore
from remit_testing.journal.storage import job, note
from tests.patience import PATIENCE_S

NOBODY = 65_534


async def use(path: Path, stream: str = "job/a") -> None:
    """Open a journal, record something, close it."""
    journal = Journal(SqliteStore(str(path), SystemClock()))
    try:
        await journal.post(stream, "job", note(1))
        assert await journal.verify(stream) > 0
    finally:
        await journal.close()


async def refusal(path: Path) -> Code:
    """What opening and writing is refused with."""
    with pytest.raises(JournalError) as error:
        await use(path)
    assert error.value.remedy
    assert str(path) in str(error.value) or "Remit" in str(error.value)
    return error.value.code


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def pragma(path: Path, name: str) -> int:
    db = apsw.Connection(str(path))
    try:
        return int(db.execute(f"PRAGMA {name}").get)
    finally:
        db.close()


def made(path: Path, script: str) -> bytes:
    """A database of somebody else; its bytes."""
    db = apsw.Connection(str(path))
    db.execute(script).fetchall()
    db.close()
    return content(path)


def names(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.iterdir())


def content(path: Path) -> bytes:
    return path.read_bytes()


def damage(path: Path) -> None:
    """Overwrite everything but the first page."""
    before = path.read_bytes()
    path.write_bytes(before[:4_096] + b"\xa5" * (len(before) - 4_096))


async def test_a_fresh_journal_is_marked_as_one(tmp_path: Path) -> None:
    await use(tmp_path / "journal.db")
    assert pragma(tmp_path / "journal.db", "application_id") == APPLICATION_ID
    assert pragma(tmp_path / "journal.db", "user_version") == VERSION


async def test_a_journal_can_be_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    await use(path)
    before = content(path)
    store = SqliteStore(str(path), SystemClock())
    await store.close()
    assert content(path) == before


async def test_an_empty_file_becomes_a_journal(tmp_path: Path) -> None:
    (tmp_path / "journal.db").touch()
    await use(tmp_path / "journal.db")


def test_several_processes_may_make_it_at_once(tmp_path: Path) -> None:
    path, start, made_by = tmp_path / "new" / "journal.db", threading.Barrier(6), list[int]()

    def opened(number: int) -> None:
        start.wait(PATIENCE_S)
        asyncio.run(use(path, f"job/{number}"))
        made_by.append(number)

    threads = [threading.Thread(target=opened, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made_by) == list(range(6))


async def test_a_newer_journal_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    before = made(
        path, f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION + 1}; CREATE TABLE t(a)"
    )
    assert await refusal(path) is Code.JOURNAL_NEWER
    assert content(path) == before
    assert names(tmp_path) == ["journal.db"]


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE t(a)",
        "PRAGMA user_version = 1",
        f"PRAGMA user_version = {VERSION + 1}; CREATE TABLE t(a)",
        "PRAGMA application_id = 7; CREATE TABLE heads(a)",
        "PRAGMA application_id = 7",
    ],
)
async def test_another_programs_database_is_left_alone(script: str, tmp_path: Path) -> None:
    before = made(tmp_path / "journal.db", script)
    assert await refusal(tmp_path / "journal.db") is Code.JOURNAL_CORRUPT
    assert content(tmp_path / "journal.db") == before
    assert names(tmp_path) == ["journal.db"]


@pytest.mark.parametrize("before", [b"hello", b"not a database at all\n" * 500, b"SQLite format 3\0" + b"\xff" * 5_000])
async def test_a_file_that_is_no_database_is_left_alone(before: bytes, tmp_path: Path) -> None:
    (tmp_path / "journal.db").write_bytes(before)
    assert await refusal(tmp_path / "journal.db") is Code.JOURNAL_CORRUPT
    assert content(tmp_path / "journal.db") == before


async def test_a_damaged_journal_says_so(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = Journal(SqliteStore(str(path), SystemClock()))
    for number in range(200):
        await job(journal, f"job/{number:0300}")
    await journal.close()
    damage(path)
    journal = Journal(SqliteStore(str(path), SystemClock()))
    with pytest.raises(JournalError) as error:
        await journal.read(f"job/{7:0300}")
    assert error.value.code is Code.JOURNAL_CORRUPT
    assert await journal.integrity() != []
    await journal.close()


@pytest.fixture
def open_umask() -> Iterator[None]:
    """What is made is readable for everybody, unless its maker sees to it that it is not."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
async def test_other_users_cannot_read_what_is_made(tmp_path: Path) -> None:
    path = tmp_path / "above" / ".remit" / "journal.db"
    journal = Journal(SqliteStore(str(path), SystemClock()))
    await job(journal, "job/a")
    files = names(path.parent)
    assert files == [".gitignore", "journal.db", "journal.db-shm", "journal.db-wal"]
    assert {mode(path.parent / name) for name in files} == {0o600}
    assert (path.parent / ".gitignore").read_text() == "*\n!*.schema.json\n"
    assert [mode(folder) for folder in (path.parent, path.parent.parent)] == [0o700, 0o700]
    await journal.close()


@pytest.mark.usefixtures("open_umask")
async def test_what_exists_keeps_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o770)
    (folder / "journal.db").touch(mode=0o660)
    await use(folder / "journal.db")
    assert (mode(folder), mode(folder / "journal.db")) == (0o770, 0o660)


async def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal.db").mkdir()
    assert await refusal(tmp_path / "journal.db") is Code.JOURNAL_READ_ONLY


async def test_a_file_in_its_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").touch()
    assert await refusal(tmp_path / "folder" / "journal.db") is Code.JOURNAL_READ_ONLY
    assert await refusal(tmp_path / "folder" / "below" / "journal.db") is Code.JOURNAL_READ_ONLY


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
def public() -> Iterator[Path]:
    """A folder that everybody can reach."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def unreadable_file(path: Path) -> None:
    path.chmod(0o000)


def unreachable_folder(path: Path) -> None:
    path.parent.chmod(0o000)


def missing_in_read_only_folder(path: Path) -> None:
    path.unlink()
    path.parent.chmod(0o555)


@pytest.mark.parametrize("lock", [unreadable_file, unreachable_folder, missing_in_read_only_folder])
async def test_what_cannot_be_read_is_refused(lock: Callable[[Path], None], public: Path) -> None:
    path = public / "folder" / "journal.db"
    path.parent.mkdir(mode=0o777)
    await use(path)
    lock(path)
    with unprivileged(), pytest.raises(JournalError) as error:
        SqliteStore(str(path), SystemClock())
    path.parent.chmod(0o777)
    assert error.value.code is Code.JOURNAL_READ_ONLY


async def test_nothing_can_be_made_below_a_folder_that_is_read_only(public: Path) -> None:
    (public / "folder").mkdir(mode=0o555)
    with unprivileged():
        assert await refusal(public / "folder" / "below" / "journal.db") is Code.JOURNAL_READ_ONLY


async def test_what_stands_in_for_a_journal_that_is_not_there_takes_nothing() -> None:
    journal = Journal(SqliteStore(EMPTY, SystemClock()))
    try:
        assert await journal.head("job/a") is None
        for write in (journal.post("job/a", "job", note(1)), journal.put_blobs([Blob(sha256(b"x"), b"x")])):
            with pytest.raises(JournalError) as error:
                await write
            assert error.value.code is Code.JOURNAL_MISSING
    finally:
        await journal.close()
