"""Reading the whole journal, across streams."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from remit.journal.event import JournalFold, Placed
from remit.journal.journal import Journal
from remit.journal.kinds import JobCompleted
from remit_testing.journal.storage import Storage, job, note, opened


async def _whole(journal: Journal, *kinds: str, limit: int = 1_000) -> list[Placed]:
    """Every event, page by page."""
    events: list[Placed] = []
    after, more = 0, True
    while more:
        page = await journal.scan(after, kinds, limit)
        assert len(page.events) <= limit
        assert page.position >= after
        assert all(after < placed.position <= page.position for placed in page.events)
        events += page.events
        after, more = page.position, page.more
    return events


def _names(events: list[Placed]) -> list[tuple[str, int]]:
    return [(placed.event.stream, placed.event.seq) for placed in events]


async def check_a_fold_is_kept_whole_by_the_one_who_continues_it(storage: Storage) -> None:
    """With its parts, in one transaction; a writer that goes on from another place is refused."""
    async with opened(storage) as journal:
        assert await journal.folds.read("sums") == []
        first = [JournalFold("sums", 7, b"{}"), JournalFold("sums/1", 7, b"one"), JournalFold("sums/2", 7, b"two")]
        assert await journal.folds.keep(first, 0)
        assert await journal.folds.read("sums", ["2", "1", "none"]) == first
        assert await journal.folds.read("sums") == first[:1]
        assert not await journal.folds.keep([JournalFold("sums", 9, b"x"), JournalFold("sums/1", 9, b"x")], 0)
        assert await journal.folds.read("sums", ["1", "2"]) == first
        assert await journal.folds.keep([JournalFold("sums", 9, b"{}"), JournalFold("sums/2", 9, b"2")], 7)
        assert [fold.data for fold in await journal.folds.read("sums", ["1", "2"])] == [b"{}", b"one", b"2"]
        assert await journal.folds.keep([JournalFold("other", 1, b"")], 0)


async def check_a_scan_gives_every_event(storage: Storage) -> None:
    """Of every stream, exactly as its own stream gives it, at positions that grow."""
    async with opened(storage) as journal:
        empty = await journal.scan()
        assert (empty.events, empty.position, empty.more) == ((), 0, False)
        a = await job(journal, "job/a")
        b = await job(journal, "job/b")
        await journal.append(a, note(2), note(3), synced=True)
        await journal.append(b, note(2), synced=True)
        await journal.append(a, note(4), synced=False)
        rows = await _whole(journal)
        assert len(rows) == 6
        positions = [placed.position for placed in rows]
        assert positions == sorted(set(positions))
        for stream in ("job/a", "job/b"):
            events = [placed.event for placed in rows if placed.event.stream == stream]
            assert events == await journal.read(stream)


async def check_a_scan_goes_page_by_page(storage: Storage) -> None:
    """Whatever a page holds, and from wherever it begins."""
    async with opened(storage) as journal:
        writers = [await job(journal, f"job/{number}") for number in range(3)]
        for number in range(2, 9):
            for writer in writers:
                await journal.append(writer, note(number), synced=False)
        whole = await _whole(journal)
        assert len(whole) == 24
        for limit in (1, 5, 24):
            assert await _whole(journal, limit=limit) == whole
        rest = await journal.scan(whole[10].position)
        assert list(rest.events) == whole[11:]
        end = await journal.scan(rest.position)
        assert (end.events, end.position, end.more) == ((), rest.position, False)


async def check_the_ends_of_a_stretch_are_the_newest_events_in_it(storage: Storage) -> None:
    """Each stream once, as far as it reached there, in the order of positions; what comes later is in the next one."""
    async with opened(storage) as journal:
        nothing = await journal.ends()
        assert (nothing.ends, nothing.position, nothing.more) == ((), 0, False)
        writers = [await job(journal, f"job/{number}") for number in range(3)]
        for number in range(2, 6):
            for writer in writers[number % 2 :]:
                await journal.append(writer, note(number), synced=False)
        whole = await _whole(journal)
        for after, cut in ((0, 5), (5, 9), (9, len(whole)), (0, len(whole))):
            newest = {placed.event.stream: placed for placed in whole[after:cut]}
            expected = sorted(newest.values(), key=lambda placed: placed.position)
            begin = whole[after - 1].position if after else 0
            ends = await journal.ends(begin, whole[cut - 1].position - begin)
            assert list(ends.ends) == [(event.event.stream, event.event.seq, event.event.hash) for event in expected]
            assert (ends.position, ends.more) == (whole[cut - 1].position, cut < len(whole))
        assert (await journal.ends(whole[-1].position)).ends == ()


async def check_a_scan_of_some_kinds_gives_those(storage: Storage) -> None:
    """And passes over the others."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        for number in range(4):
            await journal.append(writer, note(number), note(number), JobCompleted(), synced=False)
        ends = [("job/a", seq) for seq in (4, 7, 10, 13)]
        for limit in (1, 3, 100):
            assert _names(await _whole(journal, "job_completed", limit=limit)) == ends
        assert _names(await _whole(journal, "job_failed")) == []
        assert len(await _whole(journal, "job_completed", "time_recorded")) == 13


async def check_a_refused_commit_is_not_scanned(storage: Storage) -> None:
    """It never was."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        stale = journal.writer("job/a", "job", await journal.head("job/a"))
        await journal.append(writer, note(2), synced=True)
        await journal.append(stale, note(9), synced=False)
        await journal.drained()
        assert _names(await _whole(journal)) == [("job/a", 1), ("job/a", 2)]


async def check_a_follower_of_everything_misses_nothing(storage: Storage) -> None:
    """Hold that what was there, and what comes while it waits, of streams new and old."""
    async with opened(storage) as journal:
        writers = [await job(journal, f"job/{number}") for number in range(4)]

        async def write() -> None:
            for number in range(2, 12):
                for writer in writers:
                    await journal.append(writer, note(number), synced=number % 3 == 0)
            await job(journal, "job/last")

        writing = asyncio.create_task(write())
        events: list[Placed] = []
        async with aclosing(journal.follow_all()) as followed:
            async for placed in followed:
                events.append(placed)
                if len(events) == 45:
                    break
        await writing
        assert events == await _whole(journal)
