"""Counters, gauges and histograms of one process: cheap to count, bounded in number, read with `Registry.collect`.

Counting is a dictionary update, well below a microsecond, and belongs to the thread of the event loop; another thread
may read at any time. A metric keeps at most `MAX_SERIES` combinations of label values. What comes after them is counted
under `OTHER` in every label: the totals stay right, and a caller who invents names cannot fill the memory. Wiring makes
one registry and hands it to whatever counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence, Sized
from typing import Final, TypeVar

import msgspec

from remit.regex import regex

MAX_SERIES: Final = 1_000
"""Combinations of label values that one metric keeps."""
OTHER: Final = "other"
"""The value of every label of what is counted beyond them."""
SECONDS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of a histogram's buckets, for durations."""

Labels = tuple[str, ...]


class MetricSample(msgspec.Struct, frozen=True):
    """One number."""

    suffix: str
    """The ending after the metric's name: empty, or `_bucket`, `_sum`, `_count` of a histogram."""
    labels: tuple[tuple[str, str], ...]
    """Names and values; a bucket's upper bound comes last, as `le`."""
    value: float


class Counter:
    """A number that only grows."""

    kind = "counter"

    def __init__(self, name: str, meaning: str, labels: Sequence[str]) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = tuple(labels)
        self._cells: dict[Labels, list[float]] = {} if labels else {(): [0]}
        """Without labels there is one series, which says 0 before anything is counted: an alert can rely on it."""

    def add(self, *labels: str, by: float = 1) -> None:
        """Count one more, or more than one; the values of the labels in their order."""
        self.cell(*labels)[0] += by

    def cell(self, *labels: str) -> list[float]:
        """The number itself, as the only item of a list: what counts often keeps it and adds to it."""
        cell = self._cells.get(labels)
        if cell is None:
            labels = _bounded(labels, self.labels, self._cells)
            cell = self._cells.setdefault(labels, [0])
        return cell

    def value(self, *labels: str) -> float:
        """Return what was counted with these labels."""
        return self._cells.get(labels, [0])[0]

    def samples(self) -> Iterator[MetricSample]:
        """Every number, as it is now."""
        return (MetricSample("", _named(self.labels, labels), cell[0]) for labels, cell in self._cells.copy().items())


class Gauge:
    """A number that goes up and down: its owner knows it, and is asked when it is read."""

    kind = "gauge"
    labels: Labels = ()

    def __init__(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        self.name = name
        self.meaning = meaning
        self._read = read

    def samples(self) -> Iterator[MetricSample]:
        """The number, as it is now."""
        yield MetricSample("", (), self._read())


class Histogram:
    """The number of given values that lie below each bound, and their sum."""

    kind = "histogram"

    def __init__(self, name: str, meaning: str, labels: Sequence[str], bounds: Sequence[float] = SECONDS) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = tuple(labels)
        self._bounds = tuple(bounds)
        self._series: dict[Labels, list[float]] = {}  # one number per bucket, those above every bound, the sum

    def taker(self, *labels: str) -> Callable[[float], None]:
        """Return what takes values with these labels, in their order: what observes often keeps it."""
        series = self._series.get(labels)
        if series is None:
            labels = _bounded(labels, self.labels, self._series)
            series = self._series.setdefault(labels, [0.0] * (len(self._bounds) + 2))
        bounds = self._bounds

        def take(value: float) -> None:
            series[bisect_left(bounds, value)] += 1
            series[-1] += value

        return take

    def count(self, *labels: str) -> float:
        """Return how many values it was given with these labels."""
        return sum(self._series.get(labels, [0.0])[:-1])

    def samples(self) -> Iterator[MetricSample]:
        """Every number, as it is now; a bucket counts what lies in the buckets before it, too."""
        for labels, live in self._series.copy().items():
            *counts, total = live.copy()
            named, below = _named(self.labels, labels), 0.0
            for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
                below += count
                yield MetricSample(
                    "_bucket", (*named, ("le", "+Inf" if bound == float("inf") else f"{bound:g}")), below
                )
            yield MetricSample("_sum", named, total)
            yield MetricSample("_count", named, below)


Metric = Counter | Gauge | Histogram


def _bounded(labels: Labels, names: Labels, known: Sized) -> Labels:
    """The labels under which something new is counted. Raises ValueError for a wrong number of them."""
    if len(labels) != len(names):
        msg = f"{len(names)} labels were declared ({', '.join(names)}), {len(labels)} were given"
        raise ValueError(msg)
    return labels if len(known) < MAX_SERIES else (OTHER,) * len(names)


def _named(names: Labels, values: Labels) -> tuple[tuple[str, str], ...]:
    return tuple(zip(names, values, strict=True))


_NAME: Final = regex(r"[a-z][a-z0-9_]*")
M = TypeVar("M", bound=Metric)


class MetricFamily(msgspec.Struct, frozen=True):
    """Every number of one metric, ready to be written in any format."""

    name: str
    kind: str
    """`counter`, `gauge` or `histogram`."""
    meaning: str
    samples: tuple[MetricSample, ...]


class Registry:
    """Makes metrics and reads them."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}

    def counter(self, name: str, meaning: str, *labels: str) -> Counter:
        """The counter of this name, made the first time. Raises ValueError if the name means another metric."""
        return self._known(Counter(name, meaning, labels))

    def gauge(self, name: str, meaning: str, read: Callable[[], float]) -> Gauge:
        """The gauge of this name; as `counter`. The `read` that was given first gives its number."""
        return self._known(Gauge(name, meaning, read))

    def histogram(self, name: str, meaning: str, *labels: str, bounds: Sequence[float] = SECONDS) -> Histogram:
        """The histogram of this name; as `counter`. `bounds` are the upper bounds of its buckets, in order."""
        return self._known(Histogram(name, meaning, labels, bounds))

    def collect(self) -> list[MetricFamily]:
        """Every metric with its numbers as they are now, by name."""
        metrics = sorted(self._metrics.copy().items())
        return [MetricFamily(name, each.kind, each.meaning, tuple(each.samples())) for name, each in metrics]

    def _known(self, metric: M) -> M:
        if not all(_NAME.fullmatch(name) for name in (metric.name, *metric.labels)):
            msg = f"{metric.name}: names of metrics and labels are lower-case letters, digits and underscores"
            raise ValueError(msg)
        known = self._metrics.setdefault(metric.name, metric)
        if type(known) is not type(metric) or known.labels != metric.labels:
            msg = f"{metric.name} is already a {known.kind} with the labels {', '.join(known.labels) or 'none'}"
            raise ValueError(msg)
        return known
