from __future__ import annotations

from pathlib import Path

import pytest

from remit_testing.journal import JOURNAL_CHECKS, SHARED_CHECKS, Check
from tests.journal.storages import KEYS, SqliteStorage


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("check", [*JOURNAL_CHECKS, *SHARED_CHECKS], ids=lambda check: check.__name__)
async def test_a_file_keeps_the_contract(check: Check, tmp_path: Path, key: str) -> None:
    await check(SqliteStorage(tmp_path / "journal.db", KEYS[key]))


@pytest.mark.whole
@pytest.mark.parametrize("check", JOURNAL_CHECKS, ids=lambda check: check.__name__)
async def test_memory_keeps_the_contract(check: Check) -> None:
    await check(SqliteStorage())
