"""The local engine: workers as tasks of this process, streams shared with other processes through the journal alone.

One loop claims what is due, up to the bound; between claims it sleeps until the journal changes, a timer is due or a
slot is free. Fairness comes from the queue: higher priority first, then the longest due; what parks goes to the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

from remit.clock import SECOND
from remit.engines.claiming import Claiming
from remit.engines.holding import Holding
from remit.engines.presence import Presence
from remit.settings.file import NO_FILE, SettingsFile

if TYPE_CHECKING:
    from remit.engines.port import Work
    from remit.errors import JournalError
    from remit.jobs.ended import Ended

_SPACING_S: Final = 0.005
"""The journal is asked for work this often at most."""
_BATCH: Final = 64
"""Streams claimed in one transaction."""


class LocalEngine:
    """Runs due streams of one kind and one journal, several at once."""

    def __init__(self, work: Work, *, concurrency: int, lease_s: float, settings: SettingsFile = NO_FILE) -> None:
        """`concurrency` streams at once; leases last `lease_s` seconds and are renewed at a third of that.

        `settings` is the file that the process runs with.
        """
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

    def ended(self, stream: str) -> asyncio.Future[Ended]:
        return self.holding.ended(stream)

    def stopped(self) -> asyncio.Future[Ended]:
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
