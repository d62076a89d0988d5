"""Appends to one stream: their order, the optimistic lock, the fence, and what a refusal leaves behind."""

from __future__ import annotations

import asyncio

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.blobs import INLINE_LIMIT, pack
from remit.journal.event import HeadPatch
from remit.journal.kinds import JobCompleted, decode
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import Storage, head_of, holder, job, note, noted, numbers, opened, refused

MANY = 300


async def check_events_come_back_as_appended(storage: Storage) -> None:
    """In order, numbered from 1, with kind, time and payload; reading goes on after any number."""
    clock = ManualClock()
    async with opened(storage, clock) as journal:
        writer = await job(journal, "job/a")
        clock.advance(1)
        await journal.append(writer, *noted(2, 3), synced=False)
        await journal.append(writer, note(4), synced=True)
        events = await journal.read("job/a")
        assert [decode(event.kind, event.data) for event in events] == noted(1, 2, 3, 4)
        assert [event.seq for event in events] == [1, 2, 3, 4]
        assert {(event.stream, event.kind) for event in events} == {("job/a", "time_recorded")}
        assert [clock.now() - event.at for event in events] == [1_000_000, 0, 0, 0]
        assert [event.seq for event in await journal.read("job/a", after=2)] == [3, 4]
        assert await journal.read("job/a", after=4) == []


async def check_an_unknown_stream_is_empty(storage: Storage) -> None:
    """It has no head and no events; reading it does not make it."""
    async with opened(storage) as journal:
        assert await journal.head("job/none") is None
        assert await journal.read("job/none") == []
        assert await journal.blob("sha256:" + "0" * 64) is None
        assert await journal.head("job/none") is None


async def check_many_appends_at_once_keep_their_order(storage: Storage) -> None:
    """However many tasks append to however many streams, each stream holds its own appends in order of submission."""
    async with opened(storage) as journal:
        writers = [await job(journal, f"job/{name}") for name in "abc"]
        appends = [
            journal.append(writer, note(number), synced=number % 7 == 0)
            for number in range(2, MANY)
            for writer in writers
        ]
        await asyncio.gather(*appends)
        for writer in writers:
            payloads = [decode(event.kind, event.data) for event in await journal.read(writer.stream)]
            assert payloads == noted(*range(1, MANY))
            assert await journal.verify(writer.stream) == MANY - 1


async def check_a_long_stream_is_read_whole(storage: Storage) -> None:
    """Reading pages through more events than one answer holds."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        for number in range(2, 2_501):
            await journal.append(writer, note(number), synced=False)
        assert await numbers(journal) == list(range(1, 2_501))
        assert [event.seq for event in await journal.read("job/a", after=2_490)] == list(range(2_491, 2_501))


async def check_the_head_follows_the_events(storage: Storage) -> None:
    """Sequence, chain value and time are those of the newest event; an append changes what its patch names alone."""
    clock = ManualClock()
    async with opened(storage, clock) as journal:
        patch = HeadPatch(state="pending", due_at=7, priority=3, title="A title", labels={"a": "1"})
        writer = await journal.create("job/a", "job", note(1), patch=patch)
        first = await head_of(journal)
        assert (first.kind, first.state, first.seq, first.epoch) == ("job", "pending", 1, 0)
        assert (first.due_at, first.priority, first.title, first.labels) == (7, 3, "A title", {"a": "1"})
        assert (first.lease_owner, first.lease_until, first.wakes, first.closed) == (None, None, 0, False)
        assert first.created_at == first.updated_at == clock.now()
        clock.advance(1)
        await journal.append(writer, note(2), synced=False, patch=HeadPatch(state="done", due_at=None, closed=True))
        second = await head_of(journal)
        (*_, newest) = await journal.read("job/a")
        assert (second.seq, second.hash, second.updated_at) == (2, newest.hash, clock.now())
        assert (second.state, second.due_at, second.closed) == ("done", None, True)
        assert (second.priority, second.title, second.labels) == (3, "A title", {"a": "1"})
        assert second.created_at == first.created_at


async def check_a_patch_needs_no_event(storage: Storage) -> None:
    """The head alone can change, and is read as changed at once though nothing was flushed."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        before = await head_of(journal)
        await journal.append(writer, synced=False, patch=HeadPatch(state="waiting", labels={"a": "ü\n\"'"}))
        head = await head_of(journal)
        assert (head.state, head.labels) == ("waiting", {"a": "ü\n\"'"})
        assert (head.seq, head.hash) == (before.seq, before.hash)
        await journal.append(writer, note(2), synced=True)
        assert await journal.verify("job/a") == 2


