"""What a measurement is, and how one is taken.

A floor is the least that the same machine could do for the same promise: the bare driver, system call or interpreter. A
peer is another program that makes the promise. Value, floor and peers are taken in turn, several times, so that a
machine whose speed drifts drifts under all of them; ratios are medians of the pairs.
"""

from __future__ import annotations

import gc
import resource
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NamedTuple

import msgspec

ROUNDS, PEER_ROUNDS = 5, 3
"""A peer takes longer than all the rest."""
ROUNDS_AT_MOST = 100
"""Whatever a measurement asks for; tests take one."""
Unit = Literal["per second", "µs", "ms", "flushes", "bytes", "kB", "files", "moves", "% of a core"]
"""Of a rate more is better, of everything else less."""


class Reading(NamedTuple):
    """One measurement, in the unit of its result."""

    value: float
    cpu_us: float | None = None
    """Microseconds of processor per step, in all threads and ended children."""


Sample = Callable[[], Awaitable[Reading]]


class Mark(NamedTuple):
    """How far a number has to come: at least so much of a rate, at most so much of anything else."""

    limit: float
    of: Literal["value", "floor", "peer"] = "value"

    def text(self, unit: Unit) -> str:
        """As the table shows it."""
        if self.of == "peer":
            return f"≥ {self.limit:g} x peer"
        sign = "≥" if unit == "per second" else "≤"
        return f"{sign} {self.limit:,g} {unit}" if self.of == "value" else f"{sign} {self.limit:g} x floor"

    def met(self, unit: Unit, value: float, ratio: float | None) -> bool:
        """Whether a value is there, given its ratio to floor or peer, of which 1 is as good and more is better."""
        rate = unit == "per second"
        if self.of == "value":
            return value >= self.limit if rate else value <= self.limit
        assert ratio is not None
        return ratio >= (self.limit if rate or self.of == "peer" else 1 / self.limit)


class Peer(NamedTuple):
    """Another program that makes the same promise."""

    name: str
    sample: Sample
    mark: Mark | None = None


class PeerMissingError(Exception):
    """The peer, or what a measurement stands on, cannot run here; the message says why."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table and of build/bench.json: a value beside its floor, or the same value beside one peer."""

    name: str
    value: float
    unit: Unit
    cpu_us: float | None = None
    """Processor microseconds per step of what was measured."""
    floor: float | None = None
    floor_ratio: float | None = None
    """Value by floor for rates, floor by value for the rest: 1 is the floor itself, less is further away."""
    peer: str | None = None
    peer_value: float | None = None
    peer_cpu_us: float | None = None
    peer_ratio: float | None = None
    """Above 1: better than the peer."""
    mark: str | None = None
    """What the ratio or value has to reach."""
    met: bool | None = None
    note: str = ""


async def against(
    name: str,
    unit: Unit,
    sample: Sample,
    floor: Sample | None,
    note: str = "",
    *,
    mark: Mark | None = None,
    peers: Sequence[Peer] = (),
    rounds: int = ROUNDS,
) -> list[Result]:
    """Take a measurement, its floor and its peers in turn: a result of its own, then one for each peer."""
    taken: dict[str, list[Reading]] = {}
    missing: dict[str, str] = {}
    for number in range(min(rounds, ROUNDS_AT_MOST)):
        await _take(taken, "", sample)
        if floor is not None:
            await _take(taken, "floor", floor)
        for peer in peers:
            if number < PEER_ROUNDS and peer.name not in missing:
                try:
                    await _take(taken, f"peer {peer.name}", peer.sample)
                except PeerMissingError as error:
                    missing[peer.name] = str(error)
    own = taken[""]
    value = statistics.median(reading.value for reading in own)
    ratio = _ratio(unit, own, taken.get("floor", []))
    result = Result(
        name=name,
        value=value,
        unit=unit,
        cpu_us=_cpu(own),
        floor=_value(taken.get("floor", [])),
        floor_ratio=ratio,
        mark=mark.text(unit) if mark else None,
        met=mark.met(unit, value, ratio) if mark else None,
        note=note,
    )
    return [result, *(_beside(result, own, peer, taken.get(f"peer {peer.name}", []), missing) for peer in peers)]


async def _take(taken: dict[str, list[Reading]], which: str, sample: Sample) -> None:
    gc.collect()
    reading = await sample()
    taken.setdefault(which, []).append(reading)


def _beside(
    result: Result, own: Sequence[Reading], peer: Peer, theirs: Sequence[Reading], missing: dict[str, str]
) -> Result:
    ratio = _ratio(result.unit, own, theirs)
    return Result(
        name=result.name,
        value=result.value,
        unit=result.unit,
        cpu_us=result.cpu_us,
        peer=peer.name,
        peer_value=_value(theirs),
        peer_cpu_us=_cpu(theirs),
        peer_ratio=ratio,
        mark=peer.mark.text(result.unit) if peer.mark else None,
        met=peer.mark.met(result.unit, result.value, ratio) if peer.mark and ratio is not None else None,
        note=f"skipped: {missing[peer.name]}" if peer.name in missing else "",
    )


def _value(readings: Sequence[Reading]) -> float | None:
    return statistics.median(reading.value for reading in readings) if readings else None


def _cpu(readings: Sequence[Reading]) -> float | None:
    known = [reading.cpu_us for reading in readings if reading.cpu_us is not None]
    return statistics.median(known) if known else None


def _ratio(unit: Unit, values: Sequence[Reading], others: Sequence[Reading]) -> float | None:
    """The median over the rounds."""
    pairs = [(first.value, other.value) for first, other in zip(values, others, strict=False)]
    ratios = [value / other if unit == "per second" else other / value for value, other in pairs]
    return statistics.median(ratios) if ratios else None


class Watch:
    """Seconds since it was made, by the clock and of the processor.

    `server` gives the processor seconds of a server beside this process.
    """

    def __init__(self, server: Callable[[], float] = float) -> None:
        self._server = server
        self._cpu = self._used()
        self._began = time.perf_counter()

    def rate(self, count: int) -> Reading:
        """Things per second."""
        return Reading(count / (time.perf_counter() - self._began), self._cpu_us(count))

    def micros(self, count: int) -> Reading:
        """Microseconds per thing."""
        return Reading((time.perf_counter() - self._began) * 1e6 / count, self._cpu_us(count))

    def millis(self, count: int) -> Reading:
        """Milliseconds per thing."""
        return Reading((time.perf_counter() - self._began) * 1e3 / count, self._cpu_us(count))

    def processor_rate(self, count: int) -> Reading:
        """Things for each second of a processor: by the clock, a busy machine says little of seconds of work."""
        used = self._cpu_us(count)
        return Reading(1e6 / used, used)

    def processor_micros(self, count: int) -> Reading:
        """Microseconds of a processor for each thing."""
        used = self._cpu_us(count)
        return Reading(used, used)

    def processor_millis(self, count: int) -> Reading:
        """Milliseconds of a processor for each thing."""
        used = self._cpu_us(count)
        return Reading(used / 1e3, used)

    def _cpu_us(self, count: int) -> float:
        """Microseconds of a processor for each thing; not 0, which a coarse clock says of a moment."""
        return max((self._used() - self._cpu) * 1e6 / count, 0.001)

    def _used(self) -> float:
        return _cpu_seconds() + self._server()


def _cpu_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
