"""The queue: what a claim returns, in which order, and when to ask again."""

from __future__ import annotations

from remit.clock import SECOND
from remit.journal.event import HeadPatch, LeaseClaim
from remit.journal.journal import Journal
from remit_testing.clock import START, TickingClock
from remit_testing.journal.storage import LEASE, Storage, due, head_of, holder, job, note, opened, terms


async def _claimed(journal: Journal, claim: LeaseClaim) -> list[str]:
    """Return the streams that a claim gets; a look a moment before says the same, and takes nothing."""
    due = await journal.due(claim)
    leases = await journal.claim(claim)
    assert [(head.stream, head.epoch) for head in due] == [(each.head.stream, each.head.epoch - 1) for each in leases]
    return [lease.head.stream for lease in leases]


async def check_higher_priority_comes_first(storage: Storage) -> None:
    """Before anything that waits longer; within a priority the longest due, then the oldest stream."""
    async with opened(storage, TickingClock()) as journal:
        rows = [
            ("job/low", -1, START - 9 * SECOND),
            ("job/second", 0, START - SECOND),
            ("job/third", 0, START - SECOND),
            ("job/first", 0, START - 2 * SECOND),
            ("job/high", 100, START),
        ]
        for stream, priority, at in rows:
            await job(journal, stream, due(at, priority=priority))
        expected = ["job/high", "job/first", "job/second", "job/third", "job/low"]
        assert await _claimed(journal, terms(limit=2)) == expected[:2]
        assert await _claimed(journal, terms(limit=1)) == expected[2:3]
        assert await _claimed(journal, terms(limit=9)) == expected[3:]


async def check_a_claim_respects_its_limit(storage: Storage) -> None:
    """No more than asked for, across priorities; nothing twice."""
    async with opened(storage) as journal:
        for number in range(12):
            await job(journal, f"job/{number:02}", due(priority=number % 3))
        claimed: list[str] = []
        for limit in (5, 1, 4, 9):
            batch = await _claimed(journal, terms(limit=limit))
            assert len(batch) <= limit
            claimed += batch
        assert sorted(claimed) == [f"job/{number:02}" for number in range(12)]


async def check_what_is_not_due_is_not_claimed(storage: Storage) -> None:
    """Due later, dormant, of another kind, or in another state than asked for."""
    async with opened(storage) as journal:
        await job(journal, "job/later", due(START + 1, priority=9))
        await job(journal, "job/dormant", due(None, priority=9))
        await job(journal, "job/waiting", due(state="waiting", priority=9))
        await job(journal, "job/pending", due(state="pending"))
        await journal.create("session/a", "session", note(1), patch=due(state="pending", priority=9))
        claim = terms(limit=9, states=("pending", "running"))
        assert await _claimed(journal, claim) == ["job/pending"]
        assert await _claimed(journal, claim) == []
        assert await _claimed(journal, terms(limit=9)) == ["job/waiting"]
        assert await _claimed(journal, terms(now=START + 1, limit=9)) == ["job/later"]


async def check_a_new_priority_counts_at_once(storage: Storage) -> None:
    """Also that of a stream which waits already."""
    async with opened(storage) as journal:
        await job(journal, "job/a")
        writer = await job(journal, "job/b")
        await journal.append(writer, synced=True, patch=HeadPatch(priority=1))
        assert await _claimed(journal, terms(limit=2)) == ["job/b", "job/a"]


async def check_a_claim_takes_only_the_routes_it_serves(storage: Storage) -> None:
    """And streams without one; a claim that names none takes any. `next_due` speaks of the same streams."""
    async with opened(storage) as journal:
        await job(journal, "job/other", due(START - 3, route="other", priority=5))
        await job(journal, "job/mine", due(START - 1, route="mine"))
        await job(journal, "job/anyone", due(START - 2))
        await job(journal, "job/urgent", due(START, route="yours", priority=1))
        await job(journal, "job/later", due(START + SECOND, route="mine", priority=-1))
        assert await journal.next_due("job", ("mine",)) == START - 2
        assert await _claimed(journal, terms(limit=1, routes=("mine", "yours"))) == ["job/urgent"]
        assert await _claimed(journal, terms(limit=9, routes=("mine", "mine"))) == ["job/anyone", "job/mine"]
        assert await _claimed(journal, terms(limit=9, routes=("mine", "yours"))) == []
        assert await journal.next_due("job", ("yours",)) == START + LEASE
        assert await journal.next_due("job", ("other",)) == START - 3
        assert await journal.next_due("job") == START - 3
        assert set(await journal.routes("job")) - {""} == {"mine", "other", "yours"}
        assert await journal.routes("session") == []
        assert await _claimed(journal, terms(limit=9)) == ["job/other"]


