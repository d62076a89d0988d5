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

News of all shards as news of one journal: what is told of any of them ends a wait.

Scans over all shards, in one order that is the same for every process.

Positions count through the shards (placement.py). A scan may pass a position only when nothing can appear before it any
more, on any shard; so before each page those shards that gave out fewer positions leave out some, up to the last one
that any gave out.

Lists over all shards, newest stream first, and what a claim gets: merged from what each shard gives in its order.

A page goes on after a stream, on every shard behind what the last page took from it. This process remembers that, for
the pages that it gave. For a page of another process the time at which that stream was made says it, which is as exact
as the writers' clocks agree.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from heapq import merge
from itertools import islice
from typing import Final

import msgspec
from msgspec.structs import replace

from remit.codes import Code
from remit.errors import JournalError
from remit.ids import new_id
from remit.journal.commit import settle
from remit.journal.event import (
    Blob,
    Commit,
    Cut,
    Ends,
    Event,
    HeadQuery,
    JournalFold,
    Lease,
    LeaseClaim,
    Placed,
    Scanned,
    StreamEnd,
    StreamHead,
    StreamTally,
)
from remit.journal.references import names_in
from remit.journal.retirement import STREAM
from remit.journal.sharded.placement import shard_of, to_global, to_local
from remit.journal.sharded.shard import Shard, Shards, ShardStore, Size
from remit.journal.watch import JournalMarks, done
from remit.tasks import Tasks

Wait = Callable[[ShardStore, int], Awaitable[int]]


class ShardNews:
    """Follows each shard from the first wait on, and again once it is back."""

    def __init__(self, shards: Shards, watch: JournalMarks) -> None:
        self._shards, self._watch = shards, watch
        self._followed: dict[int, list[asyncio.Task[None]]] = {}
        self._beginning = asyncio.Lock()

    async def listening(self) -> None:
        """Return once nothing that is written from now on, to a shard that is up, goes unnoticed."""
        async with self._beginning:
            new = [shard for shard in self._shards.every if shard.is_up and not self._is_followed(shard)]
            if new:
                marks = await self._shards.some(lambda _, store: _marks(store), [shard.number for shard in new])
                for shard in new:
                    if shard.number in marks:
                        self._follow(shard, *marks[shard.number])

    async def close(self) -> None:
        """Follow no more."""
        tasks = [task for pair in self._followed.values() for task in pair]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _is_followed(self, shard: Shard) -> bool:
        tasks = self._followed.get(shard.number, [])
        return bool(tasks) and not any(task.done() for task in tasks)

    def _follow(self, shard: Shard, events: int, heads: int) -> None:
        for task in self._followed.get(shard.number, []):
            task.cancel()
        self._followed[shard.number] = [
            asyncio.create_task(self._pass_on(shard, wait, mark), name=f"remit:shard-{shard.number}-news")
            for wait, mark in ((_changed, events), (_heads_changed, heads))
        ]

    async def _pass_on(self, shard: Shard, wait: Wait, mark: int) -> None:
        try:
            while True:
                mark = await shard.ask(lambda store, since=mark: wait(store, since))  # type: ignore[misc] # its default is an int
                self._watch.notify(heads=wait is _heads_changed)
        except JournalError:
            return  # it is down, or closed: who waits hears of it when it is back


async def _marks(store: ShardStore) -> tuple[int, int]:
    return await store.changed(0), await store.heads_changed(0)


async def _changed(store: ShardStore, since: int) -> int:
    return await store.changed(since)


async def _heads_changed(store: ShardStore, since: int) -> int:
    return await store.heads_changed(since)


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
        taken = [row for row in placed[:limit] if row.position <= reached]
        position = taken[-1].position if len(taken) == limit else reached
        events = tuple([row for row in taken if row.event.stream != STREAM])  # each shard has its own
        return Scanned(events, position, more=len(taken) < len(placed) or any(page.more for page in pages))

    async def ends(self, after: int, limit: int) -> Ends:
        """As Store.ends. Raises as `scan` does."""
        newest: dict[str, StreamEnd] = {}
        end, position, more = after + limit, after, True
        while more and position < end:
            page = await self.scan(position, (), min(_PAGE, limit))
            for placed in page.events:
                if placed.position <= end:
                    event = placed.event
                    newest.pop(event.stream, None)  # the newest one says its place in the order
                    newest[event.stream] = StreamEnd(event.stream, event.seq, event.hash)
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
    return [Placed(to_global(event.position, number, count), event.event) for event in page.events]


def _position(placed: Placed) -> int:
    return placed.position


_PAGES: Final = 256
"""Pages whose ends are remembered."""


