"""The position up to which the whole journal can be read without passing an event that is still being written.

Positions are given as events are inserted, and become visible as transactions commit: not in the same order. A reader
that went on after the newest one it saw would miss those below it that are committed later. So it looks who is writing:
every transaction that was given a position holds a lock on the table until it has ended. Once each of those that were
seen beside a position has ended, nothing can appear below it any more.

Appends do nothing for this and never wait. Transactions that do not write events do not count.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import JournalError

if TYPE_CHECKING:
    import asyncpg

# The newest position first: the locks are looked at after the snapshot was taken.
_LOOK: Final = """
SELECT (SELECT max(position) FROM events), pg_is_in_recovery(), ARRAY(
    SELECT virtualtransaction FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'events'::regclass AND mode = 'RowExclusiveLock'
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
)
"""
_PAUSE_S: Final = 0.005
_LOOKS: Final = 20
"""The number of times that writers are waited for before a page comes without what they write."""
_CLOCK: Final = SystemClock()

_STANDBY: Final = "Name the primary server: a standby does not say who is writing."


class Horizon:
    """The state that one process has seen of positions and of those who were writing."""

    def __init__(self) -> None:
        self._settled = 0
        """Below it nothing can appear."""
        self._seen = 0
        self._writing: frozenset[str] = frozenset()
        """The transactions that were writing when `seen` was the newest position; empty: none to wait for."""
        self._looking = asyncio.Lock()
        self._level = 0
        """Positions up to here were given out, used or not."""

    def level(self, position: int) -> None:
        """Count positions that were given out and left out as if events had them."""
        self._level = max(self._level, position)

    async def reach(self, db: asyncpg.Connection, after: int) -> tuple[int, int]:
        """The last position that may be read, and the newest there is; waits a moment for those that write.

        Raises JournalError on a standby.
        """
        newest = 0
        for _ in range(_LOOKS):
            async with self._looking:  # one after the other, or an older look would speak for a newer one
                newest = await self._look(db)
            if self._settled > after or newest <= after:
                break
            await _CLOCK.sleep(_PAUSE_S)
        return self._settled, newest

    async def _look(self, db: asyncpg.Connection) -> int:
        level = self._level
        newest_txid, standby, who = await db.fetchrow(_LOOK)
        if standby:
            raise JournalError("a standby cannot be read across streams", code=Code.JOURNAL_READ_ONLY, remedy=_STANDBY)
        newest, writing = max(newest_txid or 0, level), frozenset(who)
        if self._writing.isdisjoint(writing):
            self._settled, self._writing = max(self._settled, self._seen), frozenset()
        if not writing:
            self._settled = max(self._settled, newest)
        elif not self._writing:
            self._seen, self._writing = newest, writing
        return int(newest)
