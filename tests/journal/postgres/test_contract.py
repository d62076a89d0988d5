from __future__ import annotations

import os

import pytest

from remit_testing.journal import JOURNAL_CHECKS, SHARED_CHECKS, Check
from tests.journal.storages import KEYS, PostgresStorage

KEPT = KEYS if int(os.environ.get("REMIT_TEST_ROUNDS", "1")) > 1 else ("plain",)
"""With a key two shards keep it, each of which is such a store."""


@pytest.mark.parametrize("key", KEPT)
@pytest.mark.parametrize("check", [*JOURNAL_CHECKS, *SHARED_CHECKS], ids=lambda check: check.__name__)
async def test_postgresql_keeps_the_contract(check: Check, storage: PostgresStorage, key: str) -> None:
    await check(PostgresStorage(storage.url, KEYS[key]))
