"""A ratio says how far a measurement is from its floor: 1 is the floor itself, less is further away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench import measure
from bench.measure import Mark, Peer, PeerMissingError, Reading, Result, Sample, Unit, Watch, against
from bench.table import row

pytestmark = pytest.mark.slow


def samples(*values: float, cpu_us: float | None = None) -> Sample:
    """A sample that gives these values, over and over."""
    source: Iterator[float] = iter(values * 10)

    async def sample() -> Reading:
        return Reading(next(source), cpu_us)

    return sample


@pytest.mark.parametrize(("unit", "ratio"), [("per second", 0.5), ("µs", 2.0)])
async def test_a_rate_is_divided_by_its_floor_and_a_time_divides_it(unit: Unit, ratio: float) -> None:
    (result,) = await against("subject", unit, samples(50.0), samples(100.0))
    assert (result.value, result.floor, result.floor_ratio) == (50, 100, ratio)


async def test_ratios_are_taken_pair_by_pair() -> None:
    # The machine slows down by half in the middle: value and floor both do, their ratio does not.
    (result,) = await against("subject", "per second", samples(10, 10, 10, 5, 5), samples(20, 20, 20, 10, 10))
    assert result.floor_ratio == 0.5


async def test_a_peer_gets_a_line_of_its_own_beside_the_same_value() -> None:
    peer = Peer("other", samples(10.0, cpu_us=7), Mark(5, "peer"))
    own, beside = await against("subject", "per second", samples(50.0, cpu_us=3), samples(100.0), peers=[peer])
    assert (own.peer, own.floor_ratio, own.cpu_us, own.mark) == (None, 0.5, 3, None)
    assert (beside.name, beside.value, beside.cpu_us) == ("subject", 50, 3)
    assert (beside.peer, beside.peer_value, beside.peer_cpu_us, beside.peer_ratio) == ("other", 10, 7, 5)
    assert (beside.mark, beside.met) == ("≥ 5 x peer", True)


async def test_value_floor_and_peer_are_taken_in_turn() -> None:
    order = []

    def noting(name: str) -> Sample:
        async def sample() -> Reading:
            order.append(name)
            return Reading(1.0)

        return sample

    await against("subject", "ms", noting("own"), noting("floor"), peers=[Peer("other", noting("peer"))], rounds=2)
    assert order == ["own", "floor", "peer"] * 2


async def test_a_peer_that_cannot_run_is_tried_once_and_its_line_says_why() -> None:
    tries = []

    async def broken() -> Reading:
        tries.append(1)
        raise PeerMissingError("not installed")

    peers = [Peer("other", broken, Mark(5, "peer"))]
    _, beside = await against("subject", "per second", samples(50.0), None, peers=peers)
    assert tries == [1]
    assert (beside.peer, beside.peer_ratio, beside.met, beside.note) == ("other", None, None, "skipped: not installed")


@pytest.mark.parametrize(
    ("mark", "unit", "value", "ratio", "text", "met"),
    [
        (Mark(10_000), "per second", 10_000, None, "≥ 10,000 per second", True),
        (Mark(10_000), "per second", 9_999, None, "≥ 10,000 per second", False),
        (Mark(120), "ms", 120, None, "≤ 120 ms", True),
        (Mark(120), "ms", 121, None, "≤ 120 ms", False),
        (Mark(0.6, "floor"), "per second", 6, 0.6, "≥ 0.6 x floor", True),
        (Mark(0.6, "floor"), "per second", 5, 0.5, "≥ 0.6 x floor", False),
        (Mark(1.25, "floor"), "µs", 5, 0.8, "≤ 1.25 x floor", True),
        (Mark(1.25, "floor"), "µs", 6, 0.7, "≤ 1.25 x floor", False),
        (Mark(3, "peer"), "ms", 1, 3.0, "≥ 3 x peer", True),
        (Mark(3, "peer"), "ms", 1, 2.9, "≥ 3 x peer", False),
    ],
)
def test_a_mark_is_at_least_a_rate_and_at_most_anything_else(
    mark: Mark, unit: Unit, value: float, ratio: float | None, text: str, met: bool
) -> None:
    assert (mark.text(unit), mark.met(unit, value, ratio)) == (text, met)


def test_the_watch_counts_the_processor_per_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([1.0, 1.5])
    monkeypatch.setattr(measure, "_cpu_seconds", lambda: next(seconds))
    assert Watch().rate(1_000).cpu_us == 500


def test_the_watch_counts_a_servers_processor_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "_cpu_seconds", lambda: 1.0)
    used = iter([2.0, 2.25])
    assert Watch(lambda: next(used)).rate(1_000).cpu_us == 250


def test_a_line_names_value_processor_floor_ratio_and_mark() -> None:
    result = Result(
        name="subject",
        value=1234.5,
        unit="per second",
        cpu_us=810,
        floor=2469,
        floor_ratio=0.5,
        mark="≥ 0.6 x floor",
        met=False,
        note="bare",
    )
    words = ["subject", "1,234", "per", "second", "810", "2,469", "0.5", "≥", "0.6", "x", "floor", "MISSED", "bare"]
    assert row(result).split() == words


def test_a_line_of_a_peer_names_what_the_peer_did() -> None:
    result = Result(
        name="subject", value=50, unit="ms", cpu_us=1, peer="other", peer_value=100, peer_cpu_us=7, peer_ratio=2
    )
    assert row(result).split() == ["beside", "other", "7", "100", "2"]
