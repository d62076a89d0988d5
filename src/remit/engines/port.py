"""The port of engines, which place work on this process. Jobs are one kind of work; other kinds of streams may follow.

An engine has two halves. *Holding* (holding.py) keeps the leases that this process has, runs their passes and lets them
end; *claiming* (claiming.py) finds streams that are due. An adapter to a distributed engine that places work itself
needs the holding half alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from remit.errors import JournalError
    from remit.jobs.end import PassEnd
    from remit.journal.event import Lease
    from remit.journal.journal import Journal
    from remit.journal.leases import HeldLease


class StreamExecution(Protocol):
    """The work of this process on a stream that it has leased, until it waits, ends or loses the lease."""

    @property
    def lease(self) -> HeldLease:
        """Return what it holds the stream under."""
        ...

    async def run(self) -> PassEnd:
        """Go as far as possible. Raises JournalError if the journal fails."""
        ...

    def news(self, wakes: int) -> None:
        """The stream was woken so often by now."""
        ...

    def halt(self) -> None:
        """Begin nothing new."""
        ...

    async def give_up(self) -> None:
        """Release the lease, so that another worker goes on at once."""
        ...


class Work(Protocol):
    """One kind of stream, and how this process works on it."""

    @property
    def kind(self) -> str:
        """The kind of the streams that are leased, such as `job`."""
        ...

    @property
    def journal(self) -> Journal:
        """Return the journal that they are in."""
        ...

    @property
    def routes(self) -> tuple[str, ...]:
        """Routes of the streams that this process can take; there is at least one."""
        ...

    @property
    def code(self) -> dict[str, tuple[str, ...]]:
        """The recipes that run here, with the versions that they run as."""
        ...

    async def late_routes(self) -> tuple[str, ...]:
        """Further routes that are asked for now and then only: of streams that others have left to this process."""
        ...

    async def left_routes(self, owner: str, served: Collection[str]) -> dict[str, str]:
        """Routes of streams that other owners keep and that `served` could take, with those owners."""
        ...

    async def let_go(self, stream: str, owner: str) -> None:
        """Let any process take a stream that was kept for this owner's, unless someone has it."""
        ...

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Have `changed` called when the late routes may have changed; returns what ends that."""
        ...

    def take(self, lease: Lease, keeper: str) -> StreamExecution:
        """A pass over a stream that was just leased, which is kept for this owner's process while it waits, if any."""
        ...


class Engine(Protocol):
    """Runs streams of one kind, several at once, until they end or wait."""

    owner: str
    """Names this worker in every lease that it takes."""

    @property
    def failure(self) -> JournalError | None:
        """Say why the engine stopped by itself; its streams go on elsewhere, or here once the journal works again."""
        ...

    @property
    def working(self) -> bool:
        """Return whether it was started, and has neither stopped nor failed since."""
        ...

    @property
    def running(self) -> list[str]:
        """Streams under way."""
        ...

    def start(self, *, only: AbstractSet[str] | None = None, keep: bool = False, role: str = "") -> None:
        """Begin to work; with `only`, on these streams and no others.

        With `keep` they are taken at once, due or not, and kept for this process until it stops. With a `role` the
        journal says, as long as it works, that this process does, and with which code.
        """
        ...

    async def restart(self) -> None:
        """Start again after `failure`, on the same streams."""
        ...

    def wake(self) -> None:
        """There may be work."""
        ...

    def ended(self, stream: str) -> asyncio.Future[PassEnd]:
        """A future for the next time a pass of this process over a stream ends. Raises JournalError as `failure`."""
        ...

    def stopped(self) -> asyncio.Future[PassEnd]:
        """A future that ends only with the engine. Raises JournalError as `failure`."""
        ...

    async def drain(self, seconds: float) -> bool:
        """Take no more, begin no new effects, and let calls under way end, for so long; whether all did."""
        ...

    async def stop(self) -> None:
        """Stop everything at once. What is recorded stays; the leases are given up."""
        ...
