"""A journal on several PostgreSQL servers: every promise of port.py within a root, and lists over all of them.

    by root      commits, heads, events, the leases of a stream     its shard, and no other
    merged       lists, counts, claims, what is due                 the shards that answer; `missing` names the others
    all          scans, values in order, erasures, cuts             refused while one is down
    the first    folds: sums, limits, indexes of parts              shard 0 has them all

A shard that is down stops its own roots (JOURNAL_SHARD_UNAVAILABLE), and what needs all of them.

A commit is a transaction of one shard, for all that it writes has one root. These are weaker than on one server: over
several roots, a scan gives events in an order that is only about that of their commits; a value that is erased goes
from the other shards just before the erasure is recorded, so after a crash in between, erase again; and a cut looks on
other shards for new events that name its values just before it removes them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from heapq import merge
from typing import Final

import msgspec
from msgspec.structs import replace

from remit.codes import Code
from remit.errors import JournalError
from remit.ids import new_id
from remit.journal.batching import settle
from remit.journal.event import Blob, Claim, Commit, Cut, Ends, Event, Fold, Head, HeadQuery, Lease, Scanned, Tally
from remit.journal.references import names_in
from remit.journal.sharded.asking import Shards
from remit.journal.sharded.lists import Lists
from remit.journal.sharded.news import News
from remit.journal.sharded.placement import shard_of, to_local
from remit.journal.sharded.scans import Scans
from remit.journal.sharded.shard import Shard, ShardStore, Size
from remit.journal.standing import STREAM
from remit.journal.watch import Watch, done
from remit.tasks import Tasks

_PAGE: Final = 1_000
_WHOLE: Final = "Copy or move each shard by itself; `remit journal shards` lists them."


class ShardRow(msgspec.Struct, frozen=True, kw_only=True):
    """A shard in a list."""

    number: int
    place: str
    """Its place, without secrets."""
    state: str
    """`up`, or `down`: it does not answer."""
    streams: int = 0
    bytes: int = 0
    why: str = ""


class ShardedStore:
    """Streams in several stores, each on the one of its root."""

    def __init__(self, urls: Sequence[str], open_store: Callable[[str], ShardStore]) -> None:
        opened = [Shard(number, len(urls), partial(open_store, url), self._back) for number, url in enumerate(urls)]
        self.shards = Shards(opened)
        self._owner = opened[0]
        self._lists, self._scans = Lists(self.shards), Scans(self.shards)
        self._watch = Watch()
        self._news = News(self.shards, self._watch)
        self._tasks = Tasks()
        self._owner.join(_new_journal)
        for shard in opened[1:]:
            shard.join(self._journal)

    async def _journal(self) -> str:
        return (await self._owner.joined()).journal

    @property
    def url(self) -> str:
        return f"{self._owner.url} and {self.shards.count - 1} more shards"

    def is_older(self) -> bool:
        return False

    def missing(self) -> list[str]:
        return [f"shard {shard.number} ({shard.url})" for shard in self.shards.every if not shard.is_up]

    async def answers(self, stream: str) -> bool:
        return await self.shards.answers(stream)

    async def rows(self) -> list[ShardRow]:
        """Return the shards, with the state and size of each."""
        try:
            sizes = await self.shards.some(lambda _, store: store.size())
        except JournalError as error:
            if error.code is not Code.JOURNAL_SHARD_UNAVAILABLE:
                raise
            sizes = {}
        return [_row(shard, sizes.get(shard.number)) for shard in self.shards.every]

    # --- writing

    def submit(self, commit: Commit) -> None:
        if commit.erases:
            self._tasks.begin(self._erase(commit), name="remit:shards-erase")
            return
        shard = self._owner
        if commit.appends:
            shard = self.shards.of(commit.appends[0].stream)
            if len(commit.appends) == 1 and not commit.wakes and commit.appends[0].stream != STREAM:
                shard.submit(commit)
                return
        elif commit.wakes:
            shard = self.shards.of(commit.wakes[0])
        elif commit.blobs:
            shard = self.shards.of(commit.blobs[0].digest)
        if (error := self._refusal(commit, shard)) is not None:
            settle([(commit, error)])
        else:
            shard.submit(commit)

    def _refusal(self, commit: Commit, shard: Shard) -> JournalError | None:
        """Return why a commit cannot be one transaction of a shard."""
        if any(append.stream == STREAM for append in commit.appends):
            return JournalError("a sharded journal does not move as one", code=Code.RECORD_INVALID, remedy=_WHOLE)
        for stream in (*(append.stream for append in commit.appends), *commit.wakes):
            if shard_of(stream, self.shards.count) != shard.number:
                why = f"one commit on two shards of the journal: {stream} is not on shard {shard.number}"
                return JournalError(why, code=Code.RECORD_INVALID, remedy="Use one root, or commit them separately.")
        return None

    async def _erase(self, commit: Commit) -> None:
        """Erase bytes wherever a shard may keep them, and then write the commit that says so."""
        gone = tuple(blob for blob in commit.blobs if not blob.data)
        rest = replace(commit, blobs=tuple(blob for blob in commit.blobs if blob.data), erases=False)

        async def erase(_number: int, store: ShardStore) -> None:
            removal = Commit(appends=(), blobs=gone, at=commit.at, aside=commit.aside)
            if (error := await done(store, removal, None)) is not None:
                raise error

        try:
            await self.shards.all(erase)
        except JournalError as error:
            settle([(commit, error)])
        else:
            self.submit(rest)

    @property
    def backlog(self) -> int:
        return sum(shard.backlog for shard in self.shards.every)

    async def drained(self) -> None:
        await self.shards.some(lambda _, store: store.drained())
        await self._tasks.ended()

    async def keep_folds(self, folds: Sequence[Fold], before: int) -> bool:
        return await self._owner.ask(lambda store: store.keep_folds(folds, before))

    async def prune(self, now: int, limit: int) -> int:
        erased = 0
        for shard in self.shards.every:
            if shard.is_up and erased < limit:
                most = limit - erased
                erased += await shard.ask(lambda store, most=most: store.prune(now, most))  # type: ignore[misc] # an int
        return erased

    async def cut(self, cut: Cut) -> bool:
        streams = [append.stream for append in cut.appends]
        shard = self.shards.of(streams[0])
        if any(self.shards.of(stream) is not shard for stream in streams):
            raise JournalError("a cut has one root", code=Code.RECORD_INVALID, remedy="Cut each root by itself.")
        position, more = cut.seen, bool(cut.names)
        while more:
            page = await self._scans.scan(position, (), _PAGE)
            if any(not cut.names.isdisjoint(names_in(placed.event.data)) for placed in page.events):
                return False
            more, position = page.more and page.position > position, page.position
        seen = to_local(cut.seen, shard.number, self.shards.count)
        return await shard.ask(lambda store: store.cut(replace(cut, seen=seen)))

    async def snapshot(self, path: str) -> None:
        """Do nothing: the servers have their own tools."""

    async def compact(self) -> int:
        return sum((await self.shards.some(lambda _, store: store.compact())).values())

    # --- reading

    async def head(self, stream: str) -> Head | None:
        if stream == STREAM:  # each shard has its own
            return None
        return await self.shards.of(stream).ask(lambda store: store.head(stream))

    async def heads(self, query: HeadQuery) -> list[Head]:
        return await self._lists.heads(query)

    async def counts(self, kind: str) -> dict[str, int]:
        counts = Counter[str]()
        for one in (await self.shards.some(lambda _, store: store.counts(kind))).values():
            counts.update(one)
        return dict(counts)

    async def tallies(self, kind: str, since: int, width: int, bounds: Sequence[int]) -> list[Tally]:
        numbers = Counter[tuple[int, str, int | None]]()
        for tallies in (await self.shards.some(lambda _, store: store.tallies(kind, since, width, bounds))).values():
            for tally in tallies:
                numbers[tally.stretch, tally.state, tally.took] += tally.number
        return [Tally(*key, number) for key, number in numbers.items()]

    async def read(self, stream: str, after: int, limit: int) -> list[Event]:
        return await self.shards.of(stream).ask(lambda store: store.read(stream, after, limit))

    async def scan(self, after: int, kinds: tuple[str, ...], limit: int) -> Scanned:
        return await self._scans.scan(after, kinds, limit)

    async def ends(self, after: int, limit: int) -> Ends:
        return await self._scans.ends(after, limit)

    async def folds(self, name: str, parts: tuple[str, ...]) -> list[Fold]:
        return await self._owner.ask(lambda store: store.folds(name, parts))

    async def blob(self, digest: str) -> bytes | None:
        answers = await self.shards.some(lambda _, store: store.blob(digest))
        values = [data for data in answers.values() if data is not None]
        if not values and len(answers) < self.shards.count:
            await self.shards.all(lambda _, store: store.blob(digest))  # raises, unless it came back just now
        return min(values, key=len, default=None)  # empty if they were erased

    async def blobs(self, after: str, limit: int) -> list[Blob]:
        values: dict[str, Blob] = {}
        for blob in merge(*await self.shards.all(lambda _, store: store.blobs(after, limit)), key=_digest):
            if blob.digest not in values or not blob.data:
                values[blob.digest] = blob
        return list(values.values())[:limit]

    async def integrity(self) -> list[str]:
        faults = await self.shards.all(lambda _, store: store.integrity())
        return [f"shard {number}: {line}" for number, lines in enumerate(faults) for line in lines]

    # --- leases

    async def claim(self, claim: Claim) -> list[Lease]:
        return await self._lists.claim(claim)

    async def due(self, claim: Claim) -> list[Head]:
        return await self._lists.due(claim)

    async def acquire(self, stream: str, claim: Claim, over: str | None) -> Lease | None:
        return await self.shards.of(stream).ask(lambda store: store.acquire(stream, claim, over))

    async def renew(self, leases: Sequence[tuple[str, int]], lease_until: int) -> list[str]:
        groups = self.shards.by_number(leases, lambda lease: lease[0])
        held = await self.shards.some(lambda number, store: store.renew(groups[number], lease_until), groups)
        return [stream for streams in held.values() for stream in streams]

    async def wakes(self, streams: Sequence[str]) -> dict[str, int]:
        groups = self.shards.by_number(streams, str)
        answers = await self.shards.some(lambda number, store: store.wakes(groups[number]), groups)
        return {stream: count for wakes in answers.values() for stream, count in wakes.items()}

    async def next_due(self, kind: str, routes: tuple[str, ...]) -> int | None:
        dues = await self.shards.some(lambda _, store: store.next_due(kind, routes))
        return min((due for due in dues.values() if due is not None), default=None)

    async def routes(self, kind: str) -> list[str]:
        answers = await self.shards.some(lambda _, store: store.routes(kind))
        return sorted({route for routes in answers.values() for route in routes})

    async def leases(self, kind: str) -> list[Head]:
        answers = await self.shards.some(lambda _, store: store.leases(kind))
        return [*merge(*answers.values(), key=lambda head: head.lease_until or 0)]

    # --- watching

    async def changed(self, since: int) -> int:
        await self._news.listening()
        return await self._watch.changed(since)

    async def heads_changed(self, since: int) -> int:
        await self._news.listening()
        return await self._watch.heads_changed(since)

    def _back(self) -> None:
        """Take whatever happened on a shard while it was down for news."""
        self._watch.notify(heads=True)

    async def close(self) -> None:
        await self._tasks.ended()
        await self._watch.close()
        await self._news.close()
        await asyncio.gather(*(shard.close() for shard in self.shards.every))


def _row(shard: Shard, size: Size | None) -> ShardRow:
    if size is None or shard.failure is not None:
        why = shard.failure.message if shard.failure is not None else ""
        return ShardRow(number=shard.number, place=shard.url, state="down", why=why)
    return ShardRow(number=shard.number, place=shard.url, state="up", streams=size.streams, bytes=size.bytes)


async def _new_journal() -> str:
    return new_id("journal")


def _digest(blob: Blob) -> str:
    return blob.digest
