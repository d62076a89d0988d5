"""A stream read so that nothing of it is believed before it is proven (rule 14).

What one process after another appends to has no writer that knows the chain: an inbox, the pins of a server, a request.
A reader walks the chain up to the head, and looks at the head's seal where there are keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.journal.event import root
from remit.journal.examination import prove

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal


class ProvenStream:
    """One stream, as far as it was read and proven."""

    def __init__(self, journal: Journal, stream: str) -> None:
        self.stream = stream
        self.seq = 0
        """Of the last event that was proven."""
        self._journal = journal
        self._hash = root(stream)

    async def more(self) -> list[Event]:
        """Return what came since, proven. Events behind the head are not its history, and left out.

        Raises ChainBrokenError (CHAIN_BROKEN, HEAD_UNSEALED or HEAD_FORGED); what was read before stays proven.
        """
        seq, chained = self.seq, self._hash  # another task may read on meanwhile
        events = await self._journal.read(self.stream, seq)
        if not events:
            return []
        head = await self._journal.head(self.stream)
        if head is None or head.seq <= seq:
            return []
        if head.seq > events[-1].seq:  # more came between the two reads
            events = await self._journal.read(self.stream, seq)
        events = [event for event in events if event.seq <= head.seq]
        prove(head, events, self._journal.seals, (seq, chained))
        if head.seq > self.seq:
            self.seq, self._hash = head.seq, head.hash
        return events
