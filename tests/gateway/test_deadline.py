"""Deadlines of running calls."""

from __future__ import annotations

import asyncio

import pytest

from remit.gateway.stages.invoke import Deadline, Deadlines


async def limited(deadlines: Deadlines, timeout_s: float, reached: list[str], name: str) -> Deadline:
    task = asyncio.current_task()
    assert task is not None
    deadline = deadlines.start(task, timeout_s)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        reached.append(name)
    deadlines.stop(deadline)
    assert task.cancelling() == 0
    return deadline


async def test_whose_time_is_up_is_cancelled_in_the_order_of_the_times() -> None:
    deadlines, reached = Deadlines(), list[str]()
    times = {"b": 0.02, "a": 0.01, "c": 0.03}
    ended = await asyncio.gather(*(limited(deadlines, time, reached, name) for name, time in times.items()))
    due = {name: deadline.when for name, deadline in zip(times, ended, strict=True)}
    assert reached == sorted(times, key=due.__getitem__)
    assert all(deadline.expired for deadline in ended)


async def test_who_is_done_in_time_is_left_alone() -> None:
    deadlines, reached = Deadlines(), list[str]()
    task = asyncio.current_task()
    assert task is not None
    for _ in range(3):
        deadline = deadlines.start(task, 0.01)
        deadlines.stop(deadline)
        assert not deadline.expired
    await limited(deadlines, 0.03, reached, "only this")  # the others' time has passed by then
    assert reached == ["only this"]


async def test_more_time_counts_from_now_on_and_ends_where_it_has_to() -> None:
    deadlines, task = Deadlines(), asyncio.current_task()
    assert task is not None
    now = asyncio.get_running_loop().time()
    deadline = deadlines.start(task, 1_000)
    deadlines.extend(deadline, 5_000, now + 3_000)
    assert deadline.when == now + 3_000
    deadlines.extend(deadline, 10, now + 3_000)  # never less than it has
    assert deadline.when == now + 3_000
    deadlines.stop(deadline)


async def test_after_the_last_one_the_clock_is_left_alone() -> None:
    troubles: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: troubles.append(context))
    assert (await limited(Deadlines(), 0.01, [], "only")).expired
    assert troubles == []


async def test_a_time_that_is_already_over_cancels_at_the_first_chance() -> None:
    deadlines, reached = Deadlines(), list[str]()
    for timeout in (0, -5):
        assert (await limited(deadlines, timeout, reached, "late")).expired


async def test_one_within_another_of_the_same_task() -> None:
    deadlines, task = Deadlines(), asyncio.current_task()
    assert task is not None
    outer = deadlines.start(task, 0.01)
    inner = deadlines.start(task, 30)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.Event().wait()
    deadlines.stop(inner)
    assert (outer.expired, inner.expired, task.cancelling()) == (True, False, 1)
    deadlines.stop(outer)
    assert task.cancelling() == 0


def test_another_event_loop_starts_anew() -> None:
    deadlines, reached = Deadlines(), list[str]()

    async def leave_one_behind() -> None:
        task = asyncio.current_task()
        assert task is not None
        deadlines.start(task, 0.001)

    asyncio.run(leave_one_behind())
    asyncio.run(limited(deadlines, 0.01, reached, "here"))
    assert reached == ["here"]
