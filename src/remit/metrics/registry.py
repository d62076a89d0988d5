"""All metrics of a process, by name. Wiring makes one and hands it to whatever counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec

from remit.metrics.metric import SECONDS, Counter, Gauge, Histogram, Metric, MetricSample
from remit.regex import regex

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
