from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from remit.journal.event import StreamTally
from remit.pages.chart import first_hour
from remit.pages.page import FRESH, OLD, Day
from remit_testing.clock import START

pytestmark = pytest.mark.slow


class Jobs:
    """Counts how often it is asked; fails as often as it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.faults = 0

    async def tallies(self, since: int, width: int, bounds: Sequence[int]) -> list[StreamTally]:
        self.asked += 1
        if self.faults:
            self.faults -= 1
            raise OSError("away")
        return [StreamTally(0, "completed", 0, self.asked)]


def counted(times: int) -> list[StreamTally]:
    return [StreamTally(0, "completed", 0, times)]


async def turn() -> None:
    """Wait for a count that runs in the background."""
    for _ in range(3):
        await asyncio.sleep(0)  # noqa: TID251 - turns of the loop, no time


async def test_a_day_is_counted_once_a_minute_for_everyone_and_nobody_waits() -> None:
    day = Day(Jobs())  # type: ignore[arg-type] # of jobs it only needs this
    both = await asyncio.gather(day.tallies(START), day.tallies(START + 1))
    assert both[0] == both[1] == (first_hour(START), counted(1))
    assert (await day.tallies(START + FRESH))[1] == counted(1)
    await turn()
    assert (await day.tallies(START + FRESH + 1))[1] == counted(2)
    assert (await day.tallies(START + FRESH + OLD))[1] == counted(3), "what is too old is waited for"


async def test_a_count_that_failed_is_made_again() -> None:
    jobs = Jobs()
    day = Day(jobs)  # type: ignore[arg-type] # of jobs it only needs this
    jobs.faults = 1
    with pytest.raises(OSError, match="away"):
        await day.tallies(START)
    assert (await day.tallies(START))[1] == counted(2)
    jobs.faults = 1
    assert (await day.tallies(START + FRESH))[1] == counted(2)
    await turn()
    assert (await day.tallies(START + FRESH))[1] == counted(2)
    await turn()
    assert (await day.tallies(START + FRESH))[1] == counted(4)
