"""Spans that a program tells of itself are kept as its claims: a number of them, masked, and no sum has them."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Sequence
from typing import Any, Final

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from remit.journal.event import Blob
from remit.journal.kinds import Payload
from remit.parts.model_gateway.claims import MOST_BYTES, MOST_SPANS, SpanClaims, _plain, spans_of
from remit.parts.model_gateway.kinds import ClaimedSpan, ModelGatewayClaimed
from tests.cli.conftest import Project, project
from tests.parts.model_gateway.test_record import AGENT, answer, provider

__all__ = ["project"]
JSON, PROTOBUF = "application/json", "application/x-protobuf"
SPAN: Final[dict[str, Any]] = {
    "traceId": "0af7651916cd43dd8448eb211c80319c",
    "spanId": "b7ad6b7169203331",
    "parentSpanId": "00f067aa0ba902b7",
    "name": "chat gpt-4o",
    "startTimeUnixNano": "1700000000000000000",
    "endTimeUnixNano": "1700000000250000000",
    "attributes": [
        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "900000"}},
        {"key": "api_key", "value": {"stringValue": "hunter2hunter2"}},
        {"key": "share", "value": {"doubleValue": 0.5}},
        {"key": "done", "value": {"boolValue": True}},
    ],
    "status": {"code": 2},
}


def as_json(*spans: object) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [*spans]}]}]}).encode()


def as_protobuf() -> bytes:
    values = AnyValue(int_value=900_000), AnyValue(string_value="hunter2hunter2"), AnyValue(double_value=0.5)
    names = [pair["key"] for pair in SPAN["attributes"]]
    pairs = zip(names, (*values, AnyValue(bool_value=True)), strict=True)
    span = Span(
        trace_id=bytes.fromhex(SPAN["traceId"]),
        span_id=bytes.fromhex(SPAN["spanId"]),
        parent_span_id=bytes.fromhex(SPAN["parentSpanId"]),
        trace_state="unread=1",
        name=SPAN["name"],
        start_time_unix_nano=int(SPAN["startTimeUnixNano"]),
        end_time_unix_nano=int(SPAN["endTimeUnixNano"]),
        attributes=[KeyValue(key=name, value=value) for name, value in pairs],
        status=Status(code=Status.STATUS_CODE_ERROR),
    )
    resource = ResourceSpans(scope_spans=[ScopeSpans(spans=[span])])
    data: bytes = ExportTraceServiceRequest(resource_spans=[resource]).SerializeToString()
    return data


@pytest.mark.parametrize(("body", "kind"), [(as_json(SPAN), JSON), (as_protobuf(), PROTOBUF)])
def test_a_span_is_read_masked_and_in_microseconds(body: bytes, kind: str) -> None:
    (span,) = spans_of(body, kind)
    assert (span.name, span.trace_id, span.span_id, span.parent) == (
        *("chat gpt-4o", "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"),
    )
    assert (span.began_us, span.ended_us, span.failed) == (1_700_000_000_000_000, 1_700_000_000_250_000, True)
    assert (span.attributes["gen_ai.usage.input_tokens"], span.attributes["share"]) == ("900000", "0.5")
    assert "hunter2" not in str(span)


@pytest.mark.parametrize(
    "odd",
    [
        None,
        1,
        {},
        {"name": "x", "startTimeUnixNano": "soon"},
        {"name": "x", "attributes": [3]},
        {"name": "x", "status": 3},
    ],
)
def test_a_span_that_cannot_be_read_costs_itself_alone(odd: object) -> None:
    assert [span.name for span in spans_of(as_json(odd, SPAN), JSON)] == ["chat gpt-4o"]


def test_a_time_that_is_none_is_0() -> None:
    (span,) = spans_of(as_json({"name": "x", "startTimeUnixNano": "9" * 40, "endTimeUnixNano": -1}), JSON)
    assert (span.began_us, span.ended_us) == (0, 0)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{", JSON),
        (b"[]", JSON),
        (b"[" * 100_000, JSON),
        (as_protobuf()[:-1], PROTOBUF),
        (b"\xff" * 12, PROTOBUF),
        (b"\x0a\xff\xff\xff\xff\x0f", PROTOBUF),
        (b"\x0b", PROTOBUF),
        (b"\x08\x01", PROTOBUF),
    ],
)
def test_what_is_no_request_is_an_error(body: bytes, kind: str) -> None:
    with pytest.raises((ValueError, AttributeError, RecursionError)):
        spans_of(body, kind)


def test_a_body_is_inflated_to_the_limit_alone() -> None:
    assert _plain(gzip.compress(as_json(SPAN)), "gzip") == as_json(SPAN)
    with pytest.raises(ValueError, match="longer than"):
        _plain(gzip.compress(b" " * (MOST_BYTES + 1)), "gzip")
    with pytest.raises(zlib.error):
        _plain(b"no gzip", "gzip")
    with pytest.raises(ValueError, match="compressed as br"):
        _plain(b"", "br")


class MemoryLedger:
    """Keeps events."""

    def __init__(self) -> None:
        self.events = list[ModelGatewayClaimed]()

    async def record(self, payload: Payload, blobs: Sequence[Blob] = ()) -> None:
        assert isinstance(payload, ModelGatewayClaimed)
        assert [blob.digest for blob in blobs] == [payload.spans_blob.digest]
        self.events.append(payload)


async def test_a_run_keeps_so_many_spans_and_says_once_that_more_came() -> None:
    ledger, lines = MemoryLedger(), list[str]()
    claims = SpanClaims(ledger.record, "run", lines.append)
    few = [ClaimedSpan(name="a")] * (MOST_SPANS - 1)
    assert [await claims.take(few), await claims.take(few), await claims.take(few)] == [
        *(0, MOST_SPANS - 2, MOST_SPANS - 1),
    ]
    assert [(event.count, event.left_out) for event in ledger.events] == [(MOST_SPANS - 1, 0), (1, MOST_SPANS - 2)]
    assert (claims.count, claims.left_out, len(lines)) == (MOST_SPANS, 2 * MOST_SPANS - 3, MOST_SPANS)


async def test_a_run_keeps_so_many_bytes() -> None:
    ledger = MemoryLedger()
    large = ClaimedSpan(name="a", attributes={str(number): "x" * 400 for number in range(32)})
    left = await SpanClaims(ledger.record, "run", print).take([large] * 500)
    assert (0 < left < 500, ledger.events[0].spans_blob.bytes < 1.1 * MOST_BYTES) == (True, True)


SENDER: Final = """
import os, runpy, sys, urllib.error, urllib.parse, urllib.request
def send(body, kind, path=""):
    name, _, value = os.environ["OTEL_EXPORTER_OTLP_TRACES_HEADERS"].partition("=")
    headers = {name: urllib.parse.unquote(value), "content-type": kind}
    url = os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] + path
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code
body, text = bytes.fromhex(sys.argv[1]), bytes.fromhex(sys.argv[2])
print([send(body, "application/x-protobuf"), send(text, "application/json"), send(body[:-1], "application/x-protobuf"),
       send(b"", "text/plain"), send(body, "application/x-protobuf", "s"), send(b"x" * 2_000_000, "application/json")])
sys.argv[1:] = ["hi"]
runpy.run_path(os.environ["AGENT"], run_name="__main__")
"""


@pytest.mark.slow
def test_claims_of_a_recorded_program_are_marked_and_in_no_sum(project: Project) -> None:
    sender = project.folder / "sender.py"
    sender.write_text(SENDER)
    with provider(answer()) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "provider-key", "AGENT": str(AGENT)}
        words = (sys.executable, str(sender), as_protobuf().hex(), as_json(SPAN).hex())
        done = project.apart("record", "--otel", "--", *words, env=env)
    assert (done.status, done.out) == (0, "[200, 200, 400, 415, 404, 413]\nbye\n"), done.err
    assert "2 spans claimed by the program" in done.err
    result = project.here("show", "last", "--json").json["result"]
    assert (result["requests"], result["tokens"], result["claimed"]) == (2, 30, 2)
    assert project.here("usage", "--json").json[0]["tokens"] == 30
    told = project.here("trace", "last").out
    assert told.count("claimed by the program: chat gpt-4o, 250 ms, failed") == 2
    events = project.here("trace", "last", "--events").out
    assert events.count("model_gateway_claimed") == 2
    assert "hunter2" not in told + events
    assert project.here("verify").status == 0
