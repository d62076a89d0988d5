"""Tickets on SQLite."""

from pathlib import Path

import pytest

from remit.testing.tickets import TICKET_CHECKS, Check
from tests.journal.storages import SqliteStorage


@pytest.mark.parametrize("check", TICKET_CHECKS, ids=lambda check: check.__name__)
async def test_tickets_in_memory_keep_the_contract(check: Check) -> None:
    await check(SqliteStorage())


@pytest.mark.parametrize("check", TICKET_CHECKS, ids=lambda check: check.__name__)
async def test_tickets_in_a_file_keep_the_contract(check: Check, tmp_path: Path) -> None:
    await check(SqliteStorage(tmp_path / "journal.db"))
