from __future__ import annotations

import pytest

from remit_testing.journal import JOURNAL_CHECKS, SHARED_CHECKS, SINGLE_CHECKS, Check
from tests.journal.storages import KEYS, ShardedStorage

EACH = [check for check in (*JOURNAL_CHECKS, *SHARED_CHECKS) if check not in SINGLE_CHECKS]


@pytest.mark.parametrize("check", EACH, ids=lambda check: check.__name__)
async def test_two_shards_keep_the_contract(check: Check, urls: list[str]) -> None:
    await check(ShardedStorage(urls, KEYS["sealed"]))
