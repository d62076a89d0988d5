"""The contract of engines (remit_testing.engines), on each engine and backend."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from remit_testing.engines import ENGINE_CHECKS, Fleet
from tests.journal.storages import PostgresStorage

pytestmark = pytest.mark.slow
ROUNDS = int(os.environ.get("REMIT_TEST_ROUNDS", "1"))
each_check = pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)


@each_check
async def test_local(check: Any, tmp_path: Path) -> None:
    await check(Fleet(tmp_path, {"journal.url": str(tmp_path / "journal.db")}, ROUNDS))


@each_check
async def test_postgresql(check: Any, tmp_path: Path, storage: PostgresStorage) -> None:
    await check(Fleet(tmp_path, {"journal.url": storage.url}, ROUNDS))


@pytest.mark.skipif(importlib.util.find_spec("dbos") is None, reason="needs the extra dbos: make setup")
@each_check
async def test_dbos(check: Any, tmp_path: Path, storage: PostgresStorage) -> None:
    await check(
        Fleet(tmp_path, {"journal.url": storage.url, "jobs.engine": "dbos"}, ROUNDS, ("remit.parts.dbos.engine",))
    )
