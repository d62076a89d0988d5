"""The local engine: workers as tasks of this process, streams shared with other processes through the journal alone.

One loop claims what is due, up to the bound; between claims it sleeps until the journal changes, a timer is due or a
slot is free. Fairness comes from the queue: higher priority first, then the longest due; what parks goes to the end.

Finding streams to work on: those that are due, and those of processes of this machine that died.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from remit.clock import SECOND
from remit.engines.claims import Holding
from remit.engines.presence import Presence
from remit.jobs.routes import kept_for, unkept
from remit.journal.leases import Owner
from remit.settings.file import NO_FILE, SettingsFile

if TYPE_CHECKING:
    from remit.engines.port import Work
    from remit.errors import JournalError
    from remit.jobs.end import PassEnd
    from remit.journal.event import Lease, LeaseClaim, StreamHead


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
        self._wakes: dict[str, int] = {}
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

    async def waiting(self, limit: int, now: int) -> list[StreamHead]:
        """Return what `due` would lease at `now`; nothing is leased."""
        terms = self._holding.terms(limit, now)
        dead, others = self._of_others()
        routes = (*self._routes, *self.late, *dead)
        heads = await self._journal.due(replace(terms, routes=routes, after=self._turn))
        self._turn = heads[-1].share if heads else self._turn
        overdue = await self._journal.due(self._overdue(terms, others)) if others else []
        return heads + [head for head in overdue if head.route in others]

    async def _left(self, terms: LeaseClaim) -> list[Lease]:
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
        dead = tuple(route for route, owner in self.left.items() if (holder := Owner.parse(owner)) and holder.dead())
        return dead, tuple(set(self.left) - set(dead))

    @staticmethod
    def _overdue(terms: LeaseClaim, routes: tuple[str, ...]) -> LeaseClaim:
        return replace(terms, routes=routes, now=terms.now - (terms.lease_until - terms.now))

    @property
    def _routes(self) -> tuple[str, ...]:
        """Return what this process takes, also where another one left it to this process alone."""
        return (*self._work.routes, *(kept_for(route, self._holding.owner) for route in self._work.routes))

    async def _chosen(self, terms: LeaseClaim, only: AbstractSet[str]) -> list[Lease]:
        self._wakes = {stream: wakes for stream, wakes in self._wakes.items() if stream in only}
        leases: list[Lease] = []
        for stream, due in await self._dues(only):
            if len(leases) == terms.limit:
                break
            if due > terms.now:
                continue
            self._new.discard(stream)
            if stream in self._holding:
                continue
            lease = await self._journal.acquire(stream, terms)
            if lease is not None:
                self._wakes[stream] = lease.head.wakes
                leases.append(lease)
        return leases

    async def _dues(self, only: AbstractSet[str]) -> list[tuple[str, int]]:
        """Those of the chosen streams that are due by themselves, and when."""
        heads = await asyncio.gather(*map(self._journal.head, sorted(only)))
        return [(head.stream, due) for head in heads if head is not None and (due := self._due(head)) is not None]

    def _due(self, head: StreamHead) -> int | None:
        """Return when to take a chosen stream: whatever its route the first time, and when it was woken since."""
        if head.stream in self._new and self._holding.keeper:
            return None if head.closed else 0
        public, keeper = unkept(head.route)
        is_late = keeper not in {"", self._holding.owner} or public not in (*self._work.routes, *self.late)
        return None if is_late and self._wakes.get(head.stream) == head.wakes else head.due_at

    async def needs_late(self) -> bool:
        """Return whether the late routes could decide: of chosen streams, whether one was left to other routes."""
        heads = await asyncio.gather(*map(self._journal.head, sorted(self.only or ())))
        routes = {unkept(head.route)[0] for head in heads if head is not None and not head.closed}
        return self.only is None or not routes.issubset(self._work.routes)

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
        leases: list[Lease] = []
        while self._dead and len(leases) < limit:
            stream, owner = self._dead.pop()
            head = await self._journal.head(stream)
            if head is None or head.lease_owner != owner:
                continue  # another worker was quicker
            lease = await self._journal.acquire(stream, self._holding.terms(), over=owner)
            if lease is not None:
                _log.info("%s: taken over from a process that died", stream)
                leases.append(lease)
        return leases

    async def _left_by_the_dead(self) -> list[tuple[str, str]]:
        left_by_the_dead = []
        for head in await self._journal.leases(self._work.kind):
            owner = head.lease_owner or ""
            holder = Owner.parse(owner)
            if holder is None or head.stream in self._holding or not holder.dead():
                continue
            if self.only is None or head.stream in self.only:
                left_by_the_dead.append((head.stream, owner))
        left_by_the_dead.reverse()  # they are taken from the end
        return left_by_the_dead


_SPACING_S: Final = 0.005
"""The journal is asked for work this often at most."""
_BATCH: Final = 64
"""Streams claimed in one transaction."""


class LocalEngine:
    """Runs due streams of one kind and one journal, several at once.

    It runs `concurrency` streams at once; leases last `lease_s` seconds and are renewed at a third of that. `settings`
    is the file that the process runs with.
    """

    def __init__(self, work: Work, *, concurrency: int, lease_s: float, settings: SettingsFile = NO_FILE) -> None:
        self._settings = settings
        self._work = work
        self._clock = work.journal.clock
        self._concurrency = concurrency
        self._lease_s = lease_s
        self._poked = asyncio.Event()
        self.holding = Holding(work, lease_s=lease_s, changed=self.wake)
        self.claiming = Claiming(work, self.holding, None)
        self.owner = self.holding.owner
        self._look_again = asyncio.Event()
        self._unwatch: Callable[[], None] = lambda: None
        self._role = ""
        self._presence: Presence | None = None
        self._tasks: list[asyncio.Task[None]] = []
        """The claiming loop first."""

    # --- life

    def start(self, *, only: AbstractSet[str] | None = None, keep: bool = False, role: str = "") -> None:
        """Begin to work; with `only`, on these streams and no others, which with `keep` are this process's alone.

        With a `role` the journal says, as long as it works, that this process does, and with which code.
        """
        if not self._tasks:
            self.holding.keeper = self.owner if keep else ""
            self.claiming = Claiming(self._work, self.holding, only)
            for name, part in (("engine", self._claim), ("look", self._look), ("tick", self._tick)):
                self._tasks.append(self.holding.task(name, part))
            self._role = role
            if role:
                self._presence = Presence(self._work.journal, self.owner, self._lease_s, self._settings)
                self._tasks.append(self.holding.task("presence", self._present))
            self._unwatch = self._work.watch(self._look_again.set)
            self.holding.start()

    async def restart(self) -> None:
        await self.stop()
        only, role = self.claiming.only, self._role
        self._tasks.clear()
        self.holding = Holding(self._work, lease_s=self._lease_s, changed=self.wake)
        self.owner = self.holding.owner
        self.start(only=only, role=role)

    async def reread(self, settings: SettingsFile) -> None:
        """Say that the process runs with the settings of this file now. Raises JournalError."""
        self._settings = settings
        if self._presence is not None and self.failure is None:
            await self._presence.reread(settings)

    def wake(self) -> None:
        self._poked.set()

    async def drain(self, seconds: float) -> bool:
        self.holding.halt()
        await self._stop_claiming()
        self.holding.halt()  # what the last claim brought
        return await self.holding.wait(seconds)

    async def stop(self) -> None:
        await self._stop_claiming()
        await self.holding.stop()
        if self.holding.keeper and self.failure is None:
            for stream in self.claiming.only or ():
                await self._work.let_go(stream, self.holding.keeper)

    async def _stop_claiming(self) -> None:
        """End the claiming loop between two claims: cancelled within one, it would hold leases it knows nothing of."""
        self.holding.stopping = True
        self.wake()
        self._unwatch()
        for task in self._tasks[1:]:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._presence is not None and self.failure is None:
            await self._presence.leave()

    @property
    def failure(self) -> JournalError | None:
        return self.holding.failure

    @property
    def working(self) -> bool:
        return bool(self._tasks) and not self.holding.stopping

    @property
    def running(self) -> list[str]:
        return self.holding.running

    def ended(self, stream: str) -> asyncio.Future[PassEnd]:
        return self.holding.ended(stream)

    def stopped(self) -> asyncio.Future[PassEnd]:
        return self.holding.ended("")  # no stream has this name

    # --- claiming

    async def _claim(self) -> None:
        while not self.holding.stopping:
            self._poked.clear()
            now = await self.holding.renew_overdue()
            free = self._concurrency - len(self.holding)
            leases = await self.claiming.rescued(free)
            if free > len(leases):
                leases += await self.claiming.due(min(free - len(leases), _BATCH), now)
            for lease in leases:
                await self.holding.begin(lease)
            if len(leases) < _BATCH or not self._free:
                await self._rest()

    @property
    def _free(self) -> bool:
        return len(self.holding) < self._concurrency

    async def _rest(self) -> None:
        """Until there may be work: a wake, or the next due time."""
        due = await self.claiming.next_due() if self._free else None
        timer: asyncio.Task[None] | None = None
        if due is not None:
            timer = asyncio.create_task(self._ring(due))
        try:
            await self._poked.wait()
        finally:
            if timer is not None:
                timer.cancel()
                await asyncio.wait([timer])

    async def _ring(self, due: int) -> None:
        wait = (due - self._clock.now()) / SECOND
        await self._clock.sleep(max(wait, _SPACING_S))
        self.wake()

    async def _look(self) -> None:
        """Look for what the dead and other workers have left, now and then and when there may be new tools."""
        while True:
            await self._look_again.wait()
            self._look_again.clear()
            if await self.claiming.needs_late():
                self.claiming.late = await self._work.late_routes()
            if self.claiming.only is None:
                served = (*self._work.routes, *self.claiming.late)
                self.claiming.left = await self._work.left_routes(self.owner, served)
            self.claiming.look_for_dead = self.claiming.look_for_late = True
            self.wake()

    async def _present(self) -> None:
        if self._presence is not None:
            code = self._work.code if self.claiming.only is None else {}  # others are not to wait for it
            await self._presence.keep(self._role, code)

    async def _tick(self) -> None:
        while True:
            self._look_again.set()
            await self._clock.sleep(self._lease_s / 3)
