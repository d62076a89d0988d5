"""A journal that an older Remit left in a file."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

from remit.journal.sqlite.schema import VERSION
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
