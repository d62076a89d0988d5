"""Several instances on one storage, as several processes have them: what one writes, the others find."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.event import HeadPatch, Placed
from remit.journal.journal import Journal
from remit.journal.retirement import mark_moved
from remit_testing.clock import START, ManualClock
from remit_testing.journal.storage import Storage, due, head_of, holder, job, note, numbers, opened, refused, terms
from remit_testing.journal.watching import followed

INSTANCES = 4


async def check_what_was_written_is_there_again(storage: Storage) -> None:
    """Closing writes what was submitted, and another instance goes on from it."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        for number in range(2, 200):
            await journal.append(writer, note(number), synced=False, patch=HeadPatch(state=str(number)))
    async with opened(storage) as journal:
        head = await head_of(journal)
        assert (head.seq, head.state) == (199, "199")
        await journal.append(journal.writer("job/a", "job", head), note(200), synced=True)
        assert await journal.verify("job/a") == 200


async def check_a_move_by_another_process_ends_every_write(storage: Storage) -> None:
    """Of many writers, what was written before it stays; nothing is written after it, and nothing is leased."""
    async with AsyncExitStack() as stack:
        instances = [await stack.enter_async_context(opened(storage)) for _ in range(INSTANCES)]
        writers = [await job(instance, f"job/{number}") for number, instance in enumerate(instances)]
        counts = [1] * INSTANCES

        async def write(number: int) -> Code:
            try:
                while True:
                    await instances[number].append(writers[number], note(counts[number]), synced=True)
                    counts[number] += 1
            except JournalError as error:
                return error.code

        writing = [asyncio.create_task(write(number)) for number in range(INSTANCES)]
        await instances[0].changed(await instances[0].changed(0))
        await mark_moved(instances[0], "there.db")
        there = [await numbers(instances[0], f"job/{number}") for number in range(INSTANCES)]
        assert await asyncio.gather(*writing) == [Code.JOURNAL_MOVED] * INSTANCES
        assert [len(each) for each in there] == counts
        for store in instances:
            with refused(Code.JOURNAL_MOVED):
                await store.claim(terms())


async def check_a_synced_append_brings_everything_before(storage: Storage) -> None:
    """When it is done, others find it and whatever was queued before it, on any stream."""
    async with opened(storage) as journal, opened(storage) as other:
        first, second = await job(journal, "job/a"), await job(journal, "job/b")
        for number in range(2, 50):
            await journal.append(first, note(number), synced=False)
        await journal.append(second, note(2), synced=True)
        assert [await numbers(other, stream) for stream in ("job/a", "job/b")] == [list(range(1, 50)), [1, 2]]


async def check_drained_means_others_can_read_it(storage: Storage) -> None:
    """Hold that what was queued is written, flushed or not."""
    async with opened(storage) as journal, opened(storage) as other:
        writer = await job(journal, "job/a")
        await journal.append(writer, note(2), synced=False)
        await journal.drained()
        assert await numbers(other) == [1, 2]


async def check_writers_of_two_instances_do_not_mix(storage: Storage) -> None:
    """A writer that is behind is refused; the stream stays one chain."""
    async with opened(storage) as journal, opened(storage) as other:
        mine = await job(journal, "job/a")
        theirs = other.writer("job/a", "job", await head_of(other))
        await journal.append(mine, note(2), synced=True)
        with refused():
            await other.append(theirs, note(2), synced=True)
        theirs = other.writer("job/a", "job", await head_of(other))
        await other.append(theirs, note(3), synced=True)
        with refused():
            await journal.append(mine, note(3), synced=True)
        assert await other.verify("job/a") == 3


async def check_names_made_in_two_instances_stay_apart(storage: Storage) -> None:
    """Streams made and refused here and there at the same time never get each other's events."""
    async with opened(storage) as journal, opened(storage) as other:
        for number in range(20):
            results = await asyncio.gather(
                journal.create(f"job/both/{number}", "job", note(1)),
                other.create(f"job/both/{number}", "job", note(1)),
                journal.create(f"job/mine/{number}", "job", note(1), note(2)),
                other.create(f"job/theirs/{number}", "job", note(1), note(2), note(3)),
                return_exceptions=True,
            )
            assert [isinstance(result, JournalError) for result in results].count(True) == 1
        for name, length in (("both", 1), ("mine", 2), ("theirs", 3)):
            assert {await journal.verify(f"job/{name}/{number}") for number in range(20)} == {length}


async def check_a_takeover_by_another_instance_is_final(storage: Storage) -> None:
    """A lapsed lease taken over elsewhere silences the old holder, also what it had queued."""
    clock = ManualClock()
    async with opened(storage, clock) as journal, opened(storage, clock) as other:
        await job(journal, "job/a")
        old = await holder(journal)
        clock.advance(30)
        new = await holder(other, owner="other")
        await journal.append(old, note(2), synced=False)
        await journal.append(old, note(3), synced=False)
        await journal.drained()
        assert old.failure is not None
        assert old.failure.code is Code.APPEND_CONFLICT
        assert await journal.renew([("job/a", old.epoch)], START) == []
        await other.append(new, note(2), synced=True)
        assert await journal.verify("job/a") == 2


async def check_one_instance_wins_each_claim(storage: Storage) -> None:
    """Instances that claim at the same time never hold the same stream."""
    async with AsyncExitStack() as stack:
        journals = [await stack.enter_async_context(opened(storage)) for _ in range(INSTANCES)]
        names = [f"job/{number:02}" for number in range(40)]
        for name in names:
            await job(journals[0], name)
        batches = await asyncio.gather(*(_claim_all(journal, f"worker {n}") for n, journal in enumerate(journals)))
        assert sorted(stream for streams in batches for stream in streams) == names
        assert {head.epoch for head in await journals[0].leases("job")} == {1}


