from __future__ import annotations

import asyncio

import pytest

from remit.models.faults import Busy
from remit.models.port import Limiter
from remit_testing.clock import ManualClock


async def test_no_more_than_so_many_are_under_way() -> None:
    limiter, started, ended = Limiter(ManualClock(), 2), 0, asyncio.Event()

    async def one() -> None:
        nonlocal started
        async with limiter.turn():
            started += 1
            await ended.wait()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one()) for _ in range(5)]
        done, _ = await asyncio.wait(tasks, timeout=0)
        for _ in range(3):
            await asyncio.wait(tasks, timeout=0)
        assert started == 2
        assert not done
        ended.set()
    assert started == 5


async def test_a_short_pause_is_waited_for_by_everyone() -> None:
    clock = ManualClock()
    limiter = Limiter(clock, 9)
    limiter.pause(2)

    async def one() -> float:
        async with limiter.turn():
            return clock.monotonic()

    tasks = [asyncio.create_task(one()) for _ in range(3)]
    await clock.until_asleep(3)
    clock.advance(2)
    assert await asyncio.gather(*tasks) == [2.0, 2.0, 2.0]


async def test_a_long_pause_is_a_fault_with_the_time_that_is_left() -> None:
    clock = ManualClock()
    limiter = Limiter(clock, 9)
    limiter.pause(600)
    limiter.pause(5)
    clock.advance(100)
    with pytest.raises(Busy) as caught:
        async with limiter.turn():
            pass
    assert caught.value.after_s == 500
    assert caught.value.billed == "no"
