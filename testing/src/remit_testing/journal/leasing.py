"""Leases: who gets a stream, for how long, and what becomes of it when its holder falls silent."""

from __future__ import annotations

import asyncio

from remit.clock import SECOND
from remit.journal.event import OPEN_STATES, HeadPatch
from remit_testing.clock import START, ManualClock
from remit_testing.journal.storage import (
    LEASE,
    Storage,
    due,
    head_of,
    holder,
    job,
    note,
    opened,
    refused,
    terms,
)


async def check_a_claim_leases_a_due_stream(storage: Storage) -> None:
    """The lease is in the head: owner, end, a new epoch; until it lapses the stream is due again only then."""
    async with opened(storage) as journal:
        await job(journal, "job/a", due(START, state="pending"))
        (lease,) = await journal.claim(terms(state="running"))
        assert lease.head == await head_of(journal)
        assert (lease.previous_state, lease.previous_owner) == ("pending", None)
        head = lease.head
        assert (head.state, head.lease_owner, head.lease_until) == ("running", "worker", START + LEASE)
        assert (head.epoch, head.due_at, head.seq) == (1, START + LEASE, 1)
        assert await journal.next_due("job") == START + LEASE
        assert [held.stream for held in await journal.leases("job")] == ["job/a"]
        await journal.append(journal.writer("job/a", "job", head), note(2), synced=True)
        assert await journal.verify("job/a") == 2


async def check_a_claim_may_leave_the_state(storage: Storage) -> None:
    """Without a state of its own a claim leaves the stream's."""
    async with opened(storage) as journal:
        await job(journal, "job/a", due(START, state="pending"))
        (lease,) = await journal.claim(terms())
        assert (lease.previous_state, lease.head.state) == ("pending", "pending")


async def check_a_lease_changes_no_state_but_an_open_one(storage: Storage) -> None:
    """It writes no seal, and a seal takes the open states for one: every other state is left as it is."""
    async with opened(storage) as journal:
        for state in ("failed", "stuck", "", *OPEN_STATES):
            becomes = "running" if state in OPEN_STATES else state
            await job(journal, f"job/claimed-{state}", due(START, state=state))
            await job(journal, f"job/acquired-{state}", due(None, state=state))
            (claimed,) = await journal.claim(terms(state="running"))
            acquired = await journal.acquire(f"job/acquired-{state}", terms(state="running"))
            assert acquired is not None
            for lease in (claimed, acquired):
                assert lease.head == await head_of(journal, lease.head.stream)
                assert (lease.previous_state, lease.head.state) == (state, becomes)
                await journal.verify(lease.head.stream)


async def check_a_held_stream_is_not_claimed(storage: Storage) -> None:
    """Neither by claim nor by acquire, not even in the last moment of its lease."""
    async with opened(storage) as journal:
        await job(journal, "job/a")
        await holder(journal)
        for now in (START, START + LEASE - 1):
            assert await journal.claim(terms("other", now)) == []
            assert await journal.acquire("job/a", terms("other", now)) is None
        assert (await head_of(journal)).epoch == 1


async def check_a_lapsed_lease_is_taken_over(storage: Storage) -> None:
    """From its end on: the new holder learns who had it, and the old one's appends are refused."""
    async with opened(storage) as journal:
        await job(journal, "job/a")
        old = await holder(journal)
        await journal.append(old, note(2), synced=True)
        (lease,) = await journal.claim(terms("other", START + LEASE, state="running"))
        assert (lease.previous_owner, lease.head.lease_owner, lease.head.epoch) == ("worker", "other", 2)
        with refused():
            await journal.append(old, note(3), synced=True)
        assert await journal.verify("job/a") == 2


async def check_a_lapsed_holder_may_go_on_until_taken_over(storage: Storage) -> None:
    """The epoch decides, not the clock: as long as no other process holds the stream, nothing is lost."""
    async with opened(storage) as journal:
        await job(journal, "job/a")
        writer = await holder(journal)
        assert await journal.renew([("job/a", writer.epoch)], START + 2 * LEASE) == ["job/a"]
        await journal.append(writer, note(2), synced=True)
        assert await journal.claim(terms("other", START + 2 * LEASE - 1)) == []
        assert len(await journal.claim(terms("other", START + 2 * LEASE))) == 1


async def check_only_the_holder_renews(storage: Storage) -> None:
    """The answer names what is still held: no superseded epoch, nothing given up, closed or unknown."""
    async with opened(storage) as journal:
        names = ["job/held", "job/superseded", "job/released", "job/closed"]
        for name in names:
            await job(journal, name)
        held = {name: await holder(journal, name) for name in names}
        await holder(journal, "job/superseded", owner="rescuer", over="worker")
        await journal.append(held["job/released"], synced=True, patch=due(None, release=True))
        await journal.append(held["job/closed"], synced=True, patch=due(None, closed=True))
        until = START + 2 * LEASE
        leases = [*((name, writer.epoch) for name, writer in held.items()), ("job/none", 1)]
        assert await journal.renew(leases, until) == ["job/held"]
        heads = {name: await head_of(journal, name) for name in names}
        assert (heads["job/held"].lease_until, heads["job/held"].due_at) == (until, until)
        assert heads["job/superseded"].lease_until == START + LEASE
        assert (heads["job/released"].lease_owner, heads["job/released"].due_at) == (None, None)


