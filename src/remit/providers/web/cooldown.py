"""Search backends that blocked Remit are left alone for a while: in every process, and after a restart too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remit.clock import SECOND
from remit.journal.kinds import decode
from remit.journal.proven import Proven
from remit.providers.web.kinds import SearchBlocked

if TYPE_CHECKING:
    from remit.codes import Code
    from remit.journal.journal import Journal

KIND: Final = "search"
"""The kind of their streams."""


class Cooldowns:
    """Until when each backend is not asked, in the journal."""

    def __init__(self, journal: Journal, seconds: int) -> None:
        self._journal = journal
        self._seconds = seconds
        self._streams: dict[str, Proven] = {}
        self._until: dict[str, int] = {}

    async def seconds_left(self, backend: str) -> int:
        """Return for how many seconds a backend is still left alone; 0: it may be asked. Raises ChainBrokenError."""
        stream = self._streams.setdefault(backend, Proven(self._journal, f"{KIND}/{backend}"))
        for event in await stream.more():
            blocked = decode(event.kind, event.data)
            if isinstance(blocked, SearchBlocked):
                self._until[backend] = blocked.until
        return max(0, -((self._journal.clock.now() - self._until.get(backend, 0)) // SECOND))

    async def block(self, backend: str, cause: Code, seconds: float | None = None) -> None:
        """Leave a backend alone from now on: for so many seconds, or as long as the settings say."""
        until = self._journal.clock.now() + int((self._seconds if seconds is None else seconds) * SECOND)
        await self._journal.post(f"{KIND}/{backend}", KIND, SearchBlocked(cause=cause.name, until=until))