class Lists:
    """The lists of a sharded journal."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._ends: OrderedDict[bytes, dict[int, HeadQuery]] = OrderedDict()
        """By page: the query with which each shard goes on."""

    async def heads(self, query: HeadQuery) -> list[StreamHead]:
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
        if (end := self._ends.get(_key(query, query.before))) is not None:
            return end
        own, before = shard_of(query.before, count), query.before
        head = await self._shards.of(before).ask(lambda store: store.head(before))
        created_at = 0 if head is None else head.created_at
        # Of streams made at the same time those of a lower shard come first.
        others = {number: replace(query, before=None, until=created_at + (number > own)) for number in range(count)}
        return {**others, own: query}

    def _remember(self, query: HeadQuery, queries: dict[int, HeadQuery], heads: Sequence[StreamHead]) -> None:
        queries = dict(queries)
        for head in heads:
            number = shard_of(head.stream, self._shards.count)
            queries[number] = replace(query, before=head.stream)
        self._ends[_key(query, heads[-1].stream)] = queries
        if len(self._ends) > _PAGES:
            self._ends.popitem(last=False)

    async def due(self, claim: LeaseClaim) -> list[StreamHead]:
        """Return what a claim would get now, of the shards that answer."""
        more = replace(claim, limit=claim.limit + 1)  # whether there are more decides the order
        pages = await self._shards.some(lambda _, store: store.due(more))
        return _in_turn([head for page in pages.values() for head in page], claim)

    async def claim(self, claim: LeaseClaim) -> list[Lease]:
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


def _in_turn(heads: list[StreamHead], claim: LeaseClaim) -> list[StreamHead]:
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


def _place(share: str, claim: LeaseClaim) -> tuple[bool, str]:
    """The place of a share after the one that had the last turn."""
    return share <= claim.after, share


def _key(query: HeadQuery, last: str) -> bytes:
    return msgspec.json.encode(replace(query, before=last, limit=0), order="deterministic")


def _age(head: StreamHead) -> int:
    return -head.created_at


def _urgency(head: StreamHead) -> tuple[int, int, int]:
    return -head.priority, head.due_at or 0, head.created_at


def _was_urgent(lease: Lease) -> tuple[int, int, int]:
    return -lease.head.priority, lease.previous_due or 0, lease.head.created_at


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
        self._watch = JournalMarks()
        self._news = ShardNews(self.shards, self._watch)
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
                reason = f"one commit on two shards of the journal: {stream} is not on shard {shard.number}"
                return JournalError(reason, code=Code.RECORD_INVALID, remedy="Use one root, or commit them separately.")
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

    async def keep_folds(self, folds: Sequence[JournalFold], before: int) -> bool:
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
        position, more = cut.position, bool(cut.names)
        while more:
            page = await self._scans.scan(position, (), _PAGE)
            if any(not cut.names.isdisjoint(names_in(placed.event.data)) for placed in page.events):
                return False
            more, position = page.more and page.position > position, page.position
        local_mark = to_local(cut.position, shard.number, self.shards.count)
        return await shard.ask(lambda store: store.cut(replace(cut, position=local_mark)))

    async def snapshot(self, path: str) -> None:
        """Do nothing: the servers have their own tools."""

    async def compact(self) -> int:
        return sum((await self.shards.some(lambda _, store: store.compact())).values())

    # --- reading

    async def head(self, stream: str) -> StreamHead | None:
        if stream == STREAM:  # each shard has its own
            return None
        return await self.shards.of(stream).ask(lambda store: store.head(stream))

    async def heads(self, query: HeadQuery) -> list[StreamHead]:
        return await self._lists.heads(query)

    async def counts(self, kind: str) -> dict[str, int]:
        counts = Counter[str]()
        for part in (await self.shards.some(lambda _, store: store.counts(kind))).values():
            counts.update(part)
        return dict(counts)

    async def tallies(self, kind: str, since: int, width: int, bounds: Sequence[int]) -> list[StreamTally]:
        numbers = Counter[tuple[int, str, int | None]]()
        for tallies in (await self.shards.some(lambda _, store: store.tallies(kind, since, width, bounds))).values():
            for tally in tallies:
                numbers[tally.stretch, tally.state, tally.took] += tally.number
        return [StreamTally(*key, number) for key, number in numbers.items()]

    async def read(self, stream: str, after: int, limit: int) -> list[Event]:
        return await self.shards.of(stream).ask(lambda store: store.read(stream, after, limit))

    async def scan(self, after: int, kinds: tuple[str, ...], limit: int) -> Scanned:
        return await self._scans.scan(after, kinds, limit)

    async def ends(self, after: int, limit: int) -> Ends:
        return await self._scans.ends(after, limit)

    async def folds(self, name: str, parts: tuple[str, ...]) -> list[JournalFold]:
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

    async def claim(self, claim: LeaseClaim) -> list[Lease]:
        return await self._lists.claim(claim)

    async def due(self, claim: LeaseClaim) -> list[StreamHead]:
        return await self._lists.due(claim)

    async def acquire(self, stream: str, claim: LeaseClaim, over: str | None) -> Lease | None:
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

    async def leases(self, kind: str) -> list[StreamHead]:
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
        reason = shard.failure.message if shard.failure is not None else ""
        return ShardRow(number=shard.number, place=shard.url, state="down", why=reason)
    return ShardRow(number=shard.number, place=shard.url, state="up", streams=size.streams, bytes=size.bytes)


async def _new_journal() -> str:
    return new_id("journal")


def _digest(blob: Blob) -> str:
    return blob.digest
