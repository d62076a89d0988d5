"""Who waits for news of the journal, and how news of other processes reach them where the storage cannot tell.

A *mark* grows with every write that was noticed. Whoever holds the newest mark waits; whoever holds an older one missed
something and returns at once. So a write between two looks is never missed, whether anybody waited then or not.

There are two marks. Most writes only add events to streams that exist, which concerns nobody but their followers; the
other one grows when a head changed in more than its newest event: a stream was made, woken, parked or closed.
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
_UNSURE_POLLS: Final = 10
"""After how many of these polls heads are looked at when this process writes so much that it cannot tell who wrote."""


class Mark:
    """One mark, and who waits for it to grow."""

    def __init__(self) -> None:
        self.value = 1
        self.waiting: set[asyncio.Future[None]] = set()

    def grow(self) -> None:
        """Something happened."""
        self.value += 1
        for future in self.waiting:
            if not future.done():
                future.set_result(None)

    def fail(self, error: JournalError) -> None:
        """Nothing will happen any more."""
        for future in self.waiting:
            if not future.done():
                future.set_exception(error)


class Watch:
    """Marks of one opened journal; used on its event loop only."""

    def __init__(
        self, version: Callable[[], int | None] | None = None, writing: Callable[[], bool] = lambda: False
    ) -> None:
        """`version` is a cheap number that changes with every write of anybody; None: nobody else can write.

        It may return None where it cannot tell at the moment, and raise JournalError. `writing` tells whether this
        process has a write under way, of which it was not told yet.
        """
        self._version = version
        self._writing = writing
        self._seen = version() if version else None
        self._unsure = False
        """Our own writes changed the version; somebody else's may be among them."""
        self._closed = False
        self._events, self._heads = Mark(), Mark()
        self._poller: asyncio.Task[None] | None = None

    async def changed(self, since: int) -> int:
        """Wait for a write by any process after the mark `since`; the new mark."""
        return await self._grown(self._events, since)

    async def heads_changed(self, since: int) -> int:
        """Wait until a head changed in more than its newest event, after the mark `since`; the new mark."""
        return await self._grown(self._heads, since)

    async def _grown(self, mark: Mark, since: int) -> int:
        if self._closed:
            raise journal_closed()
        self._look()
        if since < mark.value:
            return mark.value
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        mark.waiting.add(future)
        if self._poller is None and self._version is not None:
            self._poller = asyncio.create_task(self._poll(), name="remit:journal-watch")
        try:
            await future
        finally:
            mark.waiting.discard(future)
        return mark.value

    def notify(self, heads: bool) -> None:
        """This process wrote; `heads`: more than events."""
        if self._version is not None and (self._events.waiting or self._heads.waiting):
            # Our own write changed the version too; whoever is woken now also reads what others wrote before this.
            # Where the version cannot be read, whoever looks next is told why.
            with contextlib.suppress(JournalError):
                self._seen = self._version()
            self._unsure = True
        self._events.grow()
        if heads:
            self._heads.grow()

    async def close(self) -> None:
        """Tell whoever waits that the journal was closed."""
        self._closed = True
        self.fail(journal_closed())
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.wait([self._poller])

    def fail(self, error: JournalError) -> None:
        """Whoever waits gets this error instead of news."""
        self._events.fail(error)
        self._heads.fail(error)

    def _look(self) -> None:
        if self._version is None:
            return
        version = self._version()
        if version is not None and version != self._seen:
            self._seen = version
            self._events.grow()
            if self._writing():
                self._unsure = True
            else:
                self._heads.grow()

    async def _poll(self) -> None:
        """While somebody waits, look for writes of other processes."""
        polls = 0
        try:
            while self._events.waiting or self._heads.waiting:
                # Real time, whatever clock the journal has: other processes do not wait for a manual one.
                await asyncio.sleep(_POLL_S)  # noqa: TID251
                self._look()
                polls += 1
                if self._unsure and polls % _UNSURE_POLLS == 0:
                    self._unsure = False
                    self._heads.grow()
        except JournalError as error:
            self.fail(error)
        finally:
            self._poller = None
