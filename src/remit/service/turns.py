"""Taking turns on a stream that any process may continue with: one holds it by a lease, the others wait or give way."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from remit.clock import SECOND
from remit.errors import JournalError
from remit.ids import new_id
from remit.journal.event import Claim, Head, HeadPatch

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.journal.writer import StreamWriter

_LEASE_S: Final = 15.0
"""Seconds until a process that died gives way."""
_RENEW_S: Final = 5.0


class Turn:
    """A stream held by this task."""

    def __init__(self, journal: Journal, head: Head) -> None:
        """Continue the stream from its head."""
        self.writer: StreamWriter = journal.writer(head.stream, head.kind, head)
        self.over = False
        self._journal = journal

    async def end(self, state: str, *, closed: bool = False) -> None:
        """Leave the stream in this state for the next one."""
        patch = HeadPatch(state=state, closed=closed, due_at=None, release=True)
        await self._journal.append(self.writer, synced=True, patch=patch)
        self.over = True

    async def give_up(self) -> None:
        """Leave the stream as it is; if the storage fails, the lease lapses."""
        if not self.over:
            with suppress(JournalError):
                patch = HeadPatch(due_at=None, release=True)
                await self._journal.append(self.writer, synced=False, patch=patch)


class Turns:
    """Takes turns with other tasks and processes."""

    def __init__(self, journal: Journal) -> None:
        """Hold streams of `journal`."""
        self._journal = journal
        self._clock = journal.clock

    @asynccontextmanager
    async def taken(self, stream: str, kind: str) -> AsyncIterator[Turn | None]:
        """Hold a stream if it is free; None if it is held elsewhere, closed, or does not exist."""
        head = await self._acquire(stream, kind)
        if head is None:
            yield None
            return
        turn = Turn(self._journal, head)
        renewing = asyncio.create_task(self._renew(stream, head.epoch))
        try:
            yield turn
        finally:
            renewing.cancel()
            await turn.give_up()

    async def wait(self, stream: str) -> Head | None:
        """Wait until a stream may be free, or is closed; its head, or None if it does not exist."""
        mark = await self._journal.heads_changed(0)
        while True:
            head = await self._journal.head(stream)
            now = self._clock.now()
            if head is None or head.closed or head.lease_until is None or head.lease_until <= now:
                return head
            mark = await self._news(mark, (head.lease_until - now) / SECOND)

    async def _news(self, mark: int, seconds: float) -> int:
        changed = asyncio.create_task(self._journal.heads_changed(mark))
        lapsed = asyncio.create_task(self._clock.sleep(seconds))
        try:
            await asyncio.wait({changed, lapsed}, return_when=asyncio.FIRST_COMPLETED)
            return changed.result() if changed.done() else mark
        finally:
            changed.cancel()
            lapsed.cancel()

    async def _acquire(self, stream: str, kind: str) -> Head | None:
        now = self._clock.now()
        owner = f"{os.getpid()}:{new_id('turn')}"
        claim = Claim(kind=kind, owner=owner, now=now, lease_until=now + int(_LEASE_S * SECOND))
        lease = await self._journal.acquire(stream, claim)
        return lease.head if lease is not None else None

    async def _renew(self, stream: str, epoch: int) -> None:
        with suppress(JournalError):  # the next append says what is wrong
            while True:
                await self._clock.sleep(_RENEW_S)
                await self._journal.renew([(stream, epoch)], self._clock.now() + int(_LEASE_S * SECOND))
