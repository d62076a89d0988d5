"""Pages of the whole journal: how far one of events reaches, whatever the backend, and every head, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, Protocol

from msgspec.structs import replace

from remit.journal.event import Event, Head, HeadQuery, Placed, Scanned

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


class Heads(Protocol):
    """The journal, or the storage behind it."""

    async def heads(self, query: HeadQuery) -> list[Head]:
        """Heads that match, newest stream first, at most `limit`."""
        ...


async def every_head(journal: Heads, query: HeadQuery) -> AsyncIterator[Head]:
    """Give all heads that match, newest stream first; the query's own `limit` does not count."""
    query = replace(query, limit=_HEADS)
    while page := await journal.heads(query):
        for head in page:
            yield head
        if len(page) < query.limit:
            return
        query = replace(query, before=page[-1].stream)
