"""The simulation's storage keeps every promise of a real one: what is found on it holds elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from remit.clock import Clock
from remit.journal.journal import Journal
from remit_testing.journal import JOURNAL_CHECKS, SHARED_CHECKS, Check
from tests.simulation.shelf import Shelf
from tests.simulation.store import ShelfStore


class ShelfStorage:
    """Processes on one shelf."""

    def __init__(self) -> None:
        self.shelf = Shelf()

    @asynccontextmanager
    async def open(self, clock: Clock) -> AsyncIterator[Journal]:
        journal = Journal(ShelfStore(self.shelf, clock), clock)
        try:
            yield journal
        finally:
            await journal.close()


@pytest.mark.parametrize("check", [*JOURNAL_CHECKS, *SHARED_CHECKS], ids=lambda check: check.__name__)
async def test_contract(check: Check) -> None:
    await check(ShelfStorage())
