"""Work on streams that are kept for no process, and passes over them that end by themselves: most work but jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.errors import AppendConflictError, ChainBrokenError
from remit.jobs.end import PassEnd
from remit.journal.event import HeadPatch
from remit.journal.leases import HeldLease

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Collection

    from remit.journal.event import Lease
    from remit.journal.journal import Journal


class FreeWork:
    """One kind of stream of which any process with a fitting route takes any (remit.engines.port.Work)."""

    def __init__(self, kind: str, journal: Journal) -> None:
        self.kind = kind
        self.journal = journal

    @property
    def code(self) -> dict[str, tuple[str, ...]]:
        return {}

    async def late_routes(self) -> tuple[str, ...]:
        return ()

    async def left_routes(self, owner: str, served: Collection[str]) -> dict[str, str]:  # noqa: ARG002 - the port's
        return {}

    async def let_go(self, stream: str, owner: str) -> None:
        """Nothing is kept for one process."""

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002 - the port's
        return lambda: None


class ShortPass:
    """A pass over one stream that nothing wakes (remit.engines.port.StreamExecution); its lease ends with it."""

    def __init__(self, journal: Journal, lease: Lease, log: logging.Logger) -> None:
        self.lease = HeldLease(journal, lease.head)
        self.head = lease.head
        self.journal = journal
        self._log = log

    async def go(self) -> PassEnd:
        """Do the work. Raises AppendConflictError if the lease is lost, ChainBrokenError or JournalError."""
        raise NotImplementedError

    async def run(self) -> PassEnd:
        """Do the work; a stream that is damaged is left alone."""
        try:
            return await self.go()
        except AppendConflictError:
            return PassEnd(how="lost")
        except ChainBrokenError as error:
            self._log.error("%s is left alone: %s", self.head.stream, error)
            await self.lease.release(patch=HeadPatch(state="waiting", due_at=None))
            return PassEnd(how="failed")

    def news(self, wakes: int) -> None:
        """Nothing wakes it."""

    def halt(self) -> None:
        """Let it end."""

    async def give_up(self) -> None:
        """Let another process go on at once."""
        await self.lease.give_up(HeadPatch(state="pending", due_at=self.journal.clock.now()))