async def _claim_all(journal: Journal, owner: str) -> list[str]:
    streams: list[str] = []
    while leases := await journal.claim(terms(owner, limit=3)):
        streams += [lease.head.stream for lease in leases]
    return streams


async def check_many_may_post_to_one_stream(storage: Storage) -> None:
    """However many post at once, from however many instances, every message is there once."""
    async with AsyncExitStack() as stack:
        journals = [await stack.enter_async_context(opened(storage)) for _ in range(2)]
        await job(journals[0], "job/a", due(None))
        posts = [
            journal.post("job/a/inbox", "inbox", note(number), wakes=("job/a",))
            for number in range(60)
            for journal in journals
        ]
        await asyncio.gather(*posts)
        assert await journals[0].verify("job/a/inbox") == 120
        assert (await head_of(journals[1])).wakes == 120


async def check_changed_never_misses_a_write_elsewhere(storage: Storage) -> None:
    """Whether or not anyone waited at the moment of the write, each one ends the next wait."""
    async with opened(storage) as journal, opened(storage) as other:
        writer = await job(journal, "job/a")
        mark = await other.changed(0)
        for number in range(2, 30):
            # A look in between takes notice of nothing for the waiter, who still holds an older mark.
            await journal.append(writer, note(number), synced=number % 3 == 0)
            await journal.drained()
            if number % 2:
                await other.changed(0)
            mark = await _until(other, number, mark)


async def _until(journal: Journal, seq: int, mark: int) -> int:
    while True:
        mark = await journal.changed(mark)
        if (await head_of(journal)).seq >= seq:
            return mark


async def check_a_write_elsewhere_ends_a_wait_under_way(storage: Storage) -> None:
    """Someone who waits already is told of each write, one by one."""
    async with opened(storage) as journal, opened(storage) as other:
        writer = await job(journal, "job/a")
        for number in range(2, 12):
            mark = await other.changed(0)
            waiting = asyncio.create_task(_until(other, number, mark))
            await journal.head("job/a")
            await journal.append(writer, note(number), synced=True)
            await waiting


async def check_heads_changed_elsewhere_end_the_wait(storage: Storage) -> None:
    """However busy an instance is with appends of its own, it hears of streams made and woken by others."""
    async with opened(storage) as journal, opened(storage) as other:
        writer = await job(journal, "job/a")
        mark = await journal.heads_changed(0)
        for number in range(2, 12):
            await job(other, f"job/{number}")
            await journal.append(writer, note(number), synced=True)
            while await journal.head(f"job/{number}") is None:
                mark = await journal.heads_changed(mark)
            waiting = asyncio.create_task(journal.heads_changed(mark))
            await other.wake(f"job/{number}")
            await journal.append(writer, note(number), synced=False)
            mark = await waiting


async def check_a_lease_taken_elsewhere_ends_the_wait(storage: Storage) -> None:
    """A waiter for heads hears of a claim, and of a lease taken by name."""
    async with opened(storage) as journal, opened(storage) as other:
        await job(journal, "job/a")
        mark = await other.heads_changed(0)
        waiting = asyncio.create_task(_until_held(other, "worker", mark))
        await other.head("job/a")
        assert len(await journal.claim(terms())) == 1
        mark = await waiting
        waiting = asyncio.create_task(_until_held(other, "rescuer", mark))
        await other.head("job/a")
        await holder(journal, owner="rescuer", over="worker")
        await waiting


async def _until_held(journal: Journal, owner: str, mark: int) -> int:
    """Wait until someone holds the stream, looking once per mark."""
    while (await head_of(journal)).lease_owner != owner:
        mark = await journal.heads_changed(mark)
    return mark


async def check_follow_sees_what_others_write(storage: Storage) -> None:
    """A follower in one instance sees a stream written in turn by several others, in order, to its end."""
    async with opened(storage) as journal, opened(storage) as other, opened(storage) as reader:
        await job(journal, "job/a")
        follower = asyncio.create_task(followed(reader, "job/a"))
        for number in range(2, 30):
            instance = journal if number % 2 else other
            patch = HeadPatch(closed=number == 29)
            writer = instance.writer("job/a", "job", await head_of(instance))
            await instance.append(writer, note(number), synced=True, patch=patch)
        assert await follower == list(range(1, 30))


async def check_a_follower_of_everything_misses_nothing_of_several_writers(storage: Storage) -> None:
    """However their commits overlap: it sees each event once, and a later scan gives the same in the same order."""
    async with AsyncExitStack() as stack:
        writers = [await stack.enter_async_context(opened(storage)) for _ in range(INSTANCES)]
        reader = await stack.enter_async_context(opened(storage))

        async def write(journal: Journal, name: str) -> None:
            writer = await job(journal, f"job/{name}")
            for number in range(2, 40):
                await journal.append(writer, note(number), synced=number % 5 == 0)
            await journal.drained()

        writing = asyncio.gather(*(write(journal, str(name)) for name, journal in enumerate(writers)))
        events: list[Placed] = []
        async with aclosing(reader.follow_all()) as everything:
            async for placed in everything:
                events.append(placed)
                if len(events) == INSTANCES * 39:
                    break
        await writing
        assert list((await writers[0].scan()).events) == events
        assert len({(placed.event.stream, placed.event.seq) for placed in events}) == len(events)
