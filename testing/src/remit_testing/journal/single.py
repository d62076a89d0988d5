"""Storage in one place: one order over all streams, and a whole that moves, or is a copy, as one.

A journal of several shards promises this of each shard alone.
"""

from __future__ import annotations

from remit.codes import Code
from remit.journal.event import Cut
from remit.journal.retirement import mark_moved
from remit_testing.journal.cutting import ended, stub_for
from remit_testing.journal.storage import Storage, job, note, numbers, opened, refused


async def check_a_scan_gives_every_event_in_the_order_of_commits(storage: Storage) -> None:
    """Whichever streams they belong to."""
    async with opened(storage) as journal:
        a = await job(journal, "job/a")
        b = await job(journal, "job/b")
        await journal.append(a, note(2), note(3), synced=True)
        await journal.append(b, note(2), synced=True)
        await journal.append(a, note(4), synced=False)
        order = [("job/a", 1), ("job/b", 1), ("job/a", 2), ("job/a", 3), ("job/b", 2), ("job/a", 4)]
        assert [(placed.event.stream, placed.event.seq) for placed in (await journal.scan()).events] == order


async def check_nothing_is_cut_in_a_journal_that_runs_no_jobs(storage: Storage) -> None:
    """Unless it is a copy that follows its original."""
    async with opened(storage) as journal:
        await ended(journal, "job/a")
        await mark_moved(journal, "there.db")
        with refused(Code.JOURNAL_MOVED):
            await journal.cut(Cut(appends=(await stub_for(journal),)))
        assert await numbers(journal) == [1, 2, 3]
        assert await journal.cut(Cut(appends=(await stub_for(journal),), aside=True))
