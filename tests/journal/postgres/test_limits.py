"""Limits of rules on PostgreSQL, taken by two processes at once."""

import asyncio

from remit.clock import SystemClock
from remit.gateway.takings import Takings
from tests.gateway.test_takings import part
from tests.journal.storages import PostgresStorage


async def test_no_two_processes_take_the_last_one(storage: PostgresStorage) -> None:
    clock = SystemClock()
    async with storage.open(clock) as one, storage.open(clock) as other:
        takings = [Takings(one), Takings(other)]
        took = await asyncio.gather(*(takings[i % 2].take([part(f"call-{i}")]) for i in range(10)))
        assert sum(took) == 3
