"""Tells a watch when to look at its jobs again: from the journal here, or from the events that a server sends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from remit.clock import Clock, SystemClock
from remit.errors import RemitError
from remit.jobs.state import stream_of
from remit.tasks import first

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.cli.access import Opened

_LOOK_S: Final = 0.5
"""Seconds after which jobs behind a server are looked at even without an event: not all that changes is one."""


class WatchNews(Protocol):
    """The news that a watch waits for."""

    clock: Clock
    served: frozenset[str]
    """The routes of jobs that are worked on where the news come from."""
    failed: asyncio.Future[Any]
    """Ends only if nothing goes on any more, with the error that stopped it."""

    async def __aenter__(self) -> Self:
        """Begin to listen. Raise RemitError if nothing goes on already."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        ...

    async def changed(self, since: int) -> int:
        """Wait until something may have changed after the mark `since` (0: return at once); the new mark."""
        ...


def news_of(remit: Opened, jobs: Sequence[str]) -> WatchNews:
    """The news of these jobs."""
    from remit.app import Remit

    return LocalNews(remit) if isinstance(remit, Remit) else RemoteNews(remit, jobs)


class LocalNews:
    """The journal of this process, and the engine that works here."""

    def __init__(self, remit: Remit) -> None:
        self._streams = remit.service.streams
        self._engine = remit.engine
        self.clock = remit.clock
        self.served = frozenset({"", *remit.service.recipes.names()})
        self.failed = self._engine.stopped()

    async def __aenter__(self) -> Self:
        if self._engine.failure is not None:
            raise self._engine.failure
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.failed.cancel()

    async def changed(self, since: int) -> int:
        return await self._streams.changed(since)


class RemoteNews:
    """The events of jobs behind a server."""

    def __init__(self, remit: Opened, jobs: Sequence[str]) -> None:
        self._remit = remit
        self._jobs = jobs
        self._mark = 1
        self._came = asyncio.Event()
        self._followers: list[asyncio.Task[None]] = []
        self.clock: Clock = SystemClock()
        self.served = frozenset({""})
        self.failed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Self:
        self.served |= {view.name for view in await self._remit.service.recipes.views()}
        self._followers = [asyncio.create_task(self._follow(job)) for job in self._jobs]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for follower in self._followers:
            follower.cancel()
        if self._followers:
            await asyncio.wait(self._followers)
        if self.failed.done():
            self.failed.exception()  # it was told, or the jobs had come to rest before
        self.failed.cancel()

    async def changed(self, since: int) -> int:
        if since == self._mark:
            self._came.clear()
            await first(self._came.wait(), self.clock.sleep(_LOOK_S))
        return self._mark

    async def _follow(self, job: str) -> None:
        try:
            async for _ in self._remit.service.streams.follow(stream_of(job)):
                self._mark += 1
                self._came.set()
        except RemitError as error:
            if not self.failed.done():
                self.failed.set_exception(error)
        self._mark += 1
        self._came.set()
