"""A shard that moves to another server: once, whole, and also if the command is killed on the way."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import ChainBrokenError, UsageError
from remit.journal.blobs import pack
from remit.journal.copy import activate
from remit.journal.erasure import erase
from remit.journal.event import HeadPatch, HeadQuery, JournalFold
from remit.journal.journal import Journal
from remit.journal.kinds import JobCancelled, JobCreated
from remit.journal.postgres.store import PostgresStore
from remit.journal.references import erasure_of
from remit.journal.sharded.move import MovedShard, move_shard
from remit.journal.sharded.placement import shard_of
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import due, head_of, holder, job, note, numbers, refused, terms
from tests.journal.storages import PostgresStorage, ShardedStorage

MOVING = 1
NAMES = [f"job/{number}" for number in range(12)]
ON_IT = [name for name in NAMES if shard_of(name, 2) == MOVING]


@asynccontextmanager
async def stores(*urls: str) -> AsyncIterator[list[PostgresStore]]:
    """The stores of single shards."""
    opened = [PostgresStore(url, SystemClock()) for url in urls]
    try:
        yield opened
    finally:
        for store in opened:
            await store.close()


async def moved(source: str, target: str, *others: str) -> MovedShard:
    async with stores(source, target, *others) as (begin, end, *rest):
        return await move_shard(begin, end, SystemClock(), others=rest)


def kill(source: str, target: str, step: str) -> None:
    """Move in a process that is killed at a step."""
    killed = Path(__file__).with_name("killed.py")
    done = subprocess.run([sys.executable, killed, source, target, step], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


async def filled(urls: list[str]) -> None:
    async with ShardedStorage(urls).open(ManualClock()) as journal:
        for name in NAMES:
            writer = await job(journal, name, due(0))
            await journal.append(writer, note(2), synced=True)


async def check_whole(urls: list[str]) -> None:
    """Every stream is there, verifies, and takes the next event; every job is claimed once."""
    async with ShardedStorage(urls).open(ManualClock()) as journal:
        assert sorted(head.stream for head in await journal.heads(HeadQuery(kind="job"))) == sorted(NAMES)
        for name in NAMES:
            writer = journal.writer(name, "job", await head_of(journal, name))
            await journal.append(writer, note(3), synced=True)
            assert await journal.verify(name) == 3
        assert len(await journal.claim(terms(now=1, limit=99))) == len(NAMES)


async def test_a_shard_goes_on_elsewhere_with_every_event_at_its_position(urls: list[str]) -> None:
    await filled(urls)
    target = f"{urls[MOVING]}_new"
    clock = ManualClock()
    async with ShardedStorage(urls).open(clock) as journal:
        held = await holder(journal, ON_IT[0])
        before = await journal.scan()
        done = await moved(urls[MOVING], target)
        assert (done.number, done.streams) == (MOVING, len(ON_IT) + 1)
        with refused(Code.JOURNAL_SHARD_UNAVAILABLE):
            await journal.append(held, note(3), synced=True)
        with refused(Code.JOURNAL_SHARD_UNAVAILABLE):
            await job(journal, f"{ON_IT[0]}/late")
        assert len(await journal.claim(terms(limit=99))) == len(NAMES) - len(ON_IT)
    new = [urls[0], target]
    async with ShardedStorage(new).open(clock) as journal:
        assert (await journal.scan()).events == before.events
        assert sorted(head.stream for head in await journal.heads(HeadQuery())) == sorted(NAMES)
        head = await head_of(journal, ON_IT[0])
        assert (head.epoch, head.lease_owner) == (held.epoch + 1, "worker")
        later = clock.now() + 10**12
        (lease,) = [one for one in await journal.claim(terms(now=later, limit=99)) if one.head.stream == ON_IT[0]]
        assert lease.previous_owner == "worker"
        late = await job(journal, f"{ON_IT[0]}/late")
        assert late.seq == 1
        assert (await journal.scan(before.position)).events[-1].event.stream == late.stream


async def test_what_another_shard_keeps_is_looked_for_there(urls: list[str]) -> None:
    """Such as a schema that both use, or the erasure of a subject."""
    packed = pack(b'"' + b"x" * 10_000 + b'"')
    subject = next(f"customer-{number}" for number in range(99) if shard_of(erasure_of(f"customer-{number}"), 2) == 0)
    elsewhere = next(name for name in NAMES if name not in ON_IT)
    async with ShardedStorage(urls).open(SystemClock()) as journal:
        for name, blobs in ((elsewhere, packed.blobs), (ON_IT[0], ())):
            created = JobCreated(kind="recipe", name="a", input_blob=packed.ref)
            patch = HeadPatch(state="pending", labels={"remit.name": "a"})
            await journal.create(name, "job", created, patch=patch, blobs=blobs)
        created = JobCreated(kind="recipe", name="a", input=msgspec.Raw(b'"of the customer"'))
        patch = HeadPatch(state="cancelled", closed=True, labels={"remit.name": "a"}, subject=subject)
        await journal.create(ON_IT[1], "job", created, JobCancelled(by="ann"), patch=patch)
        await erase(journal, subject, by="ann")
    with pytest.raises(ChainBrokenError) as caught:
        await moved(urls[MOVING], f"{urls[MOVING]}_new")
    assert caught.value.code is Code.BLOB_MISSING
    assert (await moved(urls[MOVING], f"{urls[MOVING]}_new", urls[0])).streams == 3


async def test_sums_and_limits_move_with_the_first_shard_and_no_later_one_stays_behind(urls: list[str]) -> None:
    await filled(urls)
    async with ShardedStorage(urls).open(SystemClock()) as journal:
        assert await journal.folds.keep([JournalFold("sums", 1, b"before")], 0)
        await moved(urls[0], f"{urls[0]}_new")
        with refused(Code.JOURNAL_SHARD_UNAVAILABLE):
            await journal.folds.keep([JournalFold("sums", 2, b"after")], 1)
    async with ShardedStorage([f"{urls[0]}_new", urls[1]]).open(SystemClock()) as journal:
        assert [fold.data for fold in await journal.folds.read("sums")] == [b"before"]


@pytest.mark.parametrize("step", ["freeze", "copy", "events", "folds", "prove", "retire", "activate"])
async def test_a_move_that_was_killed_goes_on(step: str, urls: list[str]) -> None:
    """At each step, by SIGKILL; nothing is lost, and the same command ends it."""
    await filled(urls)
    target = f"{urls[MOVING]}_new"
    kill(urls[MOVING], target, step)
    await moved(urls[MOVING], target)
    assert (await moved(urls[MOVING], target)).streams == 0
    await check_whole([urls[0], target])


@pytest.mark.parametrize("step", ["copy", "folds", "retire"])
async def test_a_move_that_was_killed_is_taken_back(step: str, urls: list[str]) -> None:
    """The old place goes on, and the new one, which was not activated, never runs."""
    await filled(urls)
    target = f"{urls[MOVING]}_new"
    kill(urls[MOVING], target, step)
    async with stores(urls[MOVING]) as (source,):
        await activate(Journal(source), "ann")
    await check_whole(urls)
    if step == "retire":
        async with stores(target) as (unused,):
            with refused(Code.JOURNAL_MOVED):
                await job(Journal(unused), ON_IT[0] + "/new")


@pytest.mark.parametrize("step", ["activate", ""])
async def test_what_has_moved_is_never_taken_back(step: str, urls: list[str]) -> None:
    """Also in the moment in which neither place runs: the same command ends it."""
    await filled(urls)
    target = f"{urls[MOVING]}_new"
    if step:
        kill(urls[MOVING], target, step)
    else:
        await moved(urls[MOVING], target)
    async with stores(urls[MOVING]) as (source,):
        for unfinished in (False, True):
            with refused(Code.JOURNAL_MOVED):
                await activate(Journal(source), "ann", unfinished=unfinished)
        with refused(Code.JOURNAL_MOVED):
            await job(Journal(source), ON_IT[0] + "/new")
    await moved(urls[MOVING], target)
    await check_whole([urls[0], target])


async def test_a_place_that_was_not_proven_runs_only_if_its_old_place_is_lost(urls: list[str]) -> None:
    await filled(urls)
    target = f"{urls[MOVING]}_new"
    kill(urls[MOVING], target, "prove")
    async with stores(target) as (store,):
        with refused(Code.JOURNAL_BACKUP):
            await activate(Journal(store), "ann")
        await activate(Journal(store), "ann", unfinished=True)
    await check_whole([urls[0], target])


async def test_a_place_that_lost_the_shard_or_passed_it_on_is_not_activated(urls: list[str]) -> None:
    await filled(urls)
    first, second = f"{urls[MOVING]}_new", f"{urls[MOVING]}_newer"
    kill(urls[MOVING], first, "activate")
    with refused(Code.JOURNAL_MOVED):
        await moved(urls[MOVING], second)
    await moved(urls[MOVING], first)
    await moved(first, second)
    with pytest.raises(UsageError, match="no longer has the shard"):
        await moved(urls[MOVING], first)
    await check_whole([urls[0], second])


async def test_only_a_shard_moves_and_only_to_an_empty_place(urls: list[str]) -> None:
    await filled(urls)
    async with PostgresStorage(f"{urls[0]}_own").open(SystemClock()) as journal:
        await job(journal, "job/a")
    with pytest.raises(UsageError, match="is no shard"):
        await moved(f"{urls[0]}_own", f"{urls[0]}_new")
    with pytest.raises(UsageError, match="has records already"):
        await moved(urls[0], f"{urls[0]}_own")
    await moved(urls[MOVING], f"{urls[MOVING]}_new")
    with refused(Code.JOURNAL_MOVED):
        await moved(urls[MOVING], f"{urls[MOVING]}_other")
    async with stores(urls[MOVING]) as (source,):
        assert await numbers(Journal(source), ON_IT[0]) == [1, 2]
