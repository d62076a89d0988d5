"""Pages of the whole journal: how far one of events reaches, whatever the backend, and every head, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from remit.journal.event import Event, HeadQuery, Placed, Scanned, StreamHead

if TYPE_CHECKING:
    from remit.journal.journal import Journal

_SPAN: Final = 10_000
"""Positions looked at for one page of some kinds, so that rare ones do not hold up a reader."""
_HEADS: Final = 500
"""Heads that are read at once."""


def reach(after: int, settled: int, kinds: Sequence[str]) -> int:
    """The last position that a page looks at."""
    return max(after, min(settled, after + _SPAN) if kinds else settled)


def page(rows: Sequence[Sequence[Any]], limit: int, *, reached: int, newest: int) -> Scanned:
    """The page made of rows of position, stream, seq, kind, at, data and hash."""
    events = tuple([Placed(row[0], Event(*row[1:])) for row in rows])
    position = events[-1].position if len(events) == limit else reached
    return Scanned(events, position, more=position < newest)


async def every_page(journal: Journal, after: int, kinds: Iterable[str], limit: int) -> AsyncIterator[Scanned]:
    """Give the pages behind a position, up to the newest event."""
    more = True
    while more:
        page = await journal.scan(after, kinds, limit)
        yield page
        more, after = page.more and page.position > after, page.position


async def event_at(journal: Journal, position: int) -> Event | None:
    """Return the event at a position; None: it was removed, or there never was one."""
    page = await journal.scan(position - 1, (), 1)
    return next((placed.event for placed in page.events if placed.position == position), None)


async def every_head(journal: Journal, query: HeadQuery) -> AsyncIterator[StreamHead]:
    """Give all heads that match, newest stream first; the query's own `limit` does not count."""
    query = replace(query, limit=_HEADS)
    while page := await journal.heads(query):
        for head in page:
            yield head
        if len(page) < query.limit:
            return
        query = replace(query, before=page[-1].stream)
