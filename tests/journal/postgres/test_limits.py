"""Limits of rules on PostgreSQL, taken by two processes at once."""

import asyncio

import asyncpg
import pytest

from remit.clock import SystemClock
from remit.gateway.takings import LimitUnprovenError, Takings
from tests.gateway.test_takings import HARM, part
from tests.journal.postgres.server import PostgresServer
from tests.journal.storages import PostgresStorage


async def test_no_two_processes_take_the_last_one(storage: PostgresStorage) -> None:
    clock = SystemClock()
    async with storage.open(clock) as one, storage.open(clock) as other:
        takings = [Takings(one), Takings(other)]
        took = await asyncio.gather(*(takings[i % 2].take([part(f"call-{i}")]) for i in range(10)))
        assert sum(took) == 3


@pytest.mark.parametrize("harm", HARM)
async def test_what_was_taken_and_is_gone_gives_nothing_back(
    storage: PostgresStorage, postgres: PostgresServer, schema: str, harm: str
) -> None:
    code, statements = HARM[harm]
    async with storage.open(SystemClock()) as journal:
        takings = Takings(journal)
        assert [await takings.take([part(str(i))]) for i in range(2)] == [True] * 2
        connection = await asyncpg.connect(postgres.url, server_settings={"search_path": schema})
        await connection.execute(statements)
        await connection.close()
        with pytest.raises(LimitUnprovenError) as caught:
            await takings.take([part("2")])
        assert caught.value.code is code
