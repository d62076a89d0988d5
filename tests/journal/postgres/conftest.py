"""A line to the PostgreSQL server that can be cut, and a journal behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from remit.clock import SystemClock
from remit.journal.journal import Journal
from remit.journal.postgres.store import PostgresStore
from tests.journal.postgres.relay import Relay, relay
from tests.journal.postgres.server import PostgresServer


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A server takes a second to make, so whatever needs one is slow."""
    for item in items:
        if {"postgres", "mortal", "forgetful"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
async def line(postgres: PostgresServer) -> AsyncIterator[Relay]:
    async with relay(postgres.folder) as one:
        yield one


@pytest.fixture
async def journal(line: Relay, schema: str) -> AsyncIterator[Journal]:
    """One whose connections all go through the line."""
    store = PostgresStore(f"postgresql://remit@/postgres?host={line.folder}&schema={schema}", SystemClock())
    one = Journal(store)
    yield one
    await one.close()
