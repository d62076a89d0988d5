"""Wake-ups: whom they make due, and that none is slept through."""

from __future__ import annotations

from remit.clock import SECOND
from remit.journal.event import HeadPatch
from remit_testing.clock import START
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


async def check_a_wake_makes_a_dormant_stream_due(storage: Storage) -> None:
    """It is counted, and the stream is due now."""
    async with opened(storage) as journal:
        await job(journal, "job/a", due(None))
        assert await journal.claim(terms()) == []
        await journal.wake("job/a")
        head = await head_of(journal)
        assert (head.wakes, head.due_at, head.seq) == (1, START, 1)
        assert [lease.head.stream for lease in await journal.claim(terms())] == ["job/a"]


async def check_a_wake_brings_a_due_time_forward_only(storage: Storage) -> None:
    """Hold that what was due later is due now; what was due already keeps its place in the queue."""
    async with opened(storage) as journal:
        await job(journal, "job/later", due(START + SECOND))
        await job(journal, "job/earlier", due(START - SECOND))
        for stream in ("job/later", "job/earlier"):
            await journal.wake(stream)
        assert (await head_of(journal, "job/later")).due_at == START
        assert (await head_of(journal, "job/earlier")).due_at == START - SECOND


async def check_a_wake_of_a_leased_stream_is_only_counted(storage: Storage) -> None:
    """Its holder is told by the count; the lease and its end stay."""
    async with opened(storage) as journal:
        await job(journal, "job/a")
        await holder(journal)
        await journal.wake("job/a")
        await journal.wake("job/a")
        head = await head_of(journal)
        assert (head.wakes, head.due_at, head.lease_until) == (2, START + LEASE, START + LEASE)
        assert await journal.claim(terms("other")) == []
        assert await journal.wakes(["job/a", "job/none"]) == {"job/a": 2}


async def check_a_wake_of_a_closed_or_missing_stream_does_nothing(storage: Storage) -> None:
    """Nothing fails, nothing is made, nothing becomes due."""
    async with opened(storage) as journal:
        await job(journal, "job/a", due(None, closed=True))
        before = await head_of(journal)
        await journal.wake("job/a")
        await journal.wake("job/none")
        assert await head_of(journal) == before
        assert await journal.head("job/none") is None
        assert await journal.next_due("job") is None


async def check_a_message_and_its_wake_are_one(storage: Storage) -> None:
    """A worker that sees the wake-up finds the message that was posted with it."""
    async with opened(storage) as journal:
        await job(journal, "job/a", due(None))
        await journal.post("job/a/inbox", "inbox", note(1), wakes=("job/a",))
        await journal.post("job/a/inbox", "inbox", note(2), wakes=("job/a",))
        assert (await head_of(journal)).wakes == 2
        assert await numbers(journal, "job/a/inbox") == [1, 2]


async def check_parking_gives_the_lease_up(storage: Storage) -> None:
    """A stream that was not woken is parked: no process holds it, and it is due when its writer said."""
    async with opened(storage) as journal:
        await job(journal, "job/a")
        writer = await holder(journal)
        later = START + 3600 * SECOND
        assert await journal.park(writer, due(later, state="waiting", release=True), seen_wakes=0)
        head = await head_of(journal)
        assert (head.state, head.due_at, head.lease_owner, head.lease_until) == ("waiting", later, None, None)
        assert await journal.claim(terms(now=later - 1)) == []
        assert len(await journal.claim(terms(now=later))) == 1


async def check_no_wake_up_is_lost_while_parking(storage: Storage) -> None:
    """Woken after the writer last looked, a stream is not parked, and its writer goes on as if it had not tried."""
    async with opened(storage) as journal:
        await job(journal, "job/a")
        writer = await holder(journal)
        wakes = (await head_of(journal)).wakes
        await journal.wake("job/a")
        assert not await journal.park(writer, due(None, state="waiting", release=True), seen_wakes=wakes)
        head = await head_of(journal)
        assert (head.state, head.lease_owner) == ("", "worker")
        await journal.append(writer, note(2), synced=True)
        assert await journal.park(writer, due(None, state="waiting", release=True), seen_wakes=head.wakes)
        assert (await head_of(journal)).due_at is None


async def check_parking_comes_after_what_was_queued(storage: Storage) -> None:
    """Appends queued before are written first; where one of them was refused, parking raises that."""
    async with opened(storage) as journal:
        await job(journal, "job/a")
        writer = await holder(journal)
        await journal.append(writer, note(2), synced=False)
        assert await journal.park(writer, due(None, release=True), seen_wakes=0)
        assert await numbers(journal) == [1, 2]
        await job(journal, "job/b")
        old = await holder(journal, "job/b")
        await holder(journal, "job/b", owner="rescuer", over="worker")
        await journal.append(old, note(2), synced=False)
        with refused():
            await journal.park(old, due(None, release=True), seen_wakes=0)
        assert (await head_of(journal, "job/b")).lease_owner == "rescuer"


async def check_a_superseded_holder_cannot_park(storage: Storage) -> None:
    """It is told that the stream was not parked; the new holder's lease stays."""
    async with opened(storage) as journal:
        await job(journal, "job/a")
        old = await holder(journal)
        await holder(journal, owner="rescuer", over="worker")
        assert not await journal.park(old, due(None, state="waiting", release=True), seen_wakes=0)
        head = await head_of(journal)
        assert (head.state, head.lease_owner, head.due_at) == ("", "rescuer", START + LEASE)


async def check_an_append_can_insist_on_the_wakes_it_saw(storage: Storage) -> None:
    """With `expect_wakes` an append is refused where something woke the stream meanwhile."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a")
        await journal.append(writer, note(2), synced=True, expect_wakes=0)
        await journal.wake("job/a")
        with refused():
            await journal.append(writer, note(3), synced=True, expect_wakes=0, patch=HeadPatch(state="done"))
        assert await numbers(journal) == [1, 2]
        again = journal.writer("job/a", "job", await head_of(journal))
        await journal.append(again, note(3), synced=True, expect_wakes=1)
        assert await journal.verify("job/a") == 3