async def check_a_patch_of_a_missing_stream_is_refused(storage: Storage) -> None:
    """Only events make a stream."""
    async with opened(storage) as journal:
        with refused():
            await journal.append(journal.writer("job/a", "job"), synced=True, patch=HeadPatch(state="waiting"))
        assert await journal.head("job/a") is None


async def check_a_stream_is_created_once(storage: Storage) -> None:
    """Of several creators one succeeds; the others change nothing."""
    async with opened(storage) as journal:
        creators = [journal.create("job/a", "job", note(number)) for number in range(5)]
        results = await asyncio.gather(*creators, return_exceptions=True)
        assert [isinstance(result, JournalError) for result in results].count(False) == 1
        assert await journal.verify("job/a") == 1


async def check_a_writer_behind_is_refused(storage: Storage) -> None:
    """Another writer appended meanwhile: nothing is written, and this writer is silent from now on."""
    async with opened(storage) as journal:
        ahead = await job(journal, "job/a")
        behind = journal.writer("job/a", "job", await head_of(journal))
        await journal.append(ahead, note(2), synced=True)
        with refused():
            await journal.append(behind, note(3), synced=True, patch=HeadPatch(state="stolen"))
        with refused():
            await journal.append(behind, note(4), synced=True)
        assert (await head_of(journal)).state == ""
        assert await journal.verify("job/a") == 2
        await journal.append(ahead, note(3), synced=True)
        assert await numbers(journal) == [1, 2, 3]


async def check_a_superseded_writer_is_refused(storage: Storage) -> None:
    """Hold that the holder of an old fencing token writes nothing, even where the sequence would fit (rule 4)."""
    async with opened(storage) as journal:
        await job(journal, "job/a")
        old = await holder(journal)
        new = await holder(journal, owner="rescuer", over="worker")
        assert new.epoch == old.epoch + 1
        with refused():
            await journal.append(old, note(2), synced=True, patch=HeadPatch(state="stolen"))
        await journal.append(new, note(2), synced=True)
        assert await journal.verify("job/a") == 2


async def check_a_refusal_harms_nobody_else(storage: Storage) -> None:
    """Commits that are written together with a refused one succeed, before and after it, on any stream."""
    async with opened(storage) as journal:
        writer, other = await job(journal, "job/a"), await job(journal, "job/b")
        rival = journal.writer("job/a", "job", await head_of(journal))
        patched = HeadPatch(state="ok")
        results = await asyncio.gather(
            journal.append(other, note(2), synced=True),
            journal.append(writer, note(2), synced=True),
            journal.append(rival, note(9), synced=True, patch=HeadPatch(state="stolen")),
            journal.append(rival, note(10), synced=True),
            journal.append(other, note(3), synced=True, patch=patched),
            journal.append(writer, note(3), synced=True),
            journal.create("job/c", "job", note(1)),
            return_exceptions=True,
        )
        failed = [isinstance(result, JournalError) for result in results]
        assert failed == [False, False, True, True, False, False, False]
        assert [await journal.verify(f"job/{name}") for name in "abc"] == [3, 3, 1]
        assert (await head_of(journal)).state == ""


