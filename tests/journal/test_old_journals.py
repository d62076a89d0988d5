"""A journal that an older Remit left in a file."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

from remit.journal.event import HeadQuery, JournalFold
from remit.journal.journal import Journal
from remit.journal.sqlite.schema import VERSION
from remit.journal.sqlite.store import SqliteStore
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import note
from tests.journal.old.story import tell

OLD = Path(__file__).parent / "old/43a7a2c.sqlite"


def version_of(path: Path) -> int:
    db = apsw.Connection(str(path))
    try:
        return int(db.execute("PRAGMA user_version").get)
    finally:
        db.close()


@pytest.mark.slow
async def test_a_file_of_an_older_remit_is_carried_on_with(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    shutil.copyfile(OLD, path)
    assert version_of(path) == 1
    await tell(str(path))
    assert version_of(path) == VERSION


async def test_looking_at_it_changes_nothing_and_the_first_write_upgrades_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    shutil.copyfile(OLD, path)
    journal, before = Journal(SqliteStore(str(path), ManualClock()), ManualClock()), path.read_bytes()
    heads = await journal.heads(HeadQuery())
    assert heads
    assert await journal.read(heads[0].stream)
    await journal.folds.keep_if_writable([JournalFold("audit", 0, b"{}")], 0)
    assert (path.read_bytes() == before, version_of(path)) == (True, 1)
    assert [place.name for place in tmp_path.iterdir()] == ["journal.db"]
    await journal.post("job/new", "job", note(1))
    assert version_of(path) == VERSION
    assert [head.stream for head in await journal.heads(HeadQuery())] == ["job/new", *(head.stream for head in heads)]
    await journal.close()


async def test_what_a_process_that_was_killed_after_its_upgrade_left_is_written_to(tmp_path: Path) -> None:
    first, place = tmp_path / "first.db", tmp_path / "journal.db"
    shutil.copyfile(OLD, first)
    journal = Journal(SqliteStore(str(first), ManualClock()), ManualClock())
    await journal.post("job/new", "job", note(1))
    for ending in ("", "-wal", "-shm"):  # the header is still of the older schema
        shutil.copyfile(f"{first}{ending}", f"{place}{ending}")
    await journal.close()
    journal = Journal(SqliteStore(str(place), ManualClock()), ManualClock())
    assert await journal.head("job/new") is not None
    await journal.post("job/newer", "job", note(1))
    assert await journal.head("job/newer") is not None
    await journal.close()
