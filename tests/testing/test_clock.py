from __future__ import annotations

import asyncio

import pytest

from remit.clock import Clock
from remit_testing.clock import START, ManualClock


async def test_it_stands_still_until_it_is_advanced() -> None:
    clock: Clock = ManualClock()
    assert (clock.now(), clock.monotonic()) == (START, 0.0)
    assert (clock.now(), clock.monotonic()) == (START, 0.0)


async def test_both_times_move_together() -> None:
    clock = ManualClock(5)
    clock.advance(1.5)
    clock.advance(0)
    assert (clock.now(), clock.monotonic()) == (1_500_005, 1.5)


async def test_it_never_goes_back() -> None:
    clock = ManualClock()
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)
    assert clock.now() == START


async def test_who_sleeps_goes_on_at_its_time_and_not_before() -> None:
    clock = ManualClock()
    sleeper = asyncio.create_task(clock.sleep(2))
    await clock.until_asleep()
    clock.advance(1.999_999)
    await asyncio.sleep(0)  # noqa: TID251 - lets it go on if it could, and waits for nothing
    assert not sleeper.done()
    assert clock.sleepers == 1
    clock.advance(0.000_001)
    await sleeper
    assert clock.sleepers == 0


async def test_sleepers_wake_in_the_order_of_their_times() -> None:
    clock, woken = ManualClock(), list[str]()

    async def sleep(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    tasks = [
        asyncio.create_task(sleep(name, at)) for name, at in (("c", 3), ("a", 1), ("d", 3), ("b", 2), ("later", 9))
    ]
    await clock.until_asleep(5)
    clock.advance(3)
    await asyncio.gather(*tasks[:4])
    assert woken == ["a", "b", "c", "d"]
    assert clock.sleepers == 1
    tasks[4].cancel()
    await asyncio.wait(tasks)


async def test_no_time_is_a_turn_for_others() -> None:
    clock, turns = ManualClock(), list[str]()

    async def other() -> None:
        turns.append("other")

    task = asyncio.create_task(other())
    for seconds in (0, -3):
        await clock.sleep(seconds)
        turns.append("slept")
    await task
    assert turns == ["other", "slept", "slept"]


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(1))
    await clock.until_asleep()
    task.cancel()
    await asyncio.wait([task])
    assert clock.sleepers == 0
    clock.advance(2)


async def test_waiting_for_sleepers_waits_for_enough_of_them() -> None:
    clock = ManualClock()
    first = asyncio.create_task(clock.sleep(1))
    two = asyncio.create_task(clock.until_asleep(2))
    await clock.until_asleep(1)
    assert not two.done()
    second = asyncio.create_task(clock.sleep(1))
    await two
    clock.advance(1)
    await asyncio.gather(first, second)
