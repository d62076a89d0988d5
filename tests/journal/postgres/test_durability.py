"""What is synced is flushed, whatever the server is told meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from remit.journal.postgres.server import Address, connect
from tests.journal.postgres.server import PostgresServer

Settings = dict[str, str]


@pytest.fixture
async def admin(postgres: PostgresServer) -> AsyncIterator[asyncpg.Connection]:
    one = await asyncpg.connect(postgres.url)
    yield one
    await one.execute("ALTER SYSTEM RESET ALL")
    await one.execute("SELECT pg_reload_conf()")
    await one.close()


async def tell(admin: asyncpg.Connection, session: asyncpg.Connection, settings: Settings) -> None:
    """Set something for the whole server, and return once a session has taken notice of the last one."""
    for name, value in settings.items():
        await admin.execute(f"ALTER SYSTEM SET {name} = {value}")
    await admin.execute("SELECT pg_reload_conf()")
    while await session.fetchval(f"SHOW {name}") != value:
        pass


@pytest.mark.parametrize(("before", "after"), [("on", "on"), ("off", "on"), ("local", "local")])
async def test_a_server_told_not_to_flush_flushes_for_us(
    postgres: PostgresServer, admin: asyncpg.Connection, before: str, after: str
) -> None:
    await tell(admin, admin, {"synchronous_commit": before})
    session = await connect(Address.parse(postgres.url))
    await tell(admin, session, {"synchronous_commit": "off", "cursor_tuple_fraction": "0.2"})
    assert await session.fetchval("SHOW synchronous_commit") == after
    await session.close()
