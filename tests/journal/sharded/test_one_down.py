"""Four servers, of which one is down: its roots are refused, the others go on, and so do they once it is back."""

from __future__ import annotations

import asyncio

import pytest

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import JournalError
from remit.journal.event import HeadPatch, HeadQuery
from remit.journal.journal import Journal
from remit.journal.sharded.placement import new_identifier, shard_of
from remit_testing.journal.storage import due, head_of, job, note, numbers, refused, terms
from tests.journal.sharded.conftest import Cluster
from tests.journal.storages import PostgresStorage, ShardedStorage
from tests.patience import PATIENCE_S

DOWN = 2
NAMES = [f"job/{number}" for number in range(16)]
LOST = [name for name in NAMES if shard_of(name, 4) == DOWN]
KEPT = [name for name in NAMES if name not in LOST]


async def _until_back(journal: Journal) -> None:
    """Wait until every shard answers, looking once per mark."""
    mark = 0
    while journal.missing():
        mark = await journal.heads_changed(mark)


async def test_one_shard_that_is_down_stops_its_own_roots_alone(cluster: Cluster) -> None:
    assert {shard_of(name, 4) for name in NAMES} == {0, 1, 2, 3}
    async with asyncio.timeout(PATIENCE_S), cluster.storage.open(SystemClock()) as journal:
        writers = {name: await job(journal, name, due(0, state="pending")) for name in NAMES}
        assert len(await journal.heads(HeadQuery(kind="job"))) == len(NAMES)
        before = await journal.scan()
        cluster.servers[DOWN].stop()

        with refused(Code.JOURNAL_SHARD_UNAVAILABLE):
            await journal.append(writers[LOST[0]], note(2), synced=True)
        assert [one.partition(" (")[0] for one in journal.missing()] == [f"shard {DOWN}"]
        for use in (
            lambda: journal.head(LOST[1]),
            lambda: journal.read(LOST[1]),
            lambda: journal.append(writers[LOST[1]], note(2), synced=False),
            lambda: journal.acquire(LOST[1], terms()),
            lambda: journal.wake(LOST[1]),
            lambda: journal.scan(before.position),
            journal.blobs,
        ):
            with refused(Code.JOURNAL_SHARD_UNAVAILABLE):
                await use()

        for name in KEPT:
            await journal.append(writers[name], note(2), synced=True)
        assert sorted(head.stream for head in await journal.heads(HeadQuery(kind="job"))) == sorted(KEPT)
        assert await journal.counts("job") == {"pending": len(KEPT)}
        claimed = await journal.claim(terms(now=1, limit=len(NAMES)))
        assert sorted(lease.head.stream for lease in claimed) == sorted(KEPT)
        held = [(lease.head.stream, lease.head.epoch) for lease in claimed]
        assert sorted(await journal.renew([*held, (LOST[0], 1)], 10)) == sorted(KEPT)

        waiting = asyncio.create_task(_until_back(journal))
        cluster.servers[DOWN].start()
        await waiting
        assert [await numbers(journal, name) for name in LOST] == [[1]] * len(LOST)
        for name in LOST:
            writer = journal.writer(name, "job", await head_of(journal, name))
            await journal.append(writer, note(2), synced=True)
        claimed = await journal.claim(terms(now=1, limit=len(NAMES)))
        assert sorted(lease.head.stream for lease in claimed) == sorted(LOST)
        after = await journal.scan(before.position)
        assert sorted(placed.event.stream for placed in after.events) == sorted(NAMES)


async def test_a_journal_opens_while_a_shard_is_down(cluster: Cluster) -> None:
    """Its first look finds it down, and it joins once it is there."""
    async with cluster.storage.open(SystemClock()) as journal:
        for name in NAMES:
            await job(journal, name)
    cluster.servers[0].stop()
    async with asyncio.timeout(PATIENCE_S), cluster.storage.open(SystemClock()) as journal:
        there = [name for name in NAMES if shard_of(name, 4) != 0]
        assert sorted(head.stream for head in await journal.heads(HeadQuery())) == sorted(there)
        mark = await journal.changed(0)
        waiting = asyncio.create_task(_until_back(journal))
        cluster.servers[0].start()
        await waiting
        assert await journal.changed(mark) > mark
        assert len(await journal.heads(HeadQuery())) == len(NAMES)
        await journal.create("job/new", "job", note(1), patch=HeadPatch(state="pending"))


async def test_what_is_new_begins_where_a_shard_answers_also_before_all_have_been_asked(cluster: Cluster) -> None:
    async with cluster.storage.open(SystemClock()) as journal:
        await journal.heads(HeadQuery())
    cluster.servers[DOWN].stop()
    async with asyncio.timeout(PATIENCE_S), cluster.storage.open(SystemClock()) as journal:
        new = [await new_identifier("job", "job", journal.answers) for _ in range(40)]
        assert {shard_of(f"job/{name}", 4) for name in new} == {0, 1, 2, 3} - {DOWN}


async def test_shards_in_another_order_or_number_are_refused(urls: list[str]) -> None:
    """A root would be looked for on a shard where it is not."""
    async with ShardedStorage(urls).open(SystemClock()) as journal:
        await job(journal, "job/a")
    wrong: list[tuple[list[str], Code]] = [
        (urls[::-1], Code.SETTINGS_INVALID),
        ([*urls, urls[0] + "_more"], Code.SETTINGS_INVALID),
    ]
    for order, code in wrong:
        async with ShardedStorage(order).open(SystemClock()) as journal:
            with refused(code):
                await journal.heads(HeadQuery())


async def test_a_journal_of_its_own_is_no_shard(urls: list[str]) -> None:
    async with PostgresStorage(urls[1]).open(SystemClock()) as journal:
        await job(journal, "job/a")
    async with ShardedStorage(urls).open(SystemClock()) as journal:
        with pytest.raises(JournalError, match="a journal of its own"):
            await journal.heads(HeadQuery())


async def test_a_shard_that_is_opened_alone_takes_nothing_of_the_others(urls: list[str]) -> None:
    async with ShardedStorage(urls).open(SystemClock()) as journal:
        await job(journal, "job/a")
    async with PostgresStorage(urls[1]).open(SystemClock()) as journal:
        for name in NAMES:
            if shard_of(name, 2) == 1:
                await job(journal, name)
            else:
                with refused(Code.SETTINGS_INVALID):
                    await job(journal, name)
        assert shard_of(f"job/{await new_identifier('job', 'job', journal.answers)}", 2) == 1
    async with ShardedStorage(urls).open(SystemClock()) as journal:
        listed = {head.stream for head in await journal.heads(HeadQuery(kind="job"))}
        assert listed == {"job/a", *(name for name in NAMES if shard_of(name, 2) == 1)}
