"""Limits of calls, on a file that several processes share."""

from __future__ import annotations

from pathlib import Path

import pytest

from remit_testing.turns import TURN_CHECKS, Check
from tests.journal.storages import SqliteStorage


@pytest.mark.parametrize("check", TURN_CHECKS, ids=lambda check: check.__name__)
async def test_a_file_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    await check(SqliteStorage(tmp_path / "journal.db"))
