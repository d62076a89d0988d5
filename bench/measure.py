"""What a measurement is, and how one is taken.

A floor is the least that the same machine could do for the same promise: the bare driver, system call or interpreter.
Value and floor are taken in turn, several times, so that a machine whose speed drifts drifts under both; ratios are
medians.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

ROUNDS = 5
Unit = Literal["per second", "µs", "ms"]
Sample = Callable[[], Awaitable[float]]
"""Takes one measurement, in the unit of its result."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table and of build/bench.json."""

    name: str
    value: float
    unit: Unit
    floor: float | None = None
    floor_ratio: float | None = None
    """Value by floor for rates, floor by value for times: 1 is the floor itself, less is further away."""
    peer: str | None = None
    peer_ratio: float | None = None
    """Above 1: better than the peer."""
    mark: str | None = None
    """What the ratio or value has to reach."""
    met: bool | None = None
    note: str = ""


async def against(name: str, unit: Unit, sample: Sample, floor: Sample | None, note: str = "") -> Result:
    """Take a measurement and its floor in turn."""
    values, floors = [], []
    for _ in range(ROUNDS):
        gc.collect()
        values.append(await sample())
        if floor is not None:
            gc.collect()
            floors.append(await floor())
    ratios = [_ratio(unit, value, base) for value, base in zip(values, floors, strict=False)]
    return Result(
        name=name,
        value=statistics.median(values),
        unit=unit,
        floor=statistics.median(floors) if floors else None,
        floor_ratio=statistics.median(ratios) if ratios else None,
        note=note,
    )


def _ratio(unit: Unit, value: float, floor: float) -> float:
    return value / floor if unit == "per second" else floor / value


class Watch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def rate(self, count: int) -> float:
        """Things per second."""
        return count / (time.perf_counter() - self._began)

    def micros(self, count: int) -> float:
        """Microseconds per thing."""
        return (time.perf_counter() - self._began) * 1e6 / count
