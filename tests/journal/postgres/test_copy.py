from __future__ import annotations

from pathlib import Path

import pytest

from remit.codes import Code
from remit.journal.copy import back_up, copy, move
from remit.journal.postgres.server import Address, in_use
from remit_testing.journal.storage import Storage, holder, job, numbers, opened, refused
from tests.journal.storages import PostgresStorage, SqliteStorage
from tests.journal.test_copy import contents, fill


@pytest.mark.parametrize("back", [False, True])
async def test_a_journal_moves_between_a_file_and_a_server(
    storage: PostgresStorage, tmp_path: Path, back: bool
) -> None:
    file = SqliteStorage(tmp_path / "journal.db")
    source, target = (storage, file) if back else (file, storage)
    await moved(source, target)


@pytest.mark.parametrize("back", [False, True])
async def test_a_journal_moves_between_a_file_and_a_server_and_is_retired_where_it_was(
    storage: PostgresStorage, tmp_path: Path, back: bool
) -> None:
    file = SqliteStorage(tmp_path / "journal.db")
    source, target = (storage, file) if back else (file, storage)
    async with opened(source) as original, opened(target) as there:
        await fill(original)
        assert (await back_up(original, there)).added > 0
        with refused(Code.JOURNAL_BACKUP):
            await job(there, "job/new")
        assert (await move(original, there)).added == 0
        with refused(Code.JOURNAL_MOVED):
            await job(original, "job/new")
        await job(there, "job/new")
        await there.verify("journal")
        await move(there, original)
        assert await numbers(original, "job/new") == [1]
        await holder(original, "job/new")


async def test_a_server_s_journal_that_a_process_has_open_is_known_to_be(storage: PostgresStorage) -> None:
    address = Address.parse(storage.url)
    assert not await in_use(address)
    async with opened(storage) as journal:
        await job(journal, "job/a")
        assert await in_use(address)
    assert not await in_use(address)


async def moved(source: Storage, target: Storage) -> None:
    async with opened(source) as original, opened(target) as copied:
        await fill(original, streams=5)
        assert (await copy(original, copied)).added == 16
        assert await contents(copied) == await contents(original)
        assert (await copy(original, copied)).added == 0
