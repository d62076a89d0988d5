"""Tickets on PostgreSQL."""

import pytest

from remit_testing.tickets import TICKET_CHECKS, Check
from tests.journal.storages import KEYS, PostgresStorage


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("check", TICKET_CHECKS, ids=lambda check: check.__name__)
async def test_tickets_in_postgresql_keep_the_contract(check: Check, storage: PostgresStorage, key: str) -> None:
    await check(PostgresStorage(storage.url, KEYS[key]))
