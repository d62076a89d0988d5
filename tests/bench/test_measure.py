"""A ratio says how far a measurement is from its floor: 1 is the floor itself, less is further away."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from bench import floors
from bench.__main__ import row
from bench.measure import Result, against
from bench.subject import nothing, reads, remit_in, writes


def samples(*values: float) -> Callable[[], Awaitable[float]]:
    """A sample that gives these values, over and over."""
    source: Iterator[float] = iter(values * 10)

    async def sample() -> float:
        return next(source)

    return sample


@pytest.mark.parametrize(("unit", "ratio"), [("per second", 0.5), ("µs", 2.0)])
async def test_a_rate_is_divided_by_its_floor_and_a_time_divides_it(unit: str, ratio: float) -> None:
    result = await against("subject", unit, samples(50.0), samples(100.0))  # type: ignore[arg-type]
    assert (result.value, result.floor, result.floor_ratio) == (50, 100, ratio)


async def test_ratios_are_taken_pair_by_pair() -> None:
    # The machine slows down by half in the middle: value and floor both do, their ratio does not.
    result = await against("subject", "per second", samples(10, 10, 10, 5, 5), samples(20, 20, 20, 10, 10))
    assert result.floor_ratio == 0.5


def test_a_line_names_value_floor_and_ratio() -> None:
    line = row(Result(name="subject", value=1234.5, unit="per second", floor=2469, floor_ratio=0.5, note="bare"))
    assert line.split() == ["subject", "1,234", "per", "second", "2,469", "0.50", "bare"]


async def test_the_floors_write_what_they_count(tmp_path: Path) -> None:
    assert await floors.one_transaction_each(tmp_path, 8, "FULL") > 0
    assert await floors.grouped(tmp_path, 8, 4) > 0


async def test_the_subjects_run(tmp_path: Path) -> None:
    async with remit_in(tmp_path) as remit:
        assert await remit.run(reads(2)) == 2
        assert await remit.run(writes(2)) == 2
        assert await remit.run(nothing()) is None  # type: ignore[func-returns-value]
