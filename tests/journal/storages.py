"""The storages that the journal's contract is run on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from remit.clock import Clock
from remit.journal.journal import Journal
from remit.journal.port import Store
from remit.journal.postgres.store import PostgresStore
from remit.journal.seals import KEY_BYTES, Seals
from remit.journal.sharded.store import ShardedStore
from remit.journal.sqlite.store import MEMORY, SqliteStore

KEYS: Final = {"sealed": Seals([b"k" * KEY_BYTES]), "plain": None}
"""With a key, as journals are made, and without one, as those of a project that has none are."""


class SqliteStorage:
    """A file, or memory."""

    def __init__(self, path: Path | None = None, seals: Seals | None = None) -> None:
        self.path = path
        self.seals = seals

    @asynccontextmanager
    async def open(self, clock: Clock) -> AsyncIterator[Journal]:
        async with _opened(SqliteStore(str(self.path) if self.path else MEMORY, clock), clock, self.seals) as journal:
            yield journal


class PostgresStorage:
    """A schema of its own."""

    def __init__(self, url: str, seals: Seals | None = None) -> None:
        self.url = url
        self.seals = seals

    @asynccontextmanager
    async def open(self, clock: Clock) -> AsyncIterator[Journal]:
        async with _opened(PostgresStore(self.url, clock), clock, self.seals) as journal:
            yield journal


class ShardedStorage:
    """Shards, each in a schema of its own."""

    def __init__(self, urls: Sequence[str], seals: Seals | None = None) -> None:
        self.urls = urls
        self.seals = seals

    @asynccontextmanager
    async def open(self, clock: Clock) -> AsyncIterator[Journal]:
        store = ShardedStore(self.urls, lambda url: PostgresStore(url, clock))
        async with _opened(store, clock, self.seals) as journal:
            yield journal


@asynccontextmanager
async def _opened(store: Store, clock: Clock, seals: Seals | None) -> AsyncIterator[Journal]:
    journal = Journal(store, clock, seals=seals)
    try:
        yield journal
    finally:
        await journal.close()