async def check_a_stream_can_be_put_on_another_route(storage: Storage) -> None:
    """At its making and with any later append; lists show it."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a", due(route="old"))
        assert (await head_of(journal)).route == "old"
        await journal.append(writer, synced=True, patch=HeadPatch(route="new"))
        assert (await head_of(journal)).route == "new"
        assert await _claimed(journal, terms(routes=("old",))) == []
        (lease,) = await journal.claim(terms(routes=("new",)))
        assert (lease.head.stream, lease.head.route) == ("job/a", "new")


async def check_many_routes_share_one_order(storage: Storage) -> None:
    """Whatever their routes: the highest priority, then the longest due, then the oldest stream."""
    async with opened(storage, TickingClock()) as journal:
        for number in range(30):
            await job(journal, f"job/{number:02}", due(START - number % 7, route=f"r{number % 4}", priority=number % 2))
        order = sorted(range(30), key=lambda number: (-(number % 2), -(number % 7), number))
        served = tuple(f"r{number}" for number in range(4))
        expected = [f"job/{number:02}" for number in order]
        assert await _claimed(journal, terms(limit=11, routes=served)) == expected[:11]
        assert await _claimed(journal, terms(limit=30)) == expected[11:]


async def check_shares_take_turns(storage: Storage) -> None:
    """Where more is due than there is room for, from the share after the last turn on; within one the longest due."""
    async with opened(storage) as journal:
        for number in range(9):
            await job(journal, f"job/many/{number}", due(START - 9 + number, share="many"))
        await job(journal, "job/few/0", due(START - 1, share="few"))
        await job(journal, "job/few/1", due(START, share="few"))
        await job(journal, "job/none", due(START))
        assert await _claimed(journal, terms(limit=4, after="few")) == [
            "job/many/0", "job/none", "job/few/0", "job/many/1"
        ]  # fmt: skip
        (lease,) = await journal.claim(terms(after="many"))
        assert (lease.head.stream, lease.head.share, lease.turn) == ("job/few/1", "few", "few")
        (lease,) = await journal.claim(terms(after="few"))
        assert (lease.head.stream, lease.turn) == ("job/many/2", "many")
        assert await _claimed(journal, terms(limit=9)) == [f"job/many/{number}" for number in range(3, 9)]


async def check_shares_take_turns_within_a_priority(storage: Storage) -> None:
    """And over all routes that a claim serves: a higher priority comes first, whichever share had the last turn."""
    async with opened(storage) as journal:
        for number in range(6):
            route = f"r{number % 2}"
            await job(journal, f"job/many/{number}", due(START - 9 + number, share="many", route=route, priority=1))
        await job(journal, "job/few", due(START, share="few", route="r1", priority=1))
        await job(journal, "job/low", due(START - 99, share="low", route="r0"))
        served = ("r0", "r1")
        assert await _claimed(journal, terms(limit=3, routes=served)) == ["job/few", "job/many/0", "job/many/1"]
        assert await _claimed(journal, terms(limit=9, routes=served)) == [
            *(f"job/many/{number}" for number in range(2, 6)), "job/low"
        ]  # fmt: skip


async def check_every_share_has_its_turn(storage: Storage) -> None:
    """Also beyond many of which nothing is due: each claim goes on after the share that the one before looked at."""
    async with opened(storage) as journal:
        for number in range(100):
            await job(journal, f"job/later/{number}", due(START + SECOND, share=f"asleep {number:03}"))
        for number in range(60):
            await job(journal, f"job/many/{number:02}", due(START - 60 + number, share="all"))
        await job(journal, "job/one", due(START, share="z"))
        turn, streams = "", list[str]()
        while "job/one" not in streams:
            assert len(streams) < 10, streams
            (lease,) = await journal.claim(terms(after=turn))
            turn = lease.turn
            streams.append(lease.head.stream)
        assert streams[:-1] == [f"job/many/{number:02}" for number in range(len(streams) - 1)]


async def check_a_stream_can_be_given_another_share(storage: Storage) -> None:
    """At its making and with any later append."""
    async with opened(storage) as journal:
        writer = await job(journal, "job/a", due(share="old"))
        assert (await head_of(journal)).share == "old"
        await journal.append(writer, synced=True, patch=HeadPatch(share="new"))
        assert (await head_of(journal)).share == "new"


async def check_next_due_is_the_earliest(storage: Storage) -> None:
    """Over all priorities; a leased stream counts with the end of its lease, dormant and closed ones do not."""
    async with opened(storage) as journal:
        assert await journal.next_due("job") is None
        await job(journal, "job/dormant", due(None))
        await job(journal, "job/closed", due(START - 1, closed=True))
        assert await journal.next_due("job") is None
        await job(journal, "job/late", due(START + 9 * SECOND, priority=5))
        await job(journal, "job/soon", due(START + SECOND, priority=-5))
        await journal.create("session/a", "session", note(1), patch=due(START - SECOND))
        assert await journal.next_due("job") == START + SECOND
        await holder(journal, "job/soon")
        assert await journal.next_due("job") == START + 9 * SECOND
        await holder(journal, "job/late")
        assert await journal.next_due("job") == START + LEASE
