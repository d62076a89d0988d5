"""Spans: by the conventional names, the same in JSON and protobuf, and shown once however often they are sent."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from remit.errors import UsageError
from remit.journal.kinds import CommandCommitted
from remit.parts.audit import collector
from remit.parts.audit.formats import otlp
from remit.parts.audit.formats.account import ExportAccount
from tests.parts.audit.receiver import Collector, receiver

__all__ = ["receiver"]


def spans_of(data: bytes) -> list[dict[str, Any]]:
    """The spans of a file."""
    (resource,) = json.loads(data)["resourceSpans"]
    spans: list[dict[str, Any]] = resource["scopeSpans"][0]["spans"]
    return spans


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a span by name."""
    return {row["key"]: next(iter(row["value"].values())) for row in span["attributes"]}


def as_protobuf(data: bytes) -> ExportTraceServiceRequest:
    """The request that OpenTelemetry's own classes read from OTLP's JSON, in which ids are hexadecimal digits."""
    request = json.loads(data)
    for span in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    found = ExportTraceServiceRequest()
    json_format.ParseDict(request, found)
    return found


def test_calls_that_ran_were_refused_or_wait_are_all_spans(waiting: ExportAccount) -> None:
    rows = [(span["name"], attributes(span).get("remit.outcome")) for span in spans_of(otlp.write(waiting))]
    assert sorted(rows[:1] + rows[1:], key=str) == sorted(
        [
            ("invoke_agent errands", None),
            ("chat says.yaml", "success"),
            ("execute_tool shop.look", "success"),
            ("execute_tool shop.never", "refused"),
            ("execute_tool shop.look", "refused"),
            ("execute_tool shop.often", "success"),
            ("execute_tool shop.often", "refused"),
            ("execute_tool shop.pay", "success"),
            ("execute_tool shop.pay", "refused"),
            ("await_approval shop.pay", "approve"),
            ("await_approval shop.pay", "deny"),
            ("await_approval shop.pay", "waiting"),
        ],
        key=str,
    )


def test_tokens_that_a_cache_gave_or_took_are_told(waiting: ExportAccount) -> None:
    (answer,) = (entry.payload for entry in waiting.entries if isinstance(entry.payload, CommandCommitted))
    counts = {"cached_tokens": 5, "cache_written_tokens": 7}
    before = {name: getattr(answer, name) for name in counts}
    try:
        for name, count in counts.items():
            msgspec.structs.force_setattr(answer, name, count)
        (span,) = (span for span in spans_of(otlp.write(waiting)) if span["name"].startswith("chat "))
    finally:
        for name, count in before.items():
            msgspec.structs.force_setattr(answer, name, count)
    named = {name: value for name, value in attributes(span).items() if ".cache_" in name}
    assert named == {
        "gen_ai.usage.cache_read.input_tokens": "5",
        "gen_ai.usage.cache_creation.input_tokens": "7",
    }


def test_spans_hang_together_and_have_the_ids_that_tools_were_given(ended: ExportAccount) -> None:
    spans = spans_of(otlp.write(ended))
    (root,) = (span for span in spans if "parentSpanId" not in span)
    assert root["name"] == "invoke_agent errands"
    assert {span["traceId"] for span in spans} == {root["traceId"]}
    assert {span.get("parentSpanId") for span in spans} == {None, root["spanId"]}
    given = {getattr(entry.payload, "span_id", "") for entry in ended.entries} - {""}
    assert given <= {span["spanId"] for span in spans}


def test_json_and_protobuf_are_the_same_to_the_classes_of_opentelemetry(waiting: ExportAccount) -> None:
    data = otlp.write(waiting)
    assert ExportTraceServiceRequest.FromString(collector.encode(json.loads(data))) == as_protobuf(data)


def test_what_is_sent_twice_is_shown_once(waiting: ExportAccount, ended: ExportAccount, receiver: Collector) -> None:
    data = otlp.write(waiting)
    for _ in range(2):
        assert collector.send(data, receiver.url) == len(spans_of(data))
    assert len(receiver.spans) == len(spans_of(data))
    assert {row[""] for row in receiver.headers} == {"/v1/traces"}
    assert collector.send(otlp.write(ended), f"{receiver.url}/v1/traces") > 0


def test_a_wait_that_was_answered_replaces_itself(waiting: ExportAccount, receiver: Collector) -> None:
    data = otlp.write(waiting)
    collector.send(data, receiver.url)
    later = data.replace(b'"waiting"', b'"approve"')
    collector.send(later, receiver.url)
    assert len(receiver.spans) == len(spans_of(data))


def test_headers_come_from_the_environment(
    ended: ExportAccount, receiver: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc, x-team=red")
    collector.send(otlp.write(ended), receiver.url)
    assert (receiver.headers[0]["authorization"], receiver.headers[0]["x-team"]) == ("Bearer abc", "red")


def test_what_a_collector_leaves_out_or_refuses_is_said(ended: ExportAccount, receiver: Collector) -> None:
    receiver.rejected = 300
    with pytest.raises(UsageError, match="left out 300 spans"):
        collector.send(otlp.write(ended), receiver.url)
    receiver.status = 503
    with pytest.raises(UsageError, match="answered 503"):
        collector.send(otlp.write(ended), receiver.url)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "127.0.0.1:4318", "http://", "http://127.0.0.1:1"])
def test_what_is_no_collector_is_an_error(ended: ExportAccount, url: str) -> None:
    with pytest.raises(UsageError):
        collector.send(otlp.write(ended), url)
