"""A PostgreSQL server for the tests of this folder, and storage in it that is nobody else's."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from remit.clock import SystemClock
from remit.journal.journal import Journal
from remit.journal.postgres.store import PostgresStore
from tests.journal.postgres.relay import Relay, relay
from tests.journal.postgres.server import PostgresServer
from tests.journal.storages import PostgresStorage

_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A server takes a second to make, so whatever needs one is slow."""
    for item in items:
        if {"postgres", "mortal", "forgetful"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of this process."""
    with PostgresServer.running() as server:
        yield server


@pytest.fixture
def schema() -> str:
    """A name that no other test uses."""
    return f"test_{next(_numbers)}"


@pytest.fixture
def storage(postgres: PostgresServer, schema: str) -> PostgresStorage:
    return PostgresStorage(f"{postgres.url}&schema={schema}")


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
