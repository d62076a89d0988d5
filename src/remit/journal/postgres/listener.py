"""News of other processes: every group of commits notifies, and one connection listens."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from remit.clock import SystemClock
from remit.errors import JournalError
from remit.journal.postgres.server import ANSWER_S, PATIENCE_S, connect, persist

if TYPE_CHECKING:
    import asyncpg

    from remit.journal.postgres.address import Address

_log: Final = logging.getLogger("remit.journal")
_CLOSE_S: Final = 5.0
_PING_S: Final = 15.0
"""How often the server is asked for a sign of life: nothing else is ever said over this connection."""
_CLOCK: Final = SystemClock()
_ANYTHING: Final = True
"""Report, whenever listening begins, that heads may have changed meanwhile."""


class Listener:
    """Listens from the first wait on, for as long as the journal is open."""

    def __init__(self, address: Address, news: Callable[[bool], None], failed: Callable[[JournalError], None]) -> None:
        """`news` is told of every write, and whether heads changed; `failed` that the server stays away."""
        self._address = address
        self._news = news
        self._failed = failed
        self._connection: asyncpg.Connection | None = None
        self._opening = asyncio.Lock()
        self._again: asyncio.Task[None] | None = None
        self._pinging: asyncio.Task[None] | None = None
        self._closed = False

    async def listening(self) -> None:
        """Return once nothing that is written from now on goes unnoticed. Raises JournalError."""
        if self._connection is not None and not self._connection.is_closed():
            return
        async with self._opening:
            if self._connection is None or self._connection.is_closed():
                self._connection = await persist(self._open, str(self._address))

    async def close(self) -> None:
        """Stop listening."""
        self._closed = True
        if self._again is not None:
            self._again.cancel()
            await asyncio.wait([self._again])
        async with self._opening:
            if self._pinging is not None:
                self._pinging.cancel()
                await asyncio.wait([self._pinging])
            if self._connection is not None and not self._connection.is_closed():
                with contextlib.suppress(OSError, TimeoutError):
                    await self._connection.close(timeout=_CLOSE_S)

    async def _open(self) -> asyncpg.Connection:
        connection = await connect(self._address)
        channel = f"{self._address.schema}_changed"
        try:
            await connection.add_listener(channel, lambda *news: self._news(news[-1] == "heads"))
        except BaseException:  # as when connecting
            connection.terminate()
            raise
        connection.add_termination_listener(lambda _connection: self._lost())
        if self._pinging is not None:
            self._pinging.cancel()
        self._pinging = asyncio.create_task(_ping(connection), name="remit:journal-ping")
        self._news(_ANYTHING)
        return connection

    def _lost(self) -> None:
        if not self._closed and self._again is None:
            # Of all connections this is the one that is always there: its loss is the one that people are told of.
            _log.warning("%s: connection lost; trying again for up to %d s", self._address, PATIENCE_S)
            self._again = asyncio.get_running_loop().create_task(self._reopen(), name="remit:journal-listen")

    async def _reopen(self) -> None:
        try:
            await self.listening()
            _log.warning("%s: connected again", self._address)
        except JournalError as error:
            self._failed(error)
        finally:
            self._again = None


async def _ping(connection: asyncpg.Connection) -> None:
    """Give up a connection that fell silent."""
    while not connection.is_closed():
        await _CLOCK.sleep(_PING_S)
        try:
            await connection.fetchval("SELECT 1", timeout=ANSWER_S)
        except Exception:  # noqa: BLE001 - whatever it is, the connection is of no use any more
            connection.terminate()
