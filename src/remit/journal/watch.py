"""Who waits for news of the journal, and how news of other processes reach them where the storage cannot tell.

A *mark* grows with every write that was noticed. Whoever holds the newest mark waits; whoever holds an older one missed
something and returns at once. So a write between two looks is never missed, whether anybody waited then or not.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from remit.errors import JournalError
from remit.journal.batching import journal_closed

_POLL_S: Final = 0.004
"""How often a waiting reader asks whether another process wrote."""


class Watch:
    """Marks of one opened journal; used on its event loop only."""

    def __init__(self, version: Callable[[], int | None] | None = None) -> None:
        """`version` is a cheap number that changes with every write of anybody; None: nobody else can write.

        It may return None where it cannot tell at the moment, and raise JournalError.
        """
        self._version = version
        self._seen = version() if version else None
        self._mark = 1
        self._closed = False
        self._waiting: set[asyncio.Future[None]] = set()
        self._poller: asyncio.Task[None] | None = None

    async def changed(self, since: int) -> int:
        """Wait for a write by any process after the mark `since`; the new mark."""
        if self._closed:
            raise journal_closed()
        self._look()
        if since < self._mark:
            return self._mark
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        if self._poller is None and self._version is not None:
            self._poller = asyncio.create_task(self._poll(), name="remit:journal-watch")
        try:
            await future
        finally:
            self._waiting.discard(future)
        return self._mark

    def notify(self) -> None:
        """This process wrote: wake whoever waits."""
        if self._waiting and self._version is not None:
            # Our own write changed the version too; whoever is woken now also reads what others wrote before this.
            # Where the version cannot be read, whoever looks next is told why.
            with contextlib.suppress(JournalError):
                self._seen = self._version()
        self._wake()

    async def close(self) -> None:
        """Tell whoever waits that the journal was closed."""
        self._closed = True
        self.fail(journal_closed())
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.wait([self._poller])

    def _look(self) -> None:
        if self._version is None:
            return
        version = self._version()
        if version is not None and version != self._seen:
            self._seen = version
            self._wake()

    def _wake(self) -> None:
        self._mark += 1
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def fail(self, error: JournalError) -> None:
        """Whoever waits gets this error instead of news."""
        for future in self._waiting:
            if not future.done():
                future.set_exception(error)

    async def _poll(self) -> None:
        """While somebody waits, look for writes of other processes."""
        try:
            while self._waiting:
                # Real time, whatever clock the journal has: other processes do not wait for a manual one.
                await asyncio.sleep(_POLL_S)  # noqa: TID251
                self._look()
        except JournalError as error:
            self.fail(error)
        finally:
            self._poller = None
