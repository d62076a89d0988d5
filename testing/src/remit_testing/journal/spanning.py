"""Commits that span streams: all of it or nothing, in both directions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.blobs import pack
from remit.journal.event import HeadPatch, StreamHead
from remit.journal.journal import Journal
from remit.journal.kinds import JobCompleted
from remit_testing.journal.storage import Storage, head_of, holder, job, note, noted, numbers, opened, refused

LARGE = b'"' + b"x" * 20_000 + b'"'


async def check_a_spanning_commit_happens_whole(storage: Storage) -> None:
    """Streams that exist, one that is made, blobs and a wake-up: all in one transaction."""
    async with opened(storage) as journal:
        first = await job(journal, "job/a", HeadPatch(due_at=None))
        second = journal.writer("job/a/confirmation/c", "confirmation")
        packed = pack(LARGE)
        completed = JobCompleted(result=packed.inline, result_blob=packed.ref)
        await journal.commit(
            first.draft(*noted(2, 3), patch=HeadPatch(state="waiting")),
            second.draft(completed, patch=HeadPatch(state="pending")),
            synced=True,
            blobs=packed.blobs,
            wakes=("job/a",),
        )
        assert await numbers(journal) == [1, 2, 3]
        assert await numbers(journal, second.stream) == [1]
        head = await head_of(journal)
        assert (head.state, head.wakes, (await head_of(journal, second.stream)).kind) == ("waiting", 1, "confirmation")
        assert await journal.value(packed.inline, packed.ref) == LARGE
        assert [await journal.verify(stream) for stream in ("job/a", second.stream)] == [3, 1]


async def check_a_spanning_commit_is_refused_whole(storage: Storage) -> None:
    """Whichever of its streams is elsewhere, none of them changes, nothing is made, woken or kept."""
    async with opened(storage) as journal:
        for behind in (0, 1, 2):
            await _refuse_at(journal, behind, root=f"job/{behind}")


async def _refuse_at(journal: Journal, behind: int, root: str) -> None:
    """Commit to two streams that exist and one that is new, the one at index `behind` having moved on."""
    streams = [f"{root}/x", f"{root}/y", f"{root}/new"]
    sleeper = await job(journal, f"{root}/sleeper", HeadPatch(due_at=None))
    writers = [await job(journal, stream) for stream in streams[:2]]
    writers.append(journal.writer(streams[2], "job"))
    stale = journal.writer(streams[behind], "job", await journal.head(streams[behind]))
    await journal.append(stale, note(7), synced=True)
    before = [await journal.head(stream) for stream in streams]
    packed = pack(LARGE + str(behind).encode())
    drafts = [writer.draft(*noted(8, 9), patch=HeadPatch(state="changed")) for writer in writers]
    with refused():
        await journal.commit(*drafts, synced=True, blobs=packed.blobs, wakes=(sleeper.stream,))
    assert [await journal.head(stream) for stream in streams] == before
    assert await journal.blob(packed.blobs[0].digest) is None
    assert (await head_of(journal, sleeper.stream)).wakes == 0
    for writer in writers:
        with refused():
            await journal.append(writer, note(10), synced=False)


async def check_a_name_refused_once_can_be_made_later(storage: Storage) -> None:
    """A stream that a refused commit would have made leaves nothing behind that a later one could stumble on."""
    async with opened(storage) as journal:
        ahead = await job(journal, "job/a")
        behind = journal.writer("job/a", "job", await head_of(journal))
        await journal.append(ahead, note(2), synced=True)
        lost = journal.writer("job/a/new", "job")
        with refused():
            await journal.commit(lost.draft(note(1)), behind.draft(note(2)), synced=True)
        other = await journal.create("job/a/other", "job", *noted(1, 2))
        await journal.append(other, note(3), synced=True)
        again = await journal.create("job/a/new", "job", *noted(1, 2, 3, 4))
        await journal.append(again, note(5), synced=True)
        await journal.append(other, note(4), synced=True)
        assert [await journal.verify(stream) for stream in ("job/a/other", "job/a/new")] == [4, 5]


async def check_a_silent_writer_silences_no_other(storage: Storage) -> None:
    """A commit that cannot begin, because one of its writers was refused before, leaves the others where they are."""
    async with opened(storage) as journal:
        writer, silent = await job(journal, "job/a"), await job(journal, "job/a/b")
        silent.supersede()
        with refused():
            await journal.commit(writer.draft(note(2)), silent.draft(note(2)), synced=True)
        await journal.append(writer, note(2), synced=True)
        assert [await journal.verify(f"job/{name}") for name in ("a", "a/b")] == [2, 1]


async def check_streams_without_a_common_root_are_not_committed_together(storage: Storage) -> None:
    """They could lie in two places; nothing is written, and each can be written to by itself."""
    async with opened(storage) as journal:
        first, second = await job(journal, "job/a"), await job(journal, "job/b")
        with refused(Code.RECORD_INVALID):
            await journal.commit(first.draft(note(2)), second.draft(note(2)), synced=True)
        for writer in (first, second):
            await journal.append(writer, note(2), synced=True)
        assert [await journal.verify(f"job/{name}") for name in "ab"] == [2, 2]


async def check_spanning_commits_keep_their_place(storage: Storage) -> None:
    """Written together with appends to the same streams, they stand where they were submitted."""
    async with opened(storage) as journal:
        first, second = await job(journal, "job/a"), await job(journal, "job/a/b")
        work: list[Awaitable[object]] = []
        for number in range(2, 40):
            work.append(journal.append(first, note(number), synced=False))
            work.append(journal.commit(first.draft(note(number)), second.draft(note(number)), synced=False))
            work.append(journal.append(second, note(number), synced=False, patch=HeadPatch(priority=number)))
        await asyncio.gather(*work)
        assert [await journal.verify(f"job/{name}") for name in ("a", "a/b")] == [77, 77]
        assert (await head_of(journal, "job/a/b")).priority == 39


async def check_a_draft_without_events_holds_its_stream_in_place(storage: Storage) -> None:
    """It changes nothing there; the commit is refused whole once that stream has moved on or has another holder."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a", HeadPatch(due_at=None))
        inbox = await journal.create("job/a/inbox", "inbox", note(1))
        head = await head_of(journal)
        await journal.commit(journal.writer("job/a", "job", head).draft(), inbox.draft(note(2)), synced=True)
        assert await head_of(journal) == head
        await journal.append(writer, note(2), synced=True)  # its writer noticed nothing
        moved = await head_of(journal)
        await _refuse_beside(journal, head)
        await holder(journal)
        await _refuse_beside(journal, moved)
        assert await numbers(journal, "job/a/inbox") == [1, 2]


async def _refuse_beside(journal: Journal, head: StreamHead) -> None:
    inbox = journal.writer("job/a/inbox", "inbox", await head_of(journal, "job/a/inbox"))
    with refused():
        await journal.commit(journal.writer("job/a", "job", head).draft(), inbox.draft(note(3)), synced=True)


async def check_one_consumer_wins(storage: Storage) -> None:
    """An approval used by two calls at once is spent on one: the other call is never announced."""
    async with opened(storage) as journal:
        await job(journal, "job/a/confirmation/c")
        approval = await head_of(journal, "job/a/confirmation/c")
        callers = [await job(journal, f"job/a/{number}") for number in range(6)]
        uses = [
            journal.commit(
                caller.draft(note(2)),
                journal.writer(approval.stream, "job", approval).draft(note(2), patch=HeadPatch(state="used")),
                synced=True,
            )
            for caller in callers
        ]
        results = await asyncio.gather(*uses, return_exceptions=True)
        won = [not isinstance(result, JournalError) for result in results]
        assert won.count(True) == 1
        assert [len(await journal.read(caller.stream)) for caller in callers] == [
            2 if has_won else 1 for has_won in won
        ]
        assert await journal.verify(approval.stream) == 2
