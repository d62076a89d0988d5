"""Finding streams to work on: those that are due, and those of processes of this machine that died."""

from __future__ import annotations

import logging
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

from remit.engines.owner import Owner

if TYPE_CHECKING:
    from remit.engines.holding import Holding
    from remit.engines.port import Work
    from remit.journal.event import Lease

_log: Final = logging.getLogger("remit.engine")


class Claiming:
    """Leases streams for a holder: any of a kind, or only some."""

    def __init__(self, work: Work, holding: Holding, only: AbstractSet[str] | None) -> None:
        """With `only`, these streams and no others."""
        self._kind = work.kind
        self._journal = work.journal
        self._holding = holding
        self._only = only
        self.look_for_dead = True
        """Processes may have died since the last look."""
        self._dead: list[tuple[str, str]] = []
        """Streams of processes that died, with those owners, to be taken over as there is room."""

    async def due(self, limit: int) -> list[Lease]:
        """Lease what is due, at most `limit`."""
        terms = self._holding.terms(limit)
        if self._only is None:
            return await self._journal.claim(terms)
        found: list[Lease] = []
        for stream in sorted(self._only):
            if len(found) == limit:
                break
            head = await self._journal.head(stream)
            if stream in self._holding or head is None or head.due_at is None or head.due_at > terms.now:
                continue
            lease = await self._journal.acquire(stream, terms)
            if lease is not None:
                found.append(lease)
        return found

    async def next_due(self) -> int | None:
        """When the next stream is due; None: none will be by itself."""
        if self._only is None:
            return await self._journal.next_due(self._kind)
        heads = [await self._journal.head(stream) for stream in self._only]
        return min((head.due_at for head in heads if head is not None and head.due_at is not None), default=None)

    async def rescued(self, limit: int) -> list[Lease]:
        """Take over at once what processes of this machine held when they died, at most `limit`."""
        if self.look_for_dead:
            self.look_for_dead = False
            self._dead = await self._left_by_the_dead()
        found: list[Lease] = []
        while self._dead and len(found) < limit:
            stream, owner = self._dead.pop()
            head = await self._journal.head(stream)
            if head is None or head.lease_owner != owner:
                continue  # another worker was quicker
            lease = await self._journal.acquire(stream, self._holding.terms(), over=owner)
            if lease is not None:
                _log.info("%s: taken over from a process that died", stream)
                found.append(lease)
        return found

    async def _left_by_the_dead(self) -> list[tuple[str, str]]:
        found = []
        for head in await self._journal.leases(self._kind):
            owner = head.lease_owner or ""
            holder = Owner.parse(owner)
            if holder is None or head.stream in self._holding or not holder.dead():
                continue
            if self._only is None or head.stream in self._only:
                found.append((head.stream, owner))
        found.reverse()  # they are taken from the end
        return found
