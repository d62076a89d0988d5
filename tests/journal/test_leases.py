"""Leases as their holders have them: on every kind of stream, and what a process does with the leases it has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from remit.clock import SECOND
from remit.errors import AppendConflictError
from remit.journal.event import HeadPatch
from remit.journal.journal import Journal
from remit.journal.leases import HeldLease, LeaseProof, LeaseTerms, keep_renewing
from remit.randomness import SystemRandomSource
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import head_of, job, note
from remit_testing.leases import LEASE_CHECKS, Check, Make
from tests.journal.leasable import KINDS
from tests.journal.storages import KEYS, SqliteStorage

TERMS = LeaseTerms(kind="job", owner="worker", seconds=30, state="running")
QUIET = HeadPatch(due_at=None)


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("check", LEASE_CHECKS, ids=lambda check: check.__name__)
async def test_leases_in_memory_keep_their_promises(check: Check, make: Make) -> None:
    await check(SqliteStorage(), make)


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("check", LEASE_CHECKS, ids=lambda check: check.__name__)
async def test_leases_in_a_file_keep_their_promises(check: Check, make: Make, tmp_path: Path) -> None:
    await check(SqliteStorage(tmp_path / "journal.db", KEYS["sealed"]), make)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def journal(clock: ManualClock) -> AsyncIterator[Journal]:
    async with SqliteStorage().open(clock) as journal:
        yield journal


async def held(journal: Journal, stream: str = "job/a") -> HeldLease:
    await job(journal, stream)
    (lease,) = await journal.claim(TERMS.claim(journal.clock.now()))
    return HeldLease(journal, lease.head)


async def test_a_lease_is_kept_until_it_is_lost(journal: Journal, clock: ManualClock) -> None:
    lease = await held(journal)
    keeping = asyncio.create_task(lease.keep(TERMS))
    for _ in range(4):  # longer than a lease lasts
        await clock.until_asleep()
        clock.advance(TERMS.seconds / 3)
    await clock.until_asleep()
    assert (await head_of(journal)).lease_until == TERMS.until(clock.now())
    taken = await journal.acquire("job/a", TERMS.claim(clock.now()), over="worker")
    assert taken is not None
    clock.advance(TERMS.seconds / 3)
    await keeping
    assert lease.writer.failure is not None


async def test_renewing_goes_on_until_it_is_told_that_the_lease_is_lost() -> None:
    clock, times = ManualClock(), list[int]()

    async def renew() -> bool:
        times.append(clock.now())
        return len(times) < 3

    began = clock.now()
    keeping = asyncio.create_task(keep_renewing(clock, 30, renew))
    for _ in range(3):
        await clock.until_asleep()
        clock.advance(10)
    await keeping
    assert [(at - began) // SECOND for at in times] == [10, 20, 30]


async def test_a_lost_lease_has_no_head_and_no_new_writer(journal: Journal) -> None:
    lease = await held(journal)
    assert await lease.current() == await head_of(journal)
    await lease.rewrite()
    assert await journal.acquire("job/a", TERMS.claim(journal.clock.now()), over="worker") is not None
    with pytest.raises(AppendConflictError):
        await lease.rewrite()
    assert await lease.current() is None


async def test_a_lease_is_given_up_once(journal: Journal) -> None:
    lease = await held(journal)
    await lease.release(note(2), patch=QUIET)
    head = await head_of(journal)
    assert (head.seq, head.lease_owner) == (2, None)
    await lease.give_up(HeadPatch(state="stopped", due_at=0))
    assert await head_of(journal) == head
    assert await lease.current() is None


async def test_a_stream_that_was_woken_is_still_held(journal: Journal) -> None:
    lease = await held(journal)
    await journal.wake("job/a")
    assert not await lease.park(QUIET, seen_wakes=0)
    assert await lease.current() is not None
    assert await lease.park(QUIET, seen_wakes=1)
    assert await lease.current() is None


async def test_a_proof_is_good_for_its_own_lease_alone(journal: Journal, clock: ManualClock) -> None:
    await job(journal, "job/a")
    leases = []
    for owner in ("ann", "bob"):
        terms = LeaseTerms(kind="job", owner=owner, seconds=1)
        leases += await journal.claim(terms.claim(clock.now()))
        clock.advance(1)
    proofs = [LeaseProof.drawn(lease.head, SystemRandomSource()) for lease in leases]
    (first, second), (old, new) = proofs, (lease.head for lease in leases)
    assert first.proves(old, "ann", first.digest)
    assert second.proves(new, "bob", second.digest)
    assert not first.proves(new, "ann", first.digest), "bob has taken the stream, and that is not recorded yet"
    assert not first.proves(new, "bob", second.digest)
    assert not LeaseProof(owner="bob", token=first.token).proves(old, "ann", first.digest)
    assert first.token.partition(".")[2] not in first.digest
