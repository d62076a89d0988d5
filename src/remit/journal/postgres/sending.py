"""A schema's tables sent to another server as they are: row by row, with their numbers, in one transaction there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from remit.errors import JournalError, UsageError
from remit.journal.postgres.server import connect, translated

if TYPE_CHECKING:
    import asyncpg

    from remit.journal.postgres.server import Address

_TABLES: Final = ("heads", "events", "blobs", "folds")
_NUMBERS: Final = (("heads", "id"), ("events", "position"))
_COLUMNS: Final = """
SELECT array_agg(attname ORDER BY attnum) FROM pg_attribute
WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped
"""
_PIECES: Final = 16
"""Pieces of a table that wait for the target at most."""
_LONG_S: Final = 24 * 3_600.0


async def send(source: Address, target: Address) -> None:
    """Fill the tables of the target. Raises UsageError unless they are empty, JournalError."""
    begin = end = None
    try:
        begin, end = await connect(source), await connect(target)
        async with begin.transaction(isolation="repeatable_read", readonly=True), end.transaction():
            await end.execute("LOCK TABLE heads IN EXCLUSIVE MODE")
            if await end.fetchval("SELECT EXISTS (SELECT FROM heads)"):
                raise UsageError(f"{target} has records already", remedy="Name an empty schema: ?schema=NAME.")
            for table in _TABLES:
                await _table(begin, end, table)
            for table, column in _NUMBERS:
                last, used = await begin.fetchrow(f"SELECT last_value, is_called FROM {table}_{column}_seq")  # noqa: S608 - ours
                await end.execute("SELECT setval($1::regclass, $2, $3)", f"{table}_{column}_seq", last, used)
    except (JournalError, UsageError):
        raise
    except Exception as error:
        raise translated(error, f"{source} to {target}") from error
    finally:
        for connection in (begin, end):
            if connection is not None:
                connection.terminate()


async def _table(begin: asyncpg.Connection, end: asyncpg.Connection, table: str) -> None:
    """Send one table, piece by piece."""
    await end.execute(f"DELETE FROM {table}")  # noqa: S608 - ours; folds may hold what the target thought it was
    columns = await begin.fetchval(_COLUMNS, table)
    pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_PIECES)

    async def read() -> None:
        sql = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608 - names of our columns
        await begin.copy_from_query(sql, output=pieces.put, format="binary", timeout=_LONG_S)
        await pieces.put(None)

    async def taken() -> AsyncIterator[bytes]:
        while (piece := await pieces.get()) is not None:
            yield piece

    async with asyncio.TaskGroup() as group:
        group.create_task(read())
        group.create_task(end.copy_to_table(table, source=taken(), columns=columns, format="binary", timeout=_LONG_S))
