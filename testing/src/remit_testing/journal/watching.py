"""Following: events as they come, and the wait for news that misses none."""

from __future__ import annotations

import asyncio

from remit.codes import Code
from remit.journal.event import HeadPatch
from remit.journal.journal import Journal
from remit_testing.clock import TickingClock
from remit_testing.journal.storage import Storage, due, job, note, opened, refused, terms

ROUNDS = 50


async def followed(journal: Journal, stream: str, after: int = 0) -> list[int]:
    """The sequence numbers that a follower sees until the stream is closed."""
    return [event.seq async for event in journal.follow(stream, after)]


async def check_follow_sees_old_and_new_events_in_order(storage: Storage) -> None:
    """Everything after the number given, once and in order, to the end of the stream, where it ends."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        await journal.append(writer, note(2), synced=False)
        followers = [asyncio.create_task(followed(journal, "job/a", after)) for after in (0, 1, 4)]
        for number in range(3, 30):
            await journal.append(writer, note(number), synced=number % 5 == 0)
        await journal.append(writer, note(30), synced=False, patch=HeadPatch(closed=True))
        lists = await asyncio.gather(*followers)
        assert lists == [list(range(after + 1, 31)) for after in (0, 1, 4)]


async def check_follow_waits_for_a_stream_to_begin(storage: Storage) -> None:
    """A stream that is not there yet is followed from its first event."""
    async with opened(storage) as journal:
        follower = asyncio.create_task(followed(journal, "job/a"))
        await job(journal, "job/b")
        await journal.create("job/a", "job", note(1), note(2), patch=HeadPatch(closed=True))
        assert await follower == [1, 2]


async def check_follow_ends_on_a_closed_stream(storage: Storage) -> None:
    """At once where it is closed already, also for a follower who has seen everything, or asks for what cannot come."""
    async with opened(storage) as journal:
        await journal.create("job/a", "job", note(1), note(2), patch=HeadPatch(closed=True))
        assert [await followed(journal, "job/a", after) for after in (0, 1, 2, 3)] == [[1, 2], [2], [], []]


async def check_a_follower_may_stop(storage: Storage) -> None:
    """Leaving a follower disturbs neither the stream nor other followers."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        staying = asyncio.create_task(followed(journal, "job/a"))
        leaving = asyncio.create_task(followed(journal, "job/a"))
        await journal.changed(0)
        leaving.cancel()
        await asyncio.wait([leaving])
        await journal.append(writer, note(2), synced=True, patch=HeadPatch(closed=True))
        assert await staying == [1, 2]


async def check_changed_returns_at_once_for_a_newcomer(storage: Storage) -> None:
    """Mark 0 never waits, in an empty journal neither; marks grow."""
    async with opened(storage) as journal:
        first = await journal.changed(0)
        assert first > 0
        await job(journal, "job/a")
        assert await journal.changed(first) > first


async def check_changed_never_misses_a_write(storage: Storage) -> None:
    """Whether it happens before the wait, while no one waits, or during it: each write ends the next wait."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        mark = await journal.changed(0)
        for number in range(2, ROUNDS):
            if number % 2:
                await journal.append(writer, note(number), synced=True)
                mark = await journal.changed(mark)
            else:
                waiting = asyncio.create_task(_until(journal, number, mark))
                await journal.append(writer, note(number), synced=False)
                mark = await waiting


async def _until(journal: Journal, seq: int, mark: int) -> int:
    """Wait until the stream has an event, looking once per mark."""
    while True:
        mark = await journal.changed(mark)
        head = await journal.head("job/a")
        if head is not None and head.seq >= seq:
            return mark


async def check_everything_that_is_written_counts_as_a_change(storage: Storage) -> None:
    """Appends, patches, wake-ups and leases."""
    async with opened(storage, TickingClock()) as journal:
        writer = await job(journal, "job/a")
        await job(journal, "job/b", due(None))
        for write in (
            lambda: journal.append(writer, note(2), synced=True),
            lambda: journal.append(writer, synced=True, patch=HeadPatch(title="x")),
            lambda: journal.wake("job/b"),
            lambda: journal.claim(terms()),
            lambda: journal.acquire("job/b", terms()),
        ):
            mark = await journal.changed(0)
            await write()
            assert await journal.changed(mark) > mark


async def check_closing_tells_whoever_waits(storage: Storage) -> None:
    """A follower, and a waiter for news, gets JOURNAL_CLOSED instead of waiting forever."""
    async with opened(storage) as journal:
        await job(journal, "job/a")
        mark = await journal.changed(0)
        follower = asyncio.create_task(followed(journal, "job/a"))
        waiting = asyncio.create_task(_until(journal, 9, mark))
        await journal.drained()
        await journal.close()
        for task in (follower, waiting):
            with refused(Code.JOURNAL_CLOSED):
                await task


async def check_a_changed_head_ends_the_wait(storage: Storage) -> None:
    """A stream made, woken, parked, leased or closed: each is noticed, a waiter or comes later."""
    async with opened(storage) as journal:
        mark = await journal.heads_changed(0)
        writer = await job(journal, "job/a")
        changes = (
            lambda: journal.create("job/b", "job", note(1)),
            lambda: journal.wake("job/a"),
            lambda: journal.park(writer, HeadPatch(state="parked"), seen_wakes=1),
            lambda: journal.append(writer, note(2), synced=True, patch=HeadPatch(priority=3)),
            lambda: journal.append(writer, synced=False, patch=HeadPatch(due_at=None)),
            lambda: journal.acquire("job/a", terms()),
        )
        mark = await journal.heads_changed(mark)
        for change in changes:
            waiting = asyncio.create_task(journal.heads_changed(mark))
            await journal.head("job/a")
            await change()
            mark, before = await waiting, mark
            assert mark > before
            assert await journal.heads_changed(before) >= mark


async def check_events_alone_are_no_news_of_heads(storage: Storage) -> None:
    """If no other process can write, a wait for heads sleeps through appends; with others it may look in vain."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        waiting = asyncio.create_task(journal.heads_changed(await journal.heads_changed(0)))
        events = await journal.changed(0)
        await journal.append(writer, note(2), synced=True)
        assert await journal.changed(events) > events
        await journal.wake("job/a")
        assert await waiting > 0
