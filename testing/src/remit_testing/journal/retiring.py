"""A journal that moved, and one that is a backup: nothing is written there, and nothing is leased."""

from __future__ import annotations

import asyncio

from remit.codes import Code
from remit.journal.event import HeadPatch
from remit.journal.retirement import LIVE, MOVED, CopyState, mark_copied, mark_live, mark_moved, standing_of
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import (
    LEASE,
    Storage,
    due,
    head_of,
    holder,
    job,
    note,
    numbers,
    opened,
    refused,
    terms,
)


async def check_nothing_is_written_to_a_journal_that_runs_no_jobs(storage: Storage) -> None:
    """Neither by who wrote before nor by who comes, and no stream is leased; what is there can be read and verified."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a", due(state="pending"))
        for code in (Code.JOURNAL_BACKUP, Code.JOURNAL_MOVED):
            if code is Code.JOURNAL_MOVED:
                await mark_moved(journal, "there.db")
            else:
                await mark_copied(journal, "there.db", complete=False)
            with refused(code):
                await journal.append(journal.writer("job/a", "job", await head_of(journal)), note(2), synced=True)
            with refused(code):
                await job(journal, "job/b")
            with refused(code):
                await journal.post("job/a/inbox", "inbox", note(1), wakes=("job/a",))
            with refused(code):
                await journal.wake("job/a")
            with refused(code):
                await journal.claim(terms(state="running"))
            with refused(code):
                await journal.acquire("job/a", terms(state="running"))
        assert await numbers(journal) == [1]
        assert (await head_of(journal)).epoch == 0
        assert [await journal.verify(stream) for stream in ("job/a", "journal")] == [1, 2]
        await mark_live(journal)
        await journal.append(writer, note(2), synced=True)
        assert await numbers(journal) == [1, 2]
        await holder(journal)


async def check_what_is_queued_when_the_journal_moves_is_written_or_refused(storage: Storage) -> None:
    """Before the move it is written, behind it it is refused: the journal's stream says where the line is."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        waiting = [asyncio.create_task(journal.append(writer, note(number), synced=True)) for number in range(2, 9)]
        moved = asyncio.create_task(mark_moved(journal, "there.db"))
        ends = await asyncio.gather(*waiting, return_exceptions=True)
        await moved
        written = [end for end in ends if not isinstance(end, BaseException)]
        assert await numbers(journal) == list(range(1, len(written) + 2))
        with refused(Code.JOURNAL_MOVED):
            await job(journal, "job/b")


async def check_a_journal_in_which_someone_works_does_not_move(storage: Storage) -> None:
    """It is refused while a lease runs; a lapsed lease does not hold it, and its holder writes no more."""
    clock = ManualClock()
    async with opened(storage, clock) as journal:
        await job(journal, "job/a")
        held = await holder(journal)
        with refused(Code.JOURNAL_LOCKED):
            await mark_moved(journal, "there.db")
        assert await standing_of(journal) == CopyState(LIVE)
        await journal.append(held, note(2), synced=True)
        clock.advance(LEASE / 1_000_000 + 1)
        await mark_moved(journal, "there.db")
        assert await standing_of(journal) == CopyState(MOVED, "there.db")
        with refused(Code.JOURNAL_MOVED):
            await journal.append(held, note(3), synced=True, patch=HeadPatch(release=True))
