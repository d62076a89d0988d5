"""Admission of new jobs: with whom a job takes turns, and whether there is room for one more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import BusyError
from remit.jobs.state import KIND, NAME, PRINCIPAL
from remit.journal.event import OPEN_STATES, HeadQuery

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.gateway.turnstiles import LimitCaller
    from remit.journal.journal import Journal
    from remit.settings.sections.process import JobSettings

NO_ROOM: Final = (Code.JOB_QUOTA_EXCEEDED, Code.JOBS_FULL)
_PART: Final = 8
"""A look lets so many parts of the room be used before the next one."""
_LOOK: Final = 20
"""A look counts for as many times as long as it took, and for a second at least."""
_MOST: Final = 1_000
"""Rooms that are kept while nothing is made in them."""
_AGAIN_S: Final = 5
_LABELS: Final = {"principal": PRINCIPAL, "recipe": NAME}


class Room:
    """Room for jobs that share a bound; few looks count what is there.

    A look waits for what is being made, so that one process never exceeds the bound. Several may, by as much as they
    make between two looks: the closer to the bound, the fewer.
    """

    def __init__(self, most: int, clock: Clock) -> None:
        self._most = most
        self._clock = clock
        self._left = 0
        self._until = 0
        self._turn = asyncio.Lock()
        self._making = 0
        self._settled = asyncio.Event()
        self._settled.set()

    @property
    def idle(self) -> bool:
        return not (self._making or self._turn.locked())

    @asynccontextmanager
    async def place(self, count: Callable[[], Awaitable[int]], full: Callable[[], BusyError]) -> AsyncIterator[None]:
        """Have room for one more within the block. Raise the error of `full` if there is none."""
        while not self._looked:
            async with self._turn:
                if not self._looked:
                    await self._look(count, full)
        self._left -= 1
        self._making += 1
        self._settled.clear()
        try:
            yield
        finally:
            self._making -= 1
            if not self._making:
                self._settled.set()

    @property
    def _looked(self) -> bool:
        return self._left > 0 and self._clock.now() < self._until

    async def _look(self, count: Callable[[], Awaitable[int]], full: Callable[[], BusyError]) -> None:
        self._left = 0  # so that nothing more is made until those under way are counted
        await self._settled.wait()
        began = self._clock.now()
        free = self._most - await count()
        if free <= 0:
            raise full()
        now = self._clock.now()
        self._left, self._until = max(1, free // _PART), now + max(SECOND, _LOOK * (now - began))


class JobAdmission:
    """Lets jobs in, as long as quotas and the queue have room."""

    def __init__(self, journal: Journal, settings: JobSettings) -> None:
        self._journal = journal
        self._settings = settings
        self._rooms: dict[tuple[str, str], Room] = {}

    def labels(self, caller: LimitCaller) -> dict[str, str]:
        """Return what a job is counted by beside its own labels."""
        return {PRINCIPAL: caller.principal} if "principal" in self._settings.quotas else {}

    @asynccontextmanager
    async def place(self, caller: LimitCaller) -> AsyncIterator[str]:
        """Make a job within the block; gives the share that it takes turns with.

        Raises BusyError: JOB_QUOTA_EXCEEDED, or JOBS_FULL.
        """
        if not self._settings.quotas and not self._settings.queue:
            yield caller.value(self._settings.share)
            return
        async with AsyncExitStack() as places:
            for of, most in self._settings.quotas.items():
                if value := caller.value(of):
                    label = _LABELS.get(of, of.removeprefix("label:"))
                    query = HeadQuery(kind=KIND, states=OPEN_STATES, labels={label: value}, limit=most)
                    await self._enter(places, of, value, query)
            if most := self._settings.queue:
                await self._enter(places, "", "", HeadQuery(kind=KIND, states=("pending",), limit=most))
            yield caller.value(self._settings.share)

    async def _enter(self, places: AsyncExitStack, of: str, value: str, query: HeadQuery) -> None:
        async def count() -> int:
            return len(await self._journal.heads(query))

        def full() -> BusyError:
            if not of:
                reason = f"{query.limit} jobs wait for a worker, as many as jobs.queue allows"
                return BusyError(reason, remedy="Try again later, or start more workers.", again_s=_AGAIN_S)
            reason = f"{of.removeprefix('label:')} {value} has {query.limit} open jobs, as many as jobs.quotas allows"
            remedy = "Wait until some have ended, or cancel some (`remit cancel JOB`)."
            return BusyError(reason, code=Code.JOB_QUOTA_EXCEEDED, remedy=remedy, again_s=_AGAIN_S)

        room = self._rooms.get((of, value))
        if room is None:
            if len(self._rooms) >= _MOST:
                self._rooms = {key: each for key, each in self._rooms.items() if not each.idle}
            room = self._rooms[of, value] = Room(query.limit, self._journal.clock)
        await places.enter_async_context(room.place(count, full))
