"""A journal that an older Remit left on a server."""

from __future__ import annotations

from pathlib import Path

import asyncpg

from remit.journal.postgres.schema import VERSION
from tests.journal.old.story import tell
from tests.journal.postgres.server import PostgresServer

OLD = Path(__file__).parents[1] / "old/43a7a2c.sql"


async def test_a_schema_of_an_older_remit_is_carried_on_with(postgres: PostgresServer) -> None:
    connection = await asyncpg.connect(postgres.url)
    await connection.execute("CREATE DATABASE old")
    await connection.close()
    url = postgres.url.replace("/postgres?", "/old?")
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(OLD.read_text(encoding="utf-8"))
        assert await connection.fetchval("SELECT version FROM remit.remit_version") == 1
        await tell(f"{url}&schema=remit")
        assert await connection.fetchval("SELECT version FROM remit.remit_version") == VERSION
    finally:
        await connection.close()
