from __future__ import annotations

import pytest

from remit_testing.turns import TURN_CHECKS, Check
from tests.journal.storages import PostgresStorage


@pytest.mark.parametrize("check", TURN_CHECKS, ids=lambda check: check.__name__)
async def test_postgresql_keeps_the_contract(check: Check, storage: PostgresStorage) -> None:
    await check(storage)
