"""Streams whose older events are removed: a stub stays, all at once or not at all."""

from __future__ import annotations

from msgspec.structs import replace

from remit.canonical import sha256
from remit.codes import Code
from remit.journal.event import Append, Blob, Cut, HeadPatch
from remit.journal.journal import Journal
from remit.journal.kinds import StreamPruned
from remit.journal.writer import StreamWriter
from remit_testing.journal.storage import Storage, due, head_of, holder, job, note, noted, numbers, opened, refused

_FREE: HeadPatch = due(None, state="completed")


async def ended(journal: Journal, stream: str, *blobs: Blob) -> StreamWriter:
    """Make a stream of three events that no process works on."""
    writer = await job(journal, stream, _FREE)
    await journal.append(writer, *noted(2, 3), synced=True, blobs=blobs)
    return writer


async def stub_for(journal: Journal, stream: str = "job/a") -> Append:
    """Return a stub for all that a stream holds."""
    head = await head_of(journal, stream)
    stub = StreamPruned(events=head.seq, hash=head.hash.hex(), first_at=1, last_at=2, state=head.state)
    return journal.writer(stream, "job", head).stage(stub, patch=HeadPatch(title="gone", closed=True))


async def _newest(journal: Journal) -> int:
    position, more = 0, True
    while more:
        page = await journal.scan(position)
        position, more = page.position, page.more
    return position


async def check_a_stub_takes_the_place_of_older_events(storage: Storage) -> None:
    """They are gone, also to who scans; reading says so; stream and storage verify; what comes later continues it."""
    async with opened(storage) as journal:
        await ended(journal, "job/b")
        await ended(journal, "job/a")
        stub = await stub_for(journal)
        assert await journal.cut(Cut(appends=(stub,)))
        with refused(Code.RECORD_PRUNED):
            await journal.read("job/a")
        with refused(Code.RECORD_PRUNED):
            await journal.page("job/a", 2, 1)
        assert [event.kind for event in await journal.left("job/a")] == [StreamPruned.KIND]
        assert [event.seq for event in await journal.read("job/a", 3)] == [4]
        placed = (await journal.scan(0)).events
        assert [(each.event.stream, each.event.seq) for each in placed] == [
            *(("job/b", n) for n in (1, 2, 3)),
            ("job/a", 4),
        ]
        head = await head_of(journal)
        assert (head.seq, head.title, head.closed, head.state) == (4, "gone", True, "completed")
        examined = await journal.examine("job/a")
        assert (examined.events, examined.pruned) == (1, 3)
        assert await journal.integrity() == []
        await journal.append(journal.writer("job/a", "job", head), *noted(5, 6), synced=True)
        assert (await journal.examine("job/a")).pruned == 3
        assert await journal.cut(Cut(appends=(await stub_for(journal),)))
        assert (await journal.examine("job/a")).pruned == 6
        assert await numbers(journal, "job/b") == [1, 2, 3]
        assert await journal.integrity() == []


async def check_a_cut_is_refused_whole(storage: Storage) -> None:
    """If one stream went on, or was leased, nothing is removed of any, and no value."""
    async with opened(storage) as journal:
        blob = Blob(sha256(b"value"), b"value")
        await ended(journal, "job/a", blob)
        writer = await ended(journal, "job/a/b")
        stubs = (await stub_for(journal), await stub_for(journal, "job/a/b"))
        await journal.append(writer, note(4), synced=True)
        with refused():
            await journal.cut(Cut(appends=stubs, blobs=(blob.digest,)))
        stubs = (await stub_for(journal), replace(await stub_for(journal, "job/a/b"), epoch=7))
        with refused():
            await journal.cut(Cut(appends=stubs, blobs=(blob.digest,)))
        late = (await stub_for(journal),)
        await holder(journal)
        with refused():
            await journal.cut(Cut(appends=late))
        assert (await numbers(journal), await numbers(journal, "job/a/b")) == ([1, 2, 3], [1, 2, 3, 4])
        assert await journal.blob(blob.digest) == b"value"
        assert await journal.integrity() == []


async def check_values_go_with_their_stream_unless_something_new_names_them(storage: Storage) -> None:
    """An event that came after the look is seen, and nothing is written then; bytes that went can be kept again."""
    async with opened(storage) as journal:
        gone, stays = Blob(sha256(b"gone"), b"gone"), Blob(sha256(b"kept"), b"kept")
        await ended(journal, "job/a", gone, stays)
        newest = await _newest(journal)
        writer = await ended(journal, "job/b")
        await journal.append(writer, replace(note(9), value=gone.digest), synced=False)
        cut = Cut(
            appends=(await stub_for(journal),), blobs=(gone.digest,), names=frozenset({gone.digest}), position=newest
        )
        assert not await journal.cut(cut)
        assert await numbers(journal) == [1, 2, 3]
        assert await journal.cut(replace(cut, appends=(await stub_for(journal),), position=await _newest(journal)))
        assert [await journal.blob(blob.digest) for blob in (gone, stays)] == [None, b"kept"]
        await journal.append(writer, note(10), synced=True, blobs=(gone,))
        assert await journal.blob(gone.digest) == b"gone"
        assert await journal.compact() >= 0
        assert await journal.integrity() == []


async def check_a_stub_that_does_not_fit_is_found(storage: Storage) -> None:
    """One that continues another chain value, or says another number of events."""
    async with opened(storage) as journal:
        for stream, change in (
            ("job/a", {"hash": "00" * 32}),
            ("job/b", {"events": 2}),
            ("job/c", {"state": "failed"}),
        ):
            await ended(journal, stream)
            head = await head_of(journal, stream)
            stub = StreamPruned(events=head.seq, hash=head.hash.hex(), first_at=1, last_at=2, state=head.state)
            append = journal.writer(stream, "job", head).stage(replace(stub, **change))
            assert await journal.cut(Cut(appends=(append,)))
            with refused(Code.CHAIN_BROKEN):
                await journal.examine(stream)
