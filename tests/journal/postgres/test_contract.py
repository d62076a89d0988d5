from __future__ import annotations

import pytest

from remit.testing.journal import JOURNAL_CHECKS, SHARED_CHECKS, Check
from tests.journal.storages import KEYS, PostgresStorage


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("check", [*JOURNAL_CHECKS, *SHARED_CHECKS], ids=lambda check: check.__name__)
async def test_postgresql_keeps_the_contract(check: Check, storage: PostgresStorage, key: str) -> None:
    await check(PostgresStorage(storage.url, KEYS[key]))
