"""The registry of metrics."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.metrics import MAX_SERIES, OTHER, Registry


def test_a_counter_counts_by_the_values_of_its_labels() -> None:
    registry = Registry()
    calls = registry.counter("calls_total", "Calls.", "tool", "code")
    calls.add("fs.read", "ok")
    calls.add("fs.read", "ok", by=2)
    calls.add("fs.write", "POLICY_DENIED")
    assert calls.value("fs.read", "ok") == 3
    (family,) = registry.collect()
    assert (family.name, family.kind, family.meaning) == ("calls_total", "counter", "Calls.")
    assert {(sample.labels, sample.value) for sample in family.samples} == {
        ((("tool", "fs.read"), ("code", "ok")), 3),
        ((("tool", "fs.write"), ("code", "POLICY_DENIED")), 1),
    }


def test_a_gauge_goes_down_again() -> None:
    registry, running = Registry(), [1, 2]
    gauge = registry.gauge("running", "Calls under way.", lambda: len(running))
    assert registry.gauge("running", "Calls under way.", lambda: -1) is gauge
    for left in (2, 1):
        (family,) = registry.collect()
        assert (family.kind, [sample.value for sample in family.samples]) == ("gauge", [left])
        running.pop()


@given(st.lists(st.floats(min_value=0, max_value=100), max_size=50))
def test_a_histograms_buckets_count_what_is_not_above_their_bound(values: list[float]) -> None:
    registry = Registry()
    seconds = registry.histogram("seconds", "Durations.", "tool", bounds=(0.5, 1, 10))
    for value in values:
        seconds.taker("fs.read")(value)
    samples = registry.collect()[0].samples
    if not values:
        assert samples == ()
        return
    buckets = {dict(s.labels)["le"]: s.value for s in samples if s.suffix == "_bucket"}
    expected = {name: sum(v <= bound for v in values) for name, bound in (("0.5", 0.5), ("1", 1), ("10", 10))}
    assert buckets == {**expected, "+Inf": len(values)}
    assert [s.value for s in samples if s.suffix == "_count"] == [len(values)] == [seconds.count("fs.read")]
    assert [s.value for s in samples if s.suffix == "_sum"] == pytest.approx([sum(values)])


def test_a_metric_keeps_a_bounded_number_of_series_and_its_total_stays_right() -> None:
    registry = Registry()
    calls = registry.counter("calls_total", "Calls.", "tool", "code")
    seconds = registry.histogram("seconds", "Durations.", "tool")
    for number in range(MAX_SERIES + 500):
        calls.add(f"tool.{number}", "ok")
        seconds.taker(f"tool.{number}")(1)
    counted, observed = registry.collect()
    assert sum(sample.value for sample in counted.samples) == MAX_SERIES + 500
    assert len(counted.samples) == MAX_SERIES + 1
    assert calls.value(OTHER, OTHER) == seconds.count(OTHER) == 500
    assert sum(s.value for s in observed.samples if s.suffix == "_count") == MAX_SERIES + 500


def test_the_same_name_is_the_same_metric_and_never_another_one() -> None:
    registry = Registry()
    first = registry.counter("calls_total", "Calls.", "tool")
    assert registry.counter("calls_total", "Calls.", "tool") is first
    with pytest.raises(ValueError, match="already a counter with the labels tool"):
        registry.counter("calls_total", "Calls.", "code")
    with pytest.raises(ValueError, match="already a counter"):
        registry.gauge("calls_total", "Calls.", lambda: 0)


@pytest.mark.parametrize("name", ["", "Calls", "calls-total", "1st", "a b"])
def test_a_name_fits_every_format(name: str) -> None:
    with pytest.raises(ValueError, match="lower-case"):
        Registry().counter(name, "Calls.")


def test_a_wrong_number_of_labels_is_an_error() -> None:
    registry = Registry()
    with pytest.raises(ValueError, match="1 labels were declared"):
        registry.counter("calls_total", "Calls.", "tool").add()


def test_another_thread_reads_while_the_loop_counts() -> None:
    registry = Registry()
    calls = registry.counter("calls_total", "Calls.", "tool")
    stop, failures = threading.Event(), []

    def read() -> None:
        try:
            while not stop.is_set():
                registry.collect()
        except RuntimeError as error:
            failures.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(20_000):
        calls.add(f"tool.{number}")
    stop.set()
    thread.join()
    assert failures == []


def test_a_counter_without_labels_says_0_before_anything_was_counted() -> None:
    registry = Registry()
    registry.counter("reads", "Reads.")
    registry.counter("calls", "Calls.", "tool")
    assert [(family.name, [sample.value for sample in family.samples]) for family in registry.collect()] == [
        ("calls", []),
        ("reads", [0]),
    ]
