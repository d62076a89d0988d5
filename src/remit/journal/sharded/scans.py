"""Scans over all shards, in one order that is the same for every process.

Positions count through the shards (placement.py). A scan may pass a position only when nothing can appear before it any
more, on any shard; so before each page those shards that gave out fewer positions leave out some, up to the last one
that any gave out.
"""

from __future__ import annotations

from heapq import merge
from typing import Final

from remit.journal.event import End, Ends, Placed, Scanned
from remit.journal.sharded.asking import Shards
from remit.journal.sharded.placement import to_global, to_local
from remit.journal.sharded.shard import ShardStore
from remit.journal.standing import STREAM

_PAGE: Final = 1_000


class Scans:
    """The scans of a sharded journal."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._level = 0
        """The last position of a shard that any of them was known to have given out."""

    async def scan(self, after: int, kinds: tuple[str, ...], limit: int) -> Scanned:
        """As Store.scan. Raises JournalError (JOURNAL_SHARD_UNAVAILABLE) while a shard is down."""
        await self._levelled()
        count = self._shards.count

        async def page(number: int, store: ShardStore) -> Scanned:
            return await store.scan(to_local(after, number, count), kinds, limit)

        pages = await self._shards.all(page)
        # Before the next position that one of them has not looked at.
        reached = min(to_global(page.position + 1, number, count) - 1 for number, page in enumerate(pages))
        placed = [*merge(*(_placed(page, number, count) for number, page in enumerate(pages)), key=_position)]
        taken = [one for one in placed[:limit] if one.position <= reached]
        position = taken[-1].position if len(taken) == limit else reached
        events = tuple([one for one in taken if one.event.stream != STREAM])  # each shard has its own
        return Scanned(events, position, more=len(taken) < len(placed) or any(page.more for page in pages))

    async def ends(self, after: int, limit: int) -> Ends:
        """As Store.ends. Raises as `scan` does."""
        newest: dict[str, End] = {}
        end, position, more = after + limit, after, True
        while more and position < end:
            page = await self.scan(position, (), min(_PAGE, limit))
            for placed in page.events:
                if placed.position <= end:
                    event = placed.event
                    newest.pop(event.stream, None)  # the newest one says its place in the order
                    newest[event.stream] = End(event.stream, event.seq, event.hash)
            more = page.more or any(placed.position > end for placed in page.events)
            if page.position == position:
                break
            position = page.position
        return Ends(tuple(newest.values()), min(position, end), more)

    async def _levelled(self) -> None:
        """Let all shards give out about the same positions. Raises as `scan` does."""
        newest = await self._shards.all(lambda _, store: store.level(self._level))
        self._level = max(self._level, *newest)
        behind = [number for number, position in enumerate(newest) if position < self._level]
        if behind:
            await self._shards.some(lambda _, store: store.level(self._level), behind)


def _placed(page: Scanned, number: int, count: int) -> list[Placed]:
    return [Placed(to_global(one.position, number, count), one.event) for one in page.events]


def _position(placed: Placed) -> int:
    return placed.position
