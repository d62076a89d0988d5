"""Finding streams to work on: those that are due, and those of processes of this machine that died."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from remit.jobs.routes import kept_for, unkept
from remit.journal.owner import Owner

if TYPE_CHECKING:
    from remit.engines.holding import Holding
    from remit.engines.port import Work
    from remit.journal.event import Claim, Head, Lease

_log: Final = logging.getLogger("remit.engine")


class Claiming:
    """Leases streams for a holder: any of a kind, or only some."""

    def __init__(self, work: Work, holding: Holding, only: AbstractSet[str] | None) -> None:
        self._work = work
        self._journal = work.journal
        self._holding = holding
        self.only = only
        self.look_for_dead = True
        """Processes may have died since the last look."""
        self.look_for_late = False
        """Other workers may have left streams to this process since the last look."""
        self.late: tuple[str, ...] = ()
        """The late routes of this process."""
        self.left: dict[str, str] = {}
        """Routes of streams that other processes keep for themselves, with their owners."""
        self._new = set[str]()
        """Chosen streams that were not asked for yet."""
        self._known = frozenset[str]()
        self._seen: dict[str, int] = {}
        """The number of times that each of the chosen streams was woken when it was last taken."""
        self._turn = ""
        """The share that a claim looked at last."""
        self._dead: list[tuple[str, str]] = []
        """Streams of processes that died, with those owners, to be taken over as there is room."""

    async def due(self, limit: int, now: int) -> list[Lease]:
        """Lease what is due at `now`, at most `limit`."""
        terms = self._holding.terms(limit, now)
        if self.only is not None:
            return await self._chosen(terms, self.only)
        leases = await self._journal.claim(replace(terms, routes=self._routes, after=self._turn))
        self._turn = leases[-1].turn if leases else self._turn
        if self.look_for_late and len(leases) < limit:
            self.look_for_late = False
            leases += await self._journal.claim(replace(terms, routes=self.late, limit=limit - len(leases)))
            leases += await self._left(replace(terms, limit=limit - len(leases)))
            self.look_for_late = len(leases) == limit
        return leases

    async def waiting(self, limit: int, now: int) -> list[Head]:
        """Return what `due` would lease at `now`; nothing is leased."""
        terms = self._holding.terms(limit, now)
        dead, others = self._of_others()
        routes = (*self._routes, *self.late, *dead)
        heads = await self._journal.due(replace(terms, routes=routes, after=self._turn))
        self._turn = heads[-1].share if heads else self._turn
        overdue = await self._journal.due(self._overdue(terms, others)) if others else []
        return heads + [head for head in overdue if head.route in others]

    async def _left(self, terms: Claim) -> list[Lease]:
        """Lease what others kept for themselves: the dead, and those that did not take it for the time of a lease."""
        dead, others = self._of_others()
        leases = await self._journal.claim(replace(terms, routes=dead)) if dead and terms.limit else []
        if not others or len(leases) == terms.limit:
            return leases
        return leases + await self._journal.claim(
            replace(self._overdue(terms, others), limit=terms.limit - len(leases))
        )

    def _of_others(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Routes that others keep for themselves: the dead, and the rest."""
        dead = tuple(route for route, owner in self.left.items() if (found := Owner.parse(owner)) and found.dead())
        return dead, tuple(set(self.left) - set(dead))

    @staticmethod
    def _overdue(terms: Claim, routes: tuple[str, ...]) -> Claim:
        return replace(terms, routes=routes, now=terms.now - (terms.lease_until - terms.now))

    @property
    def _routes(self) -> tuple[str, ...]:
        """Return what this process takes, also where another one left it to this process alone."""
        return (*self._work.routes, *(kept_for(route, self._holding.owner) for route in self._work.routes))

    async def _chosen(self, terms: Claim, only: AbstractSet[str]) -> list[Lease]:
        self._seen = {stream: wakes for stream, wakes in self._seen.items() if stream in only}
        found: list[Lease] = []
        for stream, due in await self._dues(only):
            if len(found) == terms.limit:
                break
            if due > terms.now:
                continue
            self._new.discard(stream)
            if stream in self._holding:
                continue
            lease = await self._journal.acquire(stream, terms)
            if lease is not None:
                self._seen[stream] = lease.head.wakes
                found.append(lease)
        return found

    async def _dues(self, only: AbstractSet[str]) -> list[tuple[str, int]]:
        """Those of the chosen streams that are due by themselves, and when."""
        heads = await asyncio.gather(*map(self._journal.head, sorted(only)))
        return [(head.stream, due) for head in heads if head is not None and (due := self._due(head)) is not None]

    def _due(self, head: Head) -> int | None:
        """Return when to take a chosen stream: whatever its route the first time, and when it was woken since."""
        if head.stream in self._new and self._holding.keeper:
            return None if head.closed else 0
        public, keeper = unkept(head.route)
        left = keeper not in {"", self._holding.owner} or public not in (*self._work.routes, *self.late)
        return None if left and self._seen.get(head.stream) == head.wakes else head.due_at

    async def next_due(self) -> int | None:
        """Return when the next stream is due; None: none will be by itself."""
        if self.only is None:
            return await self._journal.next_due(self._work.kind, self._routes)
        return min([due for _, due in await self._dues(self.only)], default=None)

    async def rescued(self, limit: int) -> list[Lease]:
        """Take over at once what processes of this machine held when they died, at most `limit`."""
        if self.only is not None and not self._known.issuperset(self.only):
            self._new |= self.only - self._known
            self._known, self.look_for_dead = frozenset(self.only), True
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
        for head in await self._journal.leases(self._work.kind):
            owner = head.lease_owner or ""
            holder = Owner.parse(owner)
            if holder is None or head.stream in self._holding or not holder.dead():
                continue
            if self.only is None or head.stream in self.only:
                found.append((head.stream, owner))
        found.reverse()  # they are taken from the end
        return found
