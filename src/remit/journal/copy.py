"""Copying a journal to another backend, and proving that nothing was lost or changed on the way.

Moving a journal to another place, so that at every moment at most one of the two runs its jobs.

    1. the target is a copy under way, and runs nothing   journal_copied
    2. everything is copied and proven                    copy.py
    3. the copy is complete                               journal_copied
    4. the source is retired, unless this was a backup    journal_moved
    5. what was written to the source meanwhile is copied and proven
    6. the target is activated                            journal_activated

After a crash the same command goes on. Between 4 and 6 neither runs jobs: what each refuses says how to go on.

Sealing the heads of a journal that has none, or not under the key in use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from remit.codes import Code
from remit.errors import AppendConflictError, ChainBrokenError, JournalError, RecordPrunedError, StateError
from remit.journal.event import NO_PATCH, Append, Cut, Event, HeadPatch, HeadQuery, StreamHead, link, root
from remit.journal.examination import examine
from remit.journal.journal import PAGE, Journal
from remit.journal.kinds import JournalVouched
from remit.journal.retirement import (
    COPYING,
    LIVE,
    MOVED,
    STREAM,
    CopyState,
    busy,
    is_final,
    mark_copied,
    mark_live,
    mark_moved,
    refusal,
    standing_of,
)
from remit.journal.scan import every_head
from remit.journal.seals import Seals
from remit.journal.values import stub_of

_SIGNING: Final = "recorder"
"""Streams of this kind speak of all others: they are copied as they were before those were looked at."""
Progress = Callable[[str, int, int], None]
"""Called with what is being done (`copy` or `prove`), how many streams are done, and how many there are."""


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """What a copy holds."""

    streams: int
    events: int
    blobs: int
    """Values and evidence kept by digest."""
    added: int
    """Events that were not there before: fewer where an earlier copy was broken off."""


async def copy(source: Journal, target: Journal, progress: Progress = lambda _what, _done, _all: None) -> Copied:
    """Copy everything, then compare each stream's chain in the target with the head in the source.

    A copy that was broken off goes on where it was. Leases stay behind, for they belong to workers; what was ever woken
    is due in the target.
    Raises JournalError: JOURNAL_LOCKED while someone works on a stream of the source; APPEND_CONFLICT where the target
    holds another history of a stream, or more of it, and nothing is copied then; CHAIN_BROKEN where a copied stream
    does not prove equal.
    """
    heads = await _heads(source)
    _refuse_busy(source, heads)
    present = {head.stream: head for head in await _heads(target)}
    for head in heads:
        if head.stream in present:
            await _refuse_another_history(source, head, present[head.stream])
    blobs = await _copy_blobs(source, target)
    added = 0
    for number, head in enumerate(heads):
        progress("copy", number, len(heads))
        added += await _copy_stream(source, target, head, present.get(head.stream))
        if head.wakes and not head.closed:
            await target.wake(head.stream, aside=True)  # what it was woken for may not have been looked at
    proven = set[str]()
    for number, head in enumerate(heads):
        progress("prove", number, len(heads))
        await _prove(target, head, proven)
    progress("prove", len(heads), len(heads))
    return Copied(streams=len(heads), events=sum(head.seq for head in heads), blobs=blobs, added=added)


async def refuse_busy(source: Journal) -> None:
    """Raise what `copy` would while someone works on the source: before a target is made that would stay empty."""
    _refuse_busy(source, await _heads(source))


def _refuse_busy(source: Journal, heads: Sequence[StreamHead]) -> None:
    now = source.clock.now()
    held = [head for head in heads if not head.closed and head.lease_until is not None and head.lease_until > now]
    if held:
        raise busy(len(held), held[0].stream)


async def _copy_blobs(source: Journal, target: Journal) -> int:
    """Before the events that name them."""
    count, after = 0, ""
    while page := await source.blobs(after):
        await target.put_blobs(page)
        count += len(page)
        after = page[-1].digest
    return count


async def _heads(source: Journal) -> list[StreamHead]:
    """Every head, oldest stream first, so that the copy lists them in the same order."""
    signing = await source.heads(HeadQuery(kind=_SIGNING, limit=1))
    heads = [head async for head in every_head(source, HeadQuery())]
    heads.reverse()
    return [*_before(signing, heads)]


def _before(signing: Sequence[StreamHead], heads: Sequence[StreamHead]) -> Iterator[StreamHead]:
    """Heads, with the stream that was signing as it was found first, and without those that have signed since."""
    passed = not signing
    for head in heads:
        if head.stream == STREAM or (passed and head.kind == _SIGNING):
            continue  # what a journal is among its copies is its own
        here = bool(signing) and head.stream == signing[0].stream
        yield signing[0] if here else head
        passed = passed or here


async def _refuse_another_history(source: Journal, head: StreamHead, there: StreamHead) -> None:
    """Go on only where what the target has of a stream is how it begins in the source."""
    if there.seq < head.seq:
        try:
            after = (await source.page(head.stream, there.seq))[0]
        except RecordPrunedError as error:
            msg = f"{head.stream}: the target has an earlier part of it, and the source was pruned since"
            raise AppendConflictError(msg, remedy="Copy to an empty journal.") from error
        same = link(there.hash, after.seq, after.at, after.kind, after.data) == after.hash
    else:
        same = (there.seq, there.hash) == (head.seq, head.hash)
    if not same:
        msg = f"{head.stream}: the target has another history of this stream, or has added to it"
        raise AppendConflictError(msg, remedy="Copy to an empty journal, or to one from an earlier copy.")


async def _copy_stream(source: Journal, target: Journal, head: StreamHead, there: StreamHead | None) -> int:
    """Events first, then what the head says beside them; how many events were missing."""
    begin = seq = there.seq if there else 0
    chained = there.hash if there else root(head.stream)
    epoch = there.epoch if there else 0
    while seq < head.seq:
        events = (await _next(source, head.stream, seq))[: head.seq - seq]
        if seq and stub_of(events) is not None:  # what the target still has of it goes there too
            at, stub = head.updated_at, events[0]
            append = _append(head, seq, chained, epoch, at, events=(stub,))
            await target.cut(Cut(appends=(append,), aside=True))
            seq, chained = stub.seq, stub.hash
            continue
        at = events[-1].at if seq else head.created_at
        patch = NO_PATCH if seq else HeadPatch(subject=head.subject)
        await target.replicate(_append(head, seq, chained, epoch, at, events=tuple(events), patch=patch))
        seq, chained = events[-1].seq, events[-1].hash
    if there is None or begin < seq or _patch(there) != _patch(head):
        await target.replicate(_append(head, seq, chained, epoch, head.updated_at, patch=_patch(head)))
    return seq - begin


async def _next(source: Journal, stream: str, seq: int) -> list[Event]:
    """The next events; of a stream that was pruned from its stub on."""
    try:
        return await source.page(stream, seq)
    except RecordPrunedError:
        return await source.left(stream, seq)


def _append(
    head: StreamHead,
    seq: int,
    chained: bytes,
    epoch: int,
    at: int,
    *,
    events: tuple[Event, ...] = (),
    patch: HeadPatch = NO_PATCH,
) -> Append:
    return Append(
        stream=head.stream,
        kind=head.kind,
        expect_seq=seq,
        expect_hash=chained,
        epoch=epoch,
        events=events,
        at=at,
        patch=patch,
    )


def _patch(head: StreamHead) -> HeadPatch:
    return HeadPatch(
        state=head.state,
        due_at=head.due_at,
        priority=head.priority,
        closed=head.closed,
        route=head.route,
        title=head.title,
        labels=head.labels,
        share=head.share,
    )


async def _prove(target: Journal, head: StreamHead, proven: set[str]) -> None:
    await target.examine(head.stream, proven)
    there = await target.head(head.stream)
    if there is None or (there.seq, there.hash) != (head.seq, head.hash):
        msg = f"{head.stream}: the chain of the copy differs from the original"
        raise ChainBrokenError(msg, remedy="Something may have written to the source or the target. Copy again.")


def _no_progress(_what: str, _done: int, _all: int) -> None:
    """Show nothing."""


async def back_up(source: Journal, target: Journal, progress: Progress = _no_progress) -> Copied:
    """Make the target a copy that runs no jobs, or bring one up to date. Raises as `copy` does."""
    await refuse_busy(source)
    await mark_copied(target, source.url, complete=False)
    copied = await copy(source, target, progress)
    await mark_copied(target, source.url, complete=True)
    return copied


async def move(source: Journal, target: Journal, progress: Progress = _no_progress) -> Copied:
    """Let the work of the source go on in the target, and in it alone.

    Raises as `copy` does; JournalError (JOURNAL_MOVED, JOURNAL_BACKUP) if the source does not run jobs itself.
    """
    standing, there = await standing_of(source), await standing_of(target)
    begun = standing == CopyState(MOVED, target.url) and there.state != LIVE
    if standing.state != LIVE and not begun:
        raise refusal(source.url, standing.state, standing.place)
    copied = await back_up(source, target, progress)
    if not begun:
        await mark_moved(source, target.url)
        late = await copy(source, target)
        copied = msgspec.structs.replace(late, added=copied.added + late.added)
    await mark_live(target)
    return copied


async def activate(journal: Journal, by: str, *, unfinished: bool = False) -> CopyState:
    """Let a copy, or a journal that moved, run jobs; what it was before. The other one must never run again.

    Raises JournalError (JOURNAL_BACKUP) for a copy that is not complete, or a shard's that was not proven, unless
    `unfinished`; JOURNAL_MOVED for a shard that runs elsewhere.
    """
    standing = await standing_of(journal)
    if await is_final(journal):
        reason = f"{journal.url}: the shard moved to {standing.place} for good, and runs there"
        remedy = f"Put the URL of {standing.place} in its place in journal.url; `remit journal move` moves it on."
        raise JournalError(reason, code=Code.JOURNAL_MOVED, remedy=remedy)
    if standing == CopyState(MOVED, journal.url) and not unfinished:
        reason = f"{journal.url}: the shard is still moving here"
        remedy = "Run `remit journal move` again. If its old place is lost, add --unfinished."
        raise JournalError(reason, code=Code.JOURNAL_BACKUP, remedy=remedy)
    if standing.state == COPYING and not unfinished:
        raise refusal(journal.url, standing.state, standing.place)
    if standing.state != LIVE:
        await mark_live(journal, by)
    return standing


class Resealed(msgspec.Struct, frozen=True, kw_only=True):
    """What sealing a journal came to."""

    streams: int
    sealed: int
    """Heads that were sealed now, or set back to the state that their seal says."""
    unsealed: tuple[str, ...]
    """The streams of those whose head had no seal under a key that is here."""
    problems: tuple[str, ...]
    """The problems of the streams whose heads were left as they are."""


async def vouch(journal: Journal, seals: Seals, by: str) -> None:
    """Seal under these keys what is sealed under one that is not here, and record who says that it is right."""
    former, journal.missing_key, journal.seals = journal.missing_key, b"", seals
    await journal.post("journal/seals", "seals", JournalVouched(key=seals.current.hex(), former=former.hex(), by=by))


async def seal_all(journal: Journal, *, vouched: bool = False) -> Resealed:
    """Seal every head whose stream is whole. A head that was forged stays so.

    A failed ticket that an older Remit leased, so that its head is not the one that was sealed, is failed again.

    Raises StateError without keys, JournalError (KEY_MISSING) where heads are sealed under a key that is not here, and
    JOURNAL_LOCKED while someone works on a stream. Without `vouched` for, heads of another key than the journal's stay.
    """
    journal.require_key()
    seals = journal.seals
    if seals is None:
        raise StateError("there is no key to seal with", code=Code.SETTINGS_INVALID, remedy="Set journal.key_file.")
    await refuse_busy(journal)
    streams, sealed, before = 0, 0, None
    unsealed: list[str] = []
    problems: list[str] = []
    while page := await journal.heads(HeadQuery(limit=PAGE, before=before)):
        before = page[-1].stream
        streams += len(page)
        good: list[StreamHead] = []
        for head in page:
            doubt, former = seals.doubt(head), seals.before_lease(head)
            if doubt is None and head.seal.startswith(seals.current):
                continue
            try:
                foreign = bool(head.seal) and not seals.knows(head) and not vouched
                if doubt is not None and former is None and (doubt.code is Code.HEAD_FORGED or foreign):
                    raise doubt
                whole = replace(former or head, seal=b"")
                await examine(whole, journal.pages(head), None, journal, journal.clock.now())
            except ChainBrokenError as error:
                problems.append(f"{error.code.name}: {error.message}")
                continue
            good.append(former or head)
            unsealed += [head.stream] if doubt is not None and former is None else []
        done = await asyncio.gather(*(_seal(journal, head, seals) for head in good))
        sealed += sum(done)
    return Resealed(streams=streams, sealed=sealed, unsealed=tuple(unsealed), problems=tuple(problems))


async def _seal(journal: Journal, head: StreamHead, seals: Seals) -> bool:
    """Return whether it is sealed: not where someone wrote to the stream at the same moment, who sealed it then."""
    seal = seals.seal(head)
    append = Append(
        stream=head.stream,
        kind=head.kind,
        expect_seq=head.seq,
        expect_hash=head.hash,
        epoch=head.epoch,
        events=(),
        at=head.updated_at,
        patch=HeadPatch(state=head.state, due_at=head.due_at, release=True) if head.state == "failed" else NO_PATCH,
        sealer=lambda _: seal,
    )
    try:
        await journal.replicate(append)
    except AppendConflictError:
        return False
    return True
