from __future__ import annotations

from pathlib import Path

import pytest

from remit.journal.copy import copy
from remit.testing.journal.storage import Storage, opened
from tests.journal.storages import PostgresStorage, SqliteStorage
from tests.journal.test_copy import contents, fill


@pytest.mark.parametrize("back", [False, True])
async def test_a_journal_moves_between_a_file_and_a_server(
    storage: PostgresStorage, tmp_path: Path, back: bool
) -> None:
    file = SqliteStorage(tmp_path / "journal.db")
    source, target = (storage, file) if back else (file, storage)
    await moved(source, target)


async def moved(source: Storage, target: Storage) -> None:
    async with opened(source) as original, opened(target) as copied:
        await fill(original, streams=5)
        assert (await copy(original, copied)).added == 16
        assert await contents(copied) == await contents(original)
        assert (await copy(original, copied)).added == 0
