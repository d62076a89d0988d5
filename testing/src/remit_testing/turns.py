"""The promises of limits of calls over all processes, as checks that run on every storage of the journal.

    @pytest.mark.parametrize("check", TURN_CHECKS, ids=lambda check: check.__name__)
    async def test_contract(check):
        await check(MyStorage())

`MyStorage` is a storage of remit_testing.journal. Each instance stands for a process.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import Any, Final

import msgspec

from remit.canonical import sha256
from remit.clock import DAY, SECOND
from remit.codes import Code
from remit.gateway.turns import Obstacle
from remit.gateway.turnstiles import LimitCaller, Turnstile, Turnstiles
from remit.journal.event import JournalFold
from remit.settings.sections.calls import CallLimit
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import Storage, opened
from remit_testing.suite import checks_in

_PROCESSES: Final = 3
_TIMEOUT_S: Final = 30.0
_CALLER: Final = LimitCaller("web.fetch", "ann", "", {})
Check = Callable[[Storage], Awaitable[None]]


@asynccontextmanager
async def _processes(storage: Storage, clock: ManualClock, **limit: Any) -> AsyncIterator[list[Turnstile]]:
    """One limit as several processes meet it."""
    async with AsyncExitStack() as stack:
        turnstiles = []
        for _ in range(_PROCESSES):
            journal = await stack.enter_async_context(opened(storage, clock))
            every = Turnstiles(journal, {"web.*": CallLimit(**limit)})
            stack.push_async_callback(every.close)
            turnstiles.append(every.turnstile("web.*", _CALLER))
        yield turnstiles


async def _enter(turnstiles: Sequence[Turnstile], calls: int) -> list[tuple[int, Obstacle | None]]:
    """Let calls of all processes in at the same moment."""
    entering = (turnstiles[i % len(turnstiles)].enter(f"call-{i}", "ann", _TIMEOUT_S) for i in range(calls))
    return list(enumerate(await asyncio.gather(*entering)))


def _begun(outcomes: Sequence[tuple[int, Obstacle | None]]) -> list[int]:
    return [call for call, obstacle in outcomes if obstacle is None]


def _codes(outcomes: Sequence[tuple[int, Obstacle | None]]) -> set[Code]:
    return {obstacle.code for _, obstacle in outcomes if obstacle is not None}


async def _pass_time(clock: ManualClock, *calls: Sequence[asyncio.Future[Any]]) -> None:
    """Let time pass, whenever each process that has calls waits for it, until all calls have ended."""
    while waiting := [[call for call in each if not call.done()] for each in calls if not all(c.done() for c in each)]:
        asleep = asyncio.ensure_future(clock.until_asleep(len(waiting)))
        await asyncio.wait([asleep, *(call for each in waiting for call in each)], return_when="FIRST_COMPLETED")
        if asleep.done():
            clock.advance(0.5)
        asleep.cancel()


async def check_a_rate_holds_over_all_processes(storage: Storage) -> None:
    """As many calls as come at once, then one for each that the time brings."""
    clock = ManualClock()
    async with _processes(storage, clock, rate="60/min", burst=4, wait_seconds=0) as turnstiles:
        outcomes = await _enter(turnstiles, 12)
        assert (len(_begun(outcomes)), _codes(outcomes)) == (4, {Code.RATE_LIMITED})
        assert {obstacle.at for _, obstacle in outcomes if obstacle is not None} == {clock.now() + 1_000_000}
        clock.advance(2.5)
        assert len(_begun(await _enter(turnstiles, 12))) == 2
        clock.advance(3_600)
        assert len(_begun(await _enter(turnstiles, 12))) == 4


async def check_a_call_that_was_never_made_does_not_count(storage: Storage) -> None:
    """Its part of the rate is given back."""
    async with _processes(storage, ManualClock(), rate="1/h", wait_seconds=0) as turnstiles:
        assert _begun(await _enter(turnstiles[:1], 1)) == [0]
        await turnstiles[0].leave("call-0", "unused")
        assert len(_begun(await _enter(turnstiles, 3))) == 1


async def check_places_are_counted_over_all_processes(storage: Storage) -> None:
    """No more calls are under way than there are places; who leaves makes room."""
    async with _processes(storage, ManualClock(), concurrency=3, wait_seconds=0) as turnstiles:
        outcomes = await _enter(turnstiles, 9)
        begun = _begun(outcomes)
        assert (len(begun), _codes(outcomes)) == (3, {Code.CONCURRENCY_LIMITED})
        for call in begun[:2]:
            await turnstiles[call % _PROCESSES].leave(f"call-{call}", "answered")
        assert len(_begun(await _enter(turnstiles, 9))) == 2


async def check_places_of_a_process_that_died_lapse(storage: Storage) -> None:
    """Once its calls must have ended."""
    clock = ManualClock()
    async with _processes(storage, clock, concurrency=2, wait_seconds=0) as turnstiles:
        assert len(_begun(await _enter(turnstiles[:1], 2))) == 2
        clock.advance(_TIMEOUT_S)
        assert not _begun(await _enter(turnstiles[1:], 2))
        clock.advance(61)
        assert len(_begun(await _enter(turnstiles[1:], 4))) == 2


async def check_a_call_waits_for_a_place_of_another_process(storage: Storage) -> None:
    """And begins once that is given back; if it is not, the wait ends."""
    clock = ManualClock()
    async with _processes(storage, clock, concurrency=1, wait_seconds=10) as (first, other, _):
        assert await first.enter("first", "ann", _TIMEOUT_S) is None
        waiting = asyncio.ensure_future(other.enter("second", "bob", _TIMEOUT_S))
        await clock.until_asleep()
        await first.leave("first", "answered")
        clock.advance(1)
        assert await waiting is None
        late = asyncio.ensure_future(first.enter("third", "ann", _TIMEOUT_S))
        await clock.until_asleep()
        clock.advance(10)
        obstacle = await late
        assert obstacle is not None
        assert obstacle.code is Code.CONCURRENCY_LIMITED


async def check_a_cancelled_call_leaves_nothing_behind(storage: Storage) -> None:
    """Neither while it waits, nor if its turn came at that moment."""
    clock = ManualClock()
    async with _processes(storage, clock, concurrency=1) as (first, other, _):
        assert await first.enter("first", "ann", _TIMEOUT_S) is None
        waiting = asyncio.ensure_future(first.enter("second", "ann", _TIMEOUT_S))
        await clock.until_asleep()
        leaving = asyncio.ensure_future(first.leave("first", "answered"))
        waiting.cancel()
        await asyncio.wait([waiting, leaving])
        entering = asyncio.ensure_future(other.enter("third", "bob", _TIMEOUT_S))
        await _pass_time(clock, [entering])
        assert entering.result() is None


async def check_a_circuit_is_open_for_all_processes(storage: Storage) -> None:
    """After failures in a row, wherever; then one call probes, and what becomes of it counts."""
    clock = ManualClock()
    async with _processes(storage, clock, breaker=2, breaker_seconds=30) as turnstiles:
        first, other, third = turnstiles
        for number, end in enumerate(("unreachable", "answered", "unreachable", "unreachable")):
            assert await first.enter(str(number), "ann", _TIMEOUT_S) is None
            await first.leave(str(number), "answered" if end == "answered" else "unreachable")
        assert _codes(await _enter(turnstiles, 3)) == {Code.CIRCUIT_OPEN}
        clock.advance(30)
        outcomes = await _enter((other, third), 4)
        assert (len(_begun(outcomes)), _codes(outcomes)) == (1, {Code.CIRCUIT_OPEN})
        (probe,) = _begun(outcomes)
        await (other, third)[probe % 2].leave(f"call-{probe}", "unreachable")
        assert not _begun(await _enter(turnstiles, 3))
        clock.advance(30)
        assert await other.enter("probe", "ann", _TIMEOUT_S) is None
        await other.leave("probe", "answered")
        assert len(_begun(await _enter(turnstiles, 6))) == 6


async def check_those_who_wait_take_turns(storage: Storage) -> None:
    """Many calls of one do not hold up a call of another, in whichever process."""
    clock = ManualClock()
    async with _processes(storage, clock, rate="60/min", burst=1, wait_seconds=3_600) as (first, other, _):
        order: list[str] = []

        async def call(turnstile: Turnstile, share: str, number: int) -> None:
            if await turnstile.enter(f"{share}-{number}", share, _TIMEOUT_S) is None:
                order.append(share)

        many = [asyncio.ensure_future(call(first, "hog", number)) for number in range(8)]
        await clock.until_asleep()
        few = [asyncio.ensure_future(call(other, "ann", number)) for number in range(2)]
        await _pass_time(clock, many, few)
        assert len(order) == 10
        assert max(place for place, share in enumerate(order) if share == "ann") < 6


async def check_a_row_that_cannot_be_read_counts_as_unused(storage: Storage) -> None:
    """It is an index, not a record."""
    clock = ManualClock()
    async with opened(storage, clock) as journal:
        assert await journal.folds.keep([JournalFold("limits/web.*", 7, b"{")], 0)
        turnstiles = Turnstiles(journal, {"web.*": CallLimit(rate="1/h", wait_seconds=0)})
        assert len(_begun(await _enter([turnstiles.turnstile("web.*", _CALLER)], 2))) == 1


def _neighbours(number: int) -> tuple[str, list[str]]:
    """Return a row, and as many principals whose states share it."""
    rows = defaultdict[str, list[str]](list)
    for principal in map(str, count()):
        row = f"limits/web.*/{sha256(principal.encode()).removeprefix('sha256:')[:3]}"
        rows[row].append(principal)
        if len(rows[row]) == number:
            return row, rows[row]
    raise AssertionError  # it counts on


async def check_values_with_limits_for_themselves_take_bounded_room(storage: Storage) -> None:
    """They share a row, each with a state of its own, until that is at rest: also one with failures of long ago."""
    clock = ManualClock()
    row, (ann, bob, eve) = _neighbours(3)
    async with opened(storage, clock) as journal:
        limit = CallLimit(rate="1/h", breaker=2, each="principal", wait_seconds=0)
        every = Turnstiles(journal, {"web.*": limit})
        of = {name: every.turnstile("web.*", LimitCaller("web.fetch", name, "", {})) for name in (ann, bob, eve)}
        for name in (ann, bob):
            assert len(_begun(await _enter([of[name]], 2))) == 1
        await of[bob].leave("call-0", "unreachable")
        for later, values in ((3_000, 3), (DAY // SECOND, 1)):
            clock.advance(later)
            await _enter([of[eve]], 1)
            (fold,) = await journal.folds.read(row)
            assert len(msgspec.json.decode(fold.data)) == values
        assert len(_begun(await _enter([of[bob]], 1))) == 1
        await every.close()


TURN_CHECKS: Final[tuple[Check, ...]] = checks_in(globals())
