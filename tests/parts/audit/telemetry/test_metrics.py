"""The numbers of `/metrics`, as a collector reads them: cumulative, of one process, and whole after a failure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from remit import tool
from remit.metrics import Registry
from remit.parts.audit.collector import METRICS, encode
from remit.parts.audit.telemetry.metrics import MetricsExporter, request
from remit.parts.audit.telemetry.settings import TelemetryTarget
from remit_testing.clock import ManualClock
from tests.cli.conftest import Project, project
from tests.opened import OpenRemit
from tests.parts.audit.receiver import Collector, receiver

__all__ = ["project", "receiver"]
LIMITS = {
    "limits.tools": {
        "shop.*": {"rate": "10/h", "concurrency": 4, "breaker": 2},
        "web.*": {"rate": "9/s", "each": "tool"},
    },
    "policy.pots": {"pays": {"per": "day", "calls": 8, "sum": "cents", "max": 1_000}},
    "policy.rules": [{"id": "p", "effect": "allow", "tools": ["shop.pay"], "limit": {"pot": "pays"}}],
}


def metrics_of(message: ExportMetricsServiceRequest) -> dict[str, Any]:
    """The metrics of a request by name."""
    (resource,) = message.resource_metrics
    (scope,) = resource.scope_metrics
    return {metric.name: metric for metric in scope.metrics}


def numbers(points: Any) -> dict[tuple[str, ...], float]:
    """The value of each point by the values of its labels."""
    return {tuple(pair.value.string_value for pair in point.attributes): point.as_double for point in points}


def test_each_kind_of_metric_is_read_as_what_it_is() -> None:
    registry = Registry()
    registry.counter("calls_total", "Calls.", "tool", "code").add("a.b", "ok", by=3)
    registry.counter("none_total", "Nothing yet.", "tool")
    registry.gauge("running", "Now.", lambda: 2)
    took = registry.histogram("took_seconds", "How long.", "tool", bounds=(0.5, 2.0))
    for name, seconds in (("x", 0.25), ("x", 0.5), ("x", 9.0), ("y", 1.0)):
        took.taker(name)(seconds)
    message = ExportMetricsServiceRequest.FromString(encode(request(registry.collect(), "proc_1", 5, 7), METRICS))
    attributes = message.resource_metrics[0].resource.attributes
    assert {row.key: row.value.string_value for row in attributes}["service.instance.id"] == "proc_1"
    metrics = metrics_of(message)
    assert set(metrics) == {"calls_total", "running", "took_seconds"}
    calls = metrics["calls_total"]
    assert (calls.description, calls.sum.is_monotonic, calls.sum.aggregation_temporality) == ("Calls.", True, 2)
    assert numbers(calls.sum.data_points) == {("ok", "a.b"): 3.0}
    assert calls.sum.data_points[0].start_time_unix_nano == 5_000
    assert calls.sum.data_points[0].time_unix_nano == 7_000
    assert numbers(metrics["running"].gauge.data_points) == {(): 2.0}
    first, second = metrics["took_seconds"].histogram.data_points
    assert (list(first.explicit_bounds), list(first.bucket_counts)) == ([0.5, 2.0], [2, 0, 1])
    assert (first.count, first.sum, list(second.bucket_counts)) == (3, 9.75, [0, 1, 0])
    assert metrics["took_seconds"].histogram.aggregation_temporality == 2


@tool("shop.pay", level="L1")
def pay(cents: int) -> str:
    """Pay somebody."""
    return f"paid {cents}"


async def test_what_metrics_shows_arrives_with_limits_and_pots_and_again_after_a_failure(
    remit_in: OpenRemit, receiver: Collector
) -> None:
    clock, ending, reasons = ManualClock(), asyncio.Event(), asyncio.Queue[str]()
    target = TelemetryTarget(f"{receiver.url}/v1/metrics", "telemetry.otlp_url", {"x-key": "k"})
    receiver.answers = [(503, {})]
    async with remit_in(flags=LIMITS, tools=[pay]) as remit:
        session = await remit.service.sessions.open("mcp", principal="ann")
        assert (await remit.service.sessions.call(session, "shop.pay", {"cents": 250})).ok
        sender = asyncio.create_task(
            MetricsExporter(remit.service.health, target, clock, ending).run(60, reasons.put_nowait)
        )
        await clock.until_asleep()
        clock.advance(60)
        assert "takes no metrics: HTTP 503" in await reasons.get()
        await clock.until_asleep()
        clock.advance(60)
        assert await reasons.get() == ""
        ending.set()
        await sender
        shown = {family.name for family in await remit.service.health.metrics() if family.samples}
    every, own = map(metrics_of, receiver.metrics)
    assert set(every) == shown
    assert numbers(every["call_limit_percent"].gauge.data_points) == {
        ("concurrency", "shop.*"): 0.0,
        ("rate", "shop.*"): pytest.approx(10.0, abs=0.1),
        ("breaker", "shop.*"): 0.0,
    }
    assert numbers(every["pot_percent"].gauge.data_points) == {("calls", "pays"): 12.5, ("sum", "pays"): 25.0}
    assert "tool_calls_total" in own
    assert "queue_depth" not in own
    assert {headers["x-key"] for headers in receiver.headers} == {"k"}


def test_a_command_sends_what_it_counted_when_it_ends(project: Project, receiver: Collector) -> None:
    project.env |= {"REMIT_TELEMETRY_OTLP_URL": receiver.url, "REMIT_TELEMETRY_METRICS_SECONDS": "3600"}
    assert project.here("run", "greet", "--name", "ada").status == 0
    (message,) = receiver.metrics
    assert metrics_of(message)["journal_commit_seconds"].histogram.data_points[0].count > 0
    assert "invoke_agent greet" in receiver.names
