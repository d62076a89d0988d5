"""Moving a shard to another server, so that at every moment at most one of the two is written to.

    1. freeze    leases end, epochs grow, and nothing more is written or leased there   journal_moved
    2. copy      all rows with their numbers, in one transaction of the target
    3. prove     each head is the same, and each chain is whole
    4. retire    the old place is never taken back                                      journal_moved, final
    5. activate  the target runs jobs                                                   journal_activated

Killed between any two lines, the same command goes on; before step 4 `journal activate` of the old place takes it back.
Until processes are told of the new place they take the shard for down, and use the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from remit.codes import Code
from remit.errors import ChainBrokenError, UsageError
from remit.journal.event import HeadPatch, HeadQuery, StreamHead
from remit.journal.examination import examine
from remit.journal.journal import Journal
from remit.journal.kinds import JournalMoved, OptionalRaw, OptionalRef
from remit.journal.references import erasure_of
from remit.journal.retirement import (
    KIND,
    LIVE,
    MOVED,
    STREAM,
    CopyState,
    is_final,
    mark_final,
    mark_live,
    refusal,
    standing_of,
)
from remit.journal.sharded.shard import NAME, ShardIdentity, ShardStore
from remit.journal.values import RESTORE, value

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.journal.seals import Seals

Step = Callable[[str, int], None]
"""Told what begins now (`freeze`, `copy`, `prove`, `retire`, `activate`), and how many streams were proven."""
_PAGE: Final = 1_000


class MovedShard(msgspec.Struct, frozen=True, kw_only=True):
    """A shard at its new place."""

    number: int
    source: str
    target: str
    streams: int
    """Streams that were compared; 0: an earlier run had done all."""


async def move_shard(
    source: ShardStore,
    target: ShardStore,
    clock: Clock,
    seals: Seals | None = None,
    step: Step = lambda _what, _done: None,
    others: Sequence[ShardStore] = (),
) -> MovedShard:
    """Let a shard go on in an empty target. `others` are the other shards, on which some of its values may be.

    Raises UsageError if the source is not a shard, or the target not empty; JournalError (JOURNAL_MOVED) if the
    source went on elsewhere; AppendConflictError if someone took it back meanwhile; ChainBrokenError if something is
    damaged: nothing runs there then.
    """
    begin, end = Journal(source, clock, seals=seals), Journal(target, clock, seals=seals)
    folds = await source.folds(NAME, ())
    if not folds:
        raise UsageError(f"{source.url} is no shard", remedy="Use `remit journal copy` for a journal of its own.")
    number = msgspec.json.decode(folds[0].data, type=ShardIdentity).number
    here, there = await standing_of(begin), await end.head(STREAM)
    if here.state == LIVE:
        if await end.heads(HeadQuery(limit=1)):
            raise UsageError(f"{target.url} has records already", remedy="Name an empty schema: ?schema=NAME.")
        step("freeze", 0)
        writer = begin.writer(STREAM, KIND, await begin.head(STREAM))
        patch = HeadPatch(state=MOVED, title=target.url)
        await source.freeze(writer.stage(JournalMoved(target=target.url), patch=patch))
    elif here != CopyState(MOVED, target.url):
        raise refusal(source.url, here.state, here.place)
    streams, final = 0, await is_final(begin)
    if there is not None and there.state == LIVE:
        if not final:  # an older Remit moved it
            await mark_final(begin, target.url)
    elif not final:
        if there is None:
            step("copy", 0)
            await source.send(target)
        streams = await _prove(_Whole(begin, end, [Journal(other, clock) for other in others]), step)
        step("retire", streams)
        await mark_final(begin, target.url)
        step("activate", streams)
        await mark_live(end)
    elif await standing_of(end) == here:
        await mark_live(end)
    else:
        raise UsageError(f"{target.url} no longer has the shard", remedy=f"Restore it, then move {target.url} on.")
    return MovedShard(number=number, source=source.url, target=target.url, streams=streams)


class _Whole:
    """The records that prove the new place: its own, and what only other shards keep, such as a schema."""

    def __init__(self, begin: Journal, end: Journal, others: Sequence[Journal]) -> None:
        self.begin, self.end, self._others = begin, end, others

    async def blob(self, digest: str) -> bytes | None:
        """Return the bytes of a digest; None also if the old place has them, and the new one does not."""
        data = await self.end.blob(digest)
        elsewhere = data is None and await self.begin.blob(digest) is None
        for other in self._others if elsewhere else ():
            data = data if data is not None else await other.blob(digest)
        return data

    async def value(self, inline: OptionalRaw, ref: OptionalRef) -> bytes | None:
        return await value(self, inline, ref)

    async def records(self, stream: str) -> bool:
        """Return whether any of them has a stream."""
        return any([await journal.head(stream) is not None for journal in (self.end, *self._others)])


async def _prove(whole: _Whole, step: Step) -> int:
    """Compare every head, and check every chain and value; how many streams there are."""
    proven, count, before = set[str](), 0, None
    while page := await whole.begin.heads(HeadQuery(limit=_PAGE, before=before)):
        step("prove", count)
        for head in page:
            await _prove_stream(whole, head, proven)
        count, before = count + len(page), page[-1].stream
    return count


async def _prove_stream(whole: _Whole, head: StreamHead, proven: set[str]) -> None:
    end = whole.end
    if await end.head(head.stream) != head:
        raise ChainBrokenError(f"{head.stream}: the copy differs from the original", remedy="Empty it, and move again.")
    examined = await examine(head, end.pages(head), end.seals, whole, end.clock.now(), proven=proven)
    if examined.erased and not await whole.records(erasure_of(head.subject)):
        reason = f"{head.stream}: {examined.erased} values are gone, and no erasure of their subject is on record"
        raise ChainBrokenError(reason, code=Code.BLOB_MISSING, remedy=RESTORE)