async def check_releasing_frees_the_stream(storage: Storage) -> None:
    """Given up in the transaction of the last append, a stream is claimed by the next who comes, without a trace."""
    async with opened(storage) as journal:
        await job(journal, "job/a")
        writer = await holder(journal)
        await journal.append(writer, note(2), synced=True, patch=due(START, release=True))
        head = await head_of(journal)
        assert (head.lease_owner, head.lease_until, head.epoch) == (None, None, 1)
        assert await journal.leases("job") == []
        (lease,) = await journal.claim(terms("other"))
        assert (lease.previous_owner, lease.head.epoch) == (None, 2)


async def check_acquire_takes_what_is_not_due(storage: Storage) -> None:
    """By name: due later, or never; not what is closed or was never there."""
    async with opened(storage) as journal:
        await job(journal, "job/later", due(START + SECOND, state="waiting"))
        await job(journal, "job/never", due(None))
        await job(journal, "job/closed", due(None, closed=True))
        later = await journal.acquire("job/later", terms(state="running"))
        assert later is not None
        assert (later.previous_state, later.head.state, later.head.due_at) == ("waiting", "running", START + LEASE)
        assert later.head == await head_of(journal, "job/later")
        assert await journal.acquire("job/never", terms()) is not None
        assert await journal.acquire("job/closed", terms()) is None
        assert await journal.acquire("job/none", terms()) is None


async def check_a_dead_owner_is_succeeded_at_once(storage: Storage) -> None:
    """Over the named owner, before the lease lapses; over no other."""
    async with opened(storage) as journal:
        await job(journal, "job/a")
        await holder(journal, owner="dead")
        assert await journal.acquire("job/a", terms("rescuer"), over="alive") is None
        lease = await journal.acquire("job/a", terms("rescuer"), over="dead")
        assert lease is not None
        assert (lease.previous_owner, lease.head.lease_owner, lease.head.epoch) == ("dead", "rescuer", 2)


async def check_leases_lists_what_is_held(storage: Storage) -> None:
    """Of one kind, lapsed or not; not what was given up or closed."""
    async with opened(storage) as journal:
        names = ["job/held", "job/lapsed", "job/released", "job/closed"]
        for name in names:
            await job(journal, name)
        early = await journal.acquire("job/lapsed", terms(now=START - 2 * LEASE))
        assert early is not None
        held = {name: await holder(journal, name) for name in names if name != "job/lapsed"}
        await journal.append(held["job/released"], synced=True, patch=due(None, release=True))
        await journal.append(held["job/closed"], synced=True, patch=due(None, closed=True))
        other = await journal.create("session/a", "session", note(1))
        assert await journal.acquire(other.stream, terms()) is not None
        assert sorted(head.stream for head in await journal.leases("job")) == ["job/held", "job/lapsed"]


async def check_one_of_many_claimers_wins(storage: Storage) -> None:
    """However many claim at once, by queue or by name, each stream goes to one of them."""
    async with opened(storage) as journal:
        names = [f"job/{number}" for number in range(8)]
        for name in names:
            await job(journal, name)
        by_queue = [journal.claim(terms(f"queue {number}", limit=2)) for number in range(20)]
        by_name = [journal.acquire(name, terms(f"name {number}")) for number in range(3) for name in names]
        queued, named = await asyncio.gather(asyncio.gather(*by_queue), asyncio.gather(*by_name))
        leases = [lease for batch in queued for lease in batch] + [lease for lease in named if lease is not None]
        assert sorted(lease.head.stream for lease in leases) == names
        assert {lease.head.epoch for lease in leases} == {1}
        owners = {lease.head.stream: lease.head.lease_owner for lease in leases}
        assert owners == {head.stream: head.lease_owner for head in await journal.leases("job")}


async def check_a_cancelled_claim_holds_nothing(storage: Storage) -> None:
    """No worker would hear of its leases: what it took is as it was before, and wake-ups since then count."""
    clock = ManualClock()
    async with opened(storage, clock) as journal:
        for stream, at in (("job/due", START - SECOND), ("job/later", START + SECOND)):
            await job(journal, stream, due(at, state="pending"))
        queue = asyncio.create_task(journal.claim(terms(state="running")))
        name = asyncio.create_task(journal.acquire("job/later", terms(state="running")))
        await asyncio.sleep(0)  # noqa: TID251 - lets both begin, and waits for nothing
        queue.cancel()
        name.cancel()
        await asyncio.wait([queue, name])
        assert queue.cancelled()
        assert name.cancelled()
        heads = [await head_of(journal, stream) for stream in ("job/due", "job/later")]
        assert [(head.state, head.lease_owner, head.lease_until) for head in heads] == [("pending", None, None)] * 2
        assert [head.due_at for head in heads] == [START - SECOND, START + SECOND]
        assert len(await journal.claim(terms(limit=5))) == 1


async def check_closing_a_stream_ends_its_queueing(storage: Storage) -> None:
    """A closed stream is never due and never claimed, whatever else its last append said."""
    async with opened(storage) as journal:
        await job(journal, "job/held")
        writer = await holder(journal, "job/held")
        await journal.append(writer, note(2), synced=True, patch=HeadPatch(state="done", closed=True))
        await job(journal, "job/due", due(START - 1, closed=True))
        assert await journal.next_due("job") is None
        assert await journal.claim(terms("other", START + 2 * LEASE, limit=9)) == []
        await job(journal, "job/open", due(START))
        assert await journal.next_due("job") == START, "a closed stream does not stand in an open one's way"
        claimed = await journal.claim(terms("other", START + 2 * LEASE, limit=9))
        assert [lease.head.stream for lease in claimed] == ["job/open"]
