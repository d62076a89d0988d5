"""A PostgreSQL server for the tests of this folder, and shards in it that are nobody else's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from remit.journal.postgres import server
from remit.journal.sharded import shard
from tests.api.conftest import served
from tests.journal.postgres.server import PostgresServer
from tests.journal.storages import ShardedStorage

__all__ = ["served"]


class Cluster(NamedTuple):
    """Shards on four servers."""

    servers: list[PostgresServer]
    urls: list[str]

    @property
    def storage(self) -> ShardedStorage:
        """A journal on all of them."""
        return ShardedStorage(self.urls)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A server takes a second to make, so whatever needs one is slow."""
    for item in items:
        if {"postgres", "cluster"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def servers() -> Iterator[list[PostgresServer]]:
    """Four servers, which tests end and start again."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(PostgresServer.running()) for _ in range(4)]


@pytest.fixture
def cluster(servers: list[PostgresServer], schema: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Four shards, each on a server of its own; all of them run again afterwards."""
    monkeypatch.setattr(server, "PATIENCE_S", 0.2)
    monkeypatch.setattr(shard, "_LOOK_S", 0.05)
    yield Cluster(servers, [f"{one.url}&schema={schema}" for one in servers])
    for one in servers:
        if not one.runs:
            one.start()


@pytest.fixture
def urls(postgres: PostgresServer, schema: str) -> list[str]:
    """Two shards that no other test uses."""
    return [f"{postgres.url}&schema={schema}_{shard}" for shard in range(2)]
