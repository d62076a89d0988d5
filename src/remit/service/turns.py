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
from remit.journal.event import Head, HeadPatch
from remit.journal.leases import HeldLease, LeaseTerms, heads_changed_within

if TYPE_CHECKING:
    from remit.journal.journal import Journal

_LEASE_S: Final = 15.0
"""Seconds until a process that died gives way."""


class Turns:
    """Takes turns with other tasks and processes."""

    def __init__(self, journal: Journal) -> None:
        """Hold streams of `journal`."""
        self._journal = journal
        self._clock = journal.clock

    @asynccontextmanager
    async def taken(self, stream: str, kind: str) -> AsyncIterator[HeldLease | None]:
        """Hold a stream if it is free; None if it is held elsewhere, closed, or does not exist."""
        terms = LeaseTerms(kind=kind, owner=f"{os.getpid()}:{new_id('turn')}", seconds=_LEASE_S)
        lease = await self._journal.acquire(stream, terms.claim(self._clock.now()))
        if lease is None:
            yield None
            return
        held = HeldLease(self._journal, lease.head)
        renewing = asyncio.create_task(_keep(held, terms))
        try:
            yield held
        finally:
            renewing.cancel()
            with suppress(JournalError):  # the lease lapses
                await held.give_up(HeadPatch(due_at=None))

    async def wait(self, stream: str) -> Head | None:
        """Wait until a stream may be free, or is closed; its head, or None if it does not exist."""
        mark = await self._journal.heads_changed(0)
        while True:
            head = await self._journal.head(stream)
            now = self._clock.now()
            if head is None or head.closed or head.lease_until is None or head.lease_until <= now:
                return head
            mark = await heads_changed_within(self._journal, mark, (head.lease_until - now) / SECOND)


async def _keep(held: HeldLease, terms: LeaseTerms) -> None:
    with suppress(JournalError):  # the next append says what is wrong
        await held.keep(terms)
