"""The promises of a lease to its holder, on every kind of stream (rule 4), as checks that any test suite can run.

    @pytest.mark.parametrize("check", LEASE_CHECKS, ids=lambda check: check.__name__)
    async def test_contract(check):
        await check(MyStorage(), my_stream)

`MyStorage` is a storage of remit_testing.journal. `my_stream` makes one stream of the kind under
test, free to be leased.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from remit.journal.journal import Journal
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import Storage, opened
from remit_testing.suite import checks_in

LEASE_S: Final = 10
"""Seconds that each lease is taken and renewed for."""


class Holder(Protocol):
    """One lease, as the one who took it has it."""

    async def renew(self) -> bool:
        """Prolong the lease; whether it is still held."""
        ...

    async def release(self) -> bool:
        """Give the lease up with a last write; whether that was accepted."""
        ...


class LeasableStream(Protocol):
    """A stream of the kind under test."""

    async def lease(self, owner: str) -> Holder | None:
        """Lease it; None if someone else's lease runs."""
        ...


Make = Callable[[Journal], Awaitable[LeasableStream]]
Check = Callable[[Storage, Make], Awaitable[None]]


async def _held(stream: LeasableStream, owner: str) -> Holder:
    holder = await stream.lease(owner)
    assert holder is not None, f"{owner} does not get a stream that is free"
    return holder


async def check_one_of_many_gets_the_stream(storage: Storage, make: Make) -> None:
    """However many ask at once, and also later while the lease runs."""
    clock = ManualClock()
    async with opened(storage, clock) as journal:
        stream = await make(journal)
        holders = await asyncio.gather(*(stream.lease(f"owner-{number}") for number in range(10)))
        assert sum(holder is not None for holder in holders) == 1
        clock.advance(LEASE_S - 1)
        assert await stream.lease("late") is None


async def check_a_lease_that_ran_out_counts_until_another_has_the_stream(storage: Storage, make: Make) -> None:
    """The token decides, not the clock: what the holder writes late is accepted."""
    clock = ManualClock()
    async with opened(storage, clock) as journal:
        stream = await make(journal)
        slow = await _held(stream, "slow")
        clock.advance(2 * LEASE_S)
        assert await slow.renew()
        clock.advance(2 * LEASE_S)
        assert await slow.release()


async def check_who_was_superseded_neither_renews_nor_writes(storage: Storage, make: Make) -> None:
    """And does the new holder no harm."""
    clock = ManualClock()
    async with opened(storage, clock) as journal:
        stream = await make(journal)
        slow = await _held(stream, "slow")
        clock.advance(LEASE_S)
        fast = await _held(stream, "fast")
        assert not await slow.renew()
        assert not await slow.release()
        assert await fast.renew()
        assert await fast.release()


async def check_a_renewed_lease_runs_from_then_on(storage: Storage, make: Make) -> None:
    """For as long as it was taken for, and no longer."""
    clock = ManualClock()
    async with opened(storage, clock) as journal:
        stream = await make(journal)
        holder = await _held(stream, "holder")
        clock.advance(LEASE_S - 1)
        assert await holder.renew()
        clock.advance(LEASE_S - 1)
        assert await stream.lease("other") is None
        clock.advance(1)
        await _held(stream, "other")


async def check_who_gave_a_lease_up_holds_it_no_more(storage: Storage, make: Make) -> None:
    """Even before someone else takes the stream, which is free at once."""
    async with opened(storage) as journal:
        stream = await make(journal)
        holder = await _held(stream, "holder")
        assert await holder.release()
        assert not await holder.release()
        assert not await holder.renew()
        assert await (await _held(stream, "other")).release()


LEASE_CHECKS: Final[tuple[Check, ...]] = checks_in(globals())
"""Every check."""
