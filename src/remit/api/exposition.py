"""The counters of this process in the text format of Prometheus, written by its own library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric

from remit.metrics import MetricFamily


class _Collector:
    """Hands our metrics to the library; their names are taken as they are."""

    def __init__(self, families: Iterable[MetricFamily]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Every metric."""
        for family in self._families:
            # The library names every counter *_total; those that users know under another name go without a type.
            name = family.name.removesuffix("_total")
            kind = "unknown" if family.kind == "counter" and name == family.name else family.kind
            metric = Metric(name, family.meaning, kind)
            for sample in family.samples:
                metric.add_sample(family.name + sample.suffix, dict(sample.labels), sample.value)
            yield metric


def exposed(families: Iterable[MetricFamily]) -> str:
    """The text of all metrics."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(families))
    return generate_latest(registry).decode()
