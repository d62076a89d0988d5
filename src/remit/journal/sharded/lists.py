"""Lists over all shards, newest stream first, and what a claim gets: merged from what each shard gives in its order.

A page goes on after a stream, on every shard behind what the last page took from it. This process remembers that, for
the pages that it gave. For a page of another process the time at which that stream was made says it, which is as exact
as the writers' clocks agree.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from heapq import merge
from itertools import islice
from typing import Final

import msgspec
from msgspec.structs import replace

from remit.journal.event import Claim, Head, HeadQuery, Lease
from remit.journal.sharded.asking import Shards
from remit.journal.sharded.placement import shard_of
from remit.journal.standing import STREAM

_PAGES: Final = 256
"""Pages whose ends are remembered."""


class Lists:
    """The lists of a sharded journal."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._ends: OrderedDict[bytes, dict[int, HeadQuery]] = OrderedDict()
        """By page: the query with which each shard goes on."""

    async def heads(self, query: HeadQuery) -> list[Head]:
        """Heads that match, newest stream first, of the shards that answer."""
        if query.prefix.count("/") > 1:  # all below one root
            return await self._shards.of(query.prefix).ask(lambda store: store.heads(query))
        queries = await self._queries(query)
        one_more = query.limit + 1  # for the stream of each shard that says where it is among its copies
        pages = await self._shards.some(lambda number, store: store.heads(replace(queries[number], limit=one_more)))
        if query.subject:  # who erases has to know all of them
            self._shards.insist(pages)
        every = merge(*(pages[number] for number in sorted(pages)), key=_age)
        heads = [*islice((head for head in every if head.stream != STREAM), query.limit)]
        if heads:
            self._remember(query, queries, heads)
        return heads

    async def _queries(self, query: HeadQuery) -> dict[int, HeadQuery]:
        """Return what each shard is asked."""
        count = self._shards.count
        if query.before is None:
            return dict.fromkeys(range(count), query)
        if (kept := self._ends.get(_key(query, query.before))) is not None:
            return kept
        own, before = shard_of(query.before, count), query.before
        head = await self._shards.of(before).ask(lambda store: store.head(before))
        created_at = 0 if head is None else head.created_at
        # Of streams made at the same time those of a lower shard come first.
        others = {number: replace(query, before=None, until=created_at + (number > own)) for number in range(count)}
        return {**others, own: query}

    def _remember(self, query: HeadQuery, queries: dict[int, HeadQuery], heads: Sequence[Head]) -> None:
        queries = dict(queries)
        for head in heads:
            number = shard_of(head.stream, self._shards.count)
            queries[number] = replace(query, before=head.stream)
        self._ends[_key(query, heads[-1].stream)] = queries
        if len(self._ends) > _PAGES:
            self._ends.popitem(last=False)

    async def due(self, claim: Claim) -> list[Head]:
        """Return what a claim would get now, of the shards that answer."""
        more = replace(claim, limit=claim.limit + 1)  # whether there are more decides the order
        pages = await self._shards.some(lambda _, store: store.due(more))
        return _in_turn([head for page in pages.values() for head in page], claim)

    async def claim(self, claim: Claim) -> list[Lease]:
        """Lease what is due, first the most urgent of all shards: each is asked for as many as it has of them."""
        heads = await self.due(claim)
        wanted = self._shards.by_number(heads, lambda head: head.stream)
        leases = await self._shards.some(
            lambda number, store: store.claim(replace(claim, limit=len(wanted[number]))), wanted
        )
        places = {head.stream: place for place, head in enumerate(heads)}
        every = [lease for page in leases.values() for lease in page]
        every.sort(key=lambda lease: (places.get(lease.head.stream, len(places)), *_was_urgent(lease)))
        # The next claim passes over no share that one of these shards has not looked at; some looked at no turns.
        turns = [lease.head.share if lease.turn == claim.after else lease.turn for lease in every]
        turn = min(turns, key=lambda share: _place(share, claim), default=claim.after)
        return [replace(lease, turn=turn) for lease in every]


def _in_turn(heads: list[Head], claim: Claim) -> list[Head]:
    """The first of these due heads: by urgency, and shares in turn if there are more than the claim takes."""
    heads.sort(key=_urgency)
    if len(heads) <= claim.limit:
        return heads
    rounds = Counter[tuple[int, str]]()
    places = dict[str, tuple[int, int, bool, str]]()
    for head in heads:
        places[head.stream] = (-head.priority, rounds[head.priority, head.share], *_place(head.share, claim))
        rounds[head.priority, head.share] += 1
    return sorted(heads, key=lambda head: places[head.stream])[: claim.limit]


def _place(share: str, claim: Claim) -> tuple[bool, str]:
    """The place of a share after the one that had the last turn."""
    return share <= claim.after, share


def _key(query: HeadQuery, last: str) -> bytes:
    return msgspec.json.encode(replace(query, before=last, limit=0), order="deterministic")


def _age(head: Head) -> int:
    return -head.created_at


def _urgency(head: Head) -> tuple[int, int, int]:
    return -head.priority, head.due_at or 0, head.created_at


def _was_urgent(lease: Lease) -> tuple[int, int, int]:
    return -lease.head.priority, lease.previous_due or 0, lease.head.created_at
