"""Sends the numbers of `/metrics` to an OpenTelemetry collector: every so many seconds, and once more at the end.

Sums and histograms are cumulative since the process began, so a request that fails costs nothing: the next one says it
all. Each process sends its own under its `service.instance.id`; names and labels are those of `/metrics`.
"""

from __future__ import annotations

import asyncio
import logging
import urllib.error
from functools import partial
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final

from remit.ids import new_id
from remit.parts.audit.collector import METRICS, deliver, encode
from remit.parts.audit.formats.otlp import as_attributes, enveloped
from remit.settings.pictures import address
from remit.tasks import first
from remit.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from remit.clock import Clock
    from remit.metrics import MetricFamily, MetricSample
    from remit.parts.audit.telemetry.settings import TelemetryTarget
    from remit.service.health import Health

_log: Final = logging.getLogger("remit.telemetry")
_SILENCE_S: Final = 10.0
_CUMULATIVE: Final = 2


class MetricsExporter:
    """Sends the numbers of this process. It sends until `ending` is set, and once more then."""

    def __init__(self, health: Health, target: TelemetryTarget, clock: Clock, ending: asyncio.Event) -> None:
        self._health, self._target, self._clock, self._ending = health, target, clock, ending
        self._threads = Threads(1)
        self._instance, self._began = new_id("proc"), clock.now()

    async def run(self, seconds: float, tell: Callable[[str], object]) -> None:
        """Send every so many seconds; `tell` is told why the collector takes nothing, and nothing once it does."""
        last = False
        while not last:
            await first(self._clock.sleep(seconds), self._ending.wait())
            last = self._ending.is_set()
            try:
                # At the end those of the process alone: the journal's are of no process, and others send them.
                reason = await self._send(self._health.counted() if last else await self._health.metrics())
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the process goes on
                reason = f"metrics wait: {str(error) or type(error).__name__}"
            if reason:
                _log.warning("%s", reason)
            tell(reason)

    async def _send(self, families: Iterable[MetricFamily]) -> str:
        """Make one attempt; why it failed."""
        body = encode(request(families, self._instance, self._began, self._clock.now()), METRICS)
        try:
            rejected = await self._threads.run(
                partial(deliver, body, self._target.url, self._target.headers, _SILENCE_S)
            )
        except urllib.error.HTTPError as error:
            return f"{address(self._target.url)} takes no metrics: HTTP {error.code}"
        except OSError as error:
            return f"{address(self._target.url)} takes no metrics: {error}"
        return f"{address(self._target.url)} left out {rejected} numbers" if rejected else ""


def request(families: Iterable[MetricFamily], instance: str, began: int, now: int) -> dict[str, Any]:
    """Return families as OTLP: `began` and `now` in microseconds, for sums since then."""
    times = {"startTimeUnixNano": str(began * 1_000), "timeUnixNano": str(now * 1_000)}
    metrics = [_metric(family, times) for family in families if family.samples]
    return enveloped("Metrics", {"metrics": metrics}, {"service.instance.id": instance})


def _metric(family: MetricFamily, times: dict[str, str]) -> dict[str, Any]:
    metric = {"name": family.name, "description": family.meaning}
    if family.kind == "histogram":
        points = [_distribution(series, times) for series in _by_series(family.samples)]
        return metric | {"histogram": {"dataPoints": points, "aggregationTemporality": _CUMULATIVE}}
    numbers = [{"attributes": as_attributes(dict(row.labels)), "asDouble": float(row.value)} for row in family.samples]
    if family.kind == "gauge":
        return metric | {"gauge": {"dataPoints": [row | {"timeUnixNano": times["timeUnixNano"]} for row in numbers]}}
    points = [row | times for row in numbers]
    return metric | {"sum": {"dataPoints": points, "aggregationTemporality": _CUMULATIVE, "isMonotonic": True}}


def _by_series(samples: Iterable[MetricSample]) -> Iterable[list[MetricSample]]:
    """The samples of each series of a histogram: its buckets, the sum and the count."""
    return (
        list(series) for _, series in groupby(samples, lambda row: [pair for pair in row.labels if pair[0] != "le"])
    )


def _distribution(series: list[MetricSample], times: dict[str, str]) -> dict[str, Any]:
    """Return a series as OTLP has it: its buckets do not count what lies in those before them."""
    *buckets, total, count = series
    below = [0, *(round(row.value) for row in buckets)]
    return {
        "attributes": as_attributes(dict(total.labels)),
        **times,
        "count": round(count.value),
        "sum": float(total.value),
        "bucketCounts": tuple(upper - lower for lower, upper in pairwise(below)),
        "explicitBounds": tuple(float(row.labels[-1][1]) for row in buckets[:-1]),
    }