async def check_a_failed_commit_silences_its_writer(storage: Storage) -> None:
    """Hold that what a writer queued after a refused commit is refused, also where another writer left that number."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        rival = journal.writer("job/a", "job", await head_of(journal))
        await journal.append(writer, note(2), synced=False)
        await journal.append(rival, note(20), synced=False)
        # Its number and epoch fit what the other writer left; the history it was computed from does not.
        await journal.append(rival, note(30), synced=False)
        with refused():
            await journal.append(rival, note(40), synced=True)
        await journal.append(writer, note(3), synced=True)
        payloads = [decode(event.kind, event.data) for event in await journal.read("job/a")]
        assert payloads == noted(1, 2, 3)
        assert await journal.verify("job/a") == 3
        with refused():
            await journal.append(rival, note(50), synced=False)


async def check_equal_events_of_two_writers_are_told_apart(storage: Storage) -> None:
    """Two writers leave the very same event at the same place: one is refused, and what it appends later with it."""
    async with opened(storage) as journal:
        first = await job(journal, "job/a")
        second = journal.writer("job/a", "job", await head_of(journal))
        results = await asyncio.gather(
            journal.append(first, note(2), synced=True),
            journal.append(second, note(2), synced=True),
            journal.append(first, note(3), synced=True),
            return_exceptions=True,
        )
        assert [isinstance(result, JournalError) for result in results] == [False, True, False]
        assert await journal.verify("job/a") == 3


async def check_a_record_the_storage_cannot_hold_is_refused_alone(storage: Storage) -> None:
    """It is answered with RECORD_INVALID; what is written together with it succeeds, and so does all that follows."""
    async with opened(storage) as journal:
        writer, other = await job(journal, "job/a"), await job(journal, "job/b")
        results = await asyncio.gather(
            journal.append(other, note(2), synced=True),
            journal.append(writer, note(2), synced=True, patch=HeadPatch(due_at=2**70)),
            journal.append(other, note(3), synced=True),
            return_exceptions=True,
        )
        assert [isinstance(result, JournalError) for result in results] == [False, True, False]
        assert isinstance(results[1], JournalError)
        assert results[1].code is Code.RECORD_INVALID
        assert await numbers(journal) == [1]
        again = journal.writer("job/a", "job", await head_of(journal))
        await journal.append(again, note(2), synced=True)
        assert [await journal.verify(f"job/{name}") for name in "ab"] == [2, 3]


async def check_values_of_any_size_are_kept(storage: Storage) -> None:
    """A value stays in its event up to the limit, is kept by digest beyond it, and comes back byte by byte."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        sizes = (2, INLINE_LIMIT, INLINE_LIMIT + 1, 3 * INLINE_LIMIT, 3_000_000)
        values = [b'"' + bytes([97 + index]) * (size - 2) + b'"' for index, size in enumerate(sizes)]
        for value in values:
            packed = pack(value)
            completed = JobCompleted(result=packed.inline, result_blob=packed.ref)
            await journal.append(writer, completed, synced=False, blobs=packed.blobs)
        payloads = [decode(event.kind, event.data) for event in (await journal.read("job/a"))[1:]]
        read = [await journal.value(p.result, p.result_blob) for p in payloads if isinstance(p, JobCompleted)]
        assert read == values
        assert await journal.verify("job/a") == len(sizes) + 1


async def check_stream_names_of_any_kind(storage: Storage) -> None:
    """Names are compared character by character: case, accents, wildcards and quotes keep streams apart."""
    async with opened(storage) as journal:
        names = [
            "job/a",
            "job/A",
            "job/ä",
            "job/a%",
            "job/_",
            "job/'\"",
            "job/a b",
            "job/\U0001f600",
            "job/" + "x" * 300,
        ]
        for name in names:
            await job(journal, name)
        assert [len(await journal.read(name)) for name in names] == [1] * len(names)
        assert [(await head_of(journal, name)).stream for name in names] == names
