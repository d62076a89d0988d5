"""Reading across streams while others write slowly."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg

from remit.journal.event import Scanned
from remit.journal.journal import Journal
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import job, note
from tests.journal.postgres.server import PostgresServer
from tests.journal.storages import PostgresStorage

INSERT = """
INSERT INTO {}.events (stream, seq, kind, at, data, hash)
SELECT id, 2, 'time_recorded', 0, '{{}}', '' FROM {}.heads WHERE stream = 'job/slow'
"""
ADVANCE = "UPDATE {}.heads SET seq = 2 WHERE stream = 'job/slow'"


async def slow_writer(postgres: PostgresServer, schema: str) -> tuple[Any, Any]:
    """A transaction that was given a position and does not end."""
    connection = await asyncpg.connect(postgres.url)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(INSERT.format(schema, schema))
    await connection.execute(ADVANCE.format(schema))
    return connection, transaction


def seen(page: Scanned) -> list[tuple[str, int]]:
    return [(placed.event.stream, placed.event.seq) for placed in page.events]


async def test_a_slow_transaction_is_waited_for_and_not_skipped(
    storage: PostgresStorage, postgres: PostgresServer, schema: str
) -> None:
    async with storage.open(ManualClock()) as journal:
        await job(journal, "job/slow")
        begin = await journal.scan()
        connection, transaction = await slow_writer(postgres, schema)
        await job(journal, "job/fast")
        page = await journal.scan(begin.position)
        assert (seen(page), page.position, page.more) == ([], begin.position, True)
        await transaction.commit()
        page = await journal.scan(page.position)
        assert (seen(page), page.more) == ([("job/slow", 2), ("job/fast", 1)], False)
        await connection.close()


async def test_a_transaction_that_is_rolled_back_holds_nobody_up_for_good(
    storage: PostgresStorage, postgres: PostgresServer, schema: str
) -> None:
    async with storage.open(ManualClock()) as journal:
        await job(journal, "job/slow")
        connection, transaction = await slow_writer(postgres, schema)
        await job(journal, "job/fast")
        following = asyncio.create_task(second_of(journal))
        assert [placed.event.stream for placed in (await journal.scan(limit=1)).events] == []
        await transaction.rollback()
        assert await following == "job/fast"
        await connection.close()


async def second_of(journal: Journal) -> str:
    seen = 0
    async for placed in journal.follow_all():
        seen += 1
        if seen == 2:
            return placed.event.stream
    raise AssertionError("the journal was closed")


async def test_whoever_writes_elsewhere_on_the_server_holds_nobody_up(
    storage: PostgresStorage, postgres: PostgresServer, schema: str
) -> None:
    async with storage.open(ManualClock()) as journal:
        await job(journal, "job/a")
        connection = await asyncpg.connect(postgres.url)
        async with connection.transaction():
            await connection.execute(f"CREATE TABLE other_{schema} (x int); INSERT INTO other_{schema} VALUES (1)")
            await connection.execute(f"UPDATE {schema}.heads SET title = 'x'")
            assert seen(await journal.scan()) == [("job/a", 1)]
        await connection.close()


async def test_everything_is_read_while_one_after_the_other_writes(storage: PostgresStorage) -> None:
    """Somebody writes at every moment; those that were seen end all the same."""
    async with storage.open(ManualClock()) as journal, storage.open(ManualClock()) as other:
        going = True

        async def write(journal: Journal, name: str) -> None:
            writer = await job(journal, name)
            number = 1
            while going:
                number += 1
                await journal.append(writer, note(number), synced=False)
                await journal.drained()

        writing = [asyncio.create_task(write(one, name)) for one, name in ((journal, "job/a"), (other, "job/b"))]
        found = 0
        async for _ in journal.follow_all():
            found += 1
            if found == 200:
                break
        going = False
        await asyncio.gather(*writing)
