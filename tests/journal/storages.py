"""The storages that the journal's contract is run on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from remit.clock import Clock
from remit.journal.journal import Journal
from remit.journal.postgres.store import PostgresStore
from remit.journal.sqlite.store import MEMORY, SqliteStore


class SqliteStorage:
    """A file, or memory."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path

    @asynccontextmanager
    async def open(self, clock: Clock) -> AsyncIterator[Journal]:
        journal = Journal(SqliteStore(str(self.path) if self.path else MEMORY, clock), clock)
        try:
            yield journal
        finally:
            await journal.close()


class PostgresStorage:
    """A schema of its own."""

    def __init__(self, url: str) -> None:
        self.url = url

    @asynccontextmanager
    async def open(self, clock: Clock) -> AsyncIterator[Journal]:
        journal = Journal(PostgresStore(self.url, clock), clock)
        try:
            yield journal
        finally:
            await journal.close()
