"""Sends spans and metrics to an OpenTelemetry collector: OTLP over HTTP, in protobuf, which every receiver takes.

They are read from OTLP's JSON, and spans keep their ids: what was sent before is shown once.
"""

from __future__ import annotations

import json
import os
import struct
import urllib.error
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from remit.errors import UsageError
from remit.evidence.verify import counted
from remit.parts.audit.anchoring.client import post
from remit.settings.expansion import headers_by
from remit.settings.pictures import is_url

_BATCH: Final = 1_000
_TIMEOUT_S: Final = 30
_REMEDY: Final = "Name the URL of an OTLP receiver over HTTP, such as http://127.0.0.1:4318; sending again is harmless."
Form = Mapping[str, tuple[int, Any]]

# The messages of opentelemetry-proto that Remit sends: each field with its number and its form.
_ANY: Final[dict[str, tuple[int, Any]]] = {
    "stringValue": (1, "text"), "boolValue": (2, "int"), "intValue": (3, "int"), "doubleValue": (4, "double"),
}  # fmt: skip
_ANY["arrayValue"] = (5, {"values": (1, _ANY)})
_ATTRIBUTE: Final[Form] = {"key": (1, "text"), "value": (2, _ANY)}
_SPAN: Final[Form] = {
    "traceId": (1, "hex"), "spanId": (2, "hex"), "parentSpanId": (4, "hex"), "name": (5, "text"), "kind": (6, "int"),
    "startTimeUnixNano": (7, "fixed"), "endTimeUnixNano": (8, "fixed"), "attributes": (9, _ATTRIBUTE),
    "status": (15, {"message": (2, "text"), "code": (3, "int")}),
}  # fmt: skip
_SCOPE: Final[tuple[int, Any]] = (1, {"name": (1, "text"), "version": (2, "text")})
_RESOURCE: Final[tuple[int, Any]] = (1, {"attributes": (1, _ATTRIBUTE)})
_SCOPED: Final[Form] = {"scope": _SCOPE, "spans": (2, _SPAN), "schemaUrl": (3, "text")}
SPANS: Final[Form] = {"resourceSpans": (1, {"resource": _RESOURCE, "scopeSpans": (2, _SCOPED)})}
"""A request with spans."""
_TIMES: Final[Form] = {"startTimeUnixNano": (2, "fixed"), "timeUnixNano": (3, "fixed")}
_NUMBERS: Final = (1, {**_TIMES, "asDouble": (4, "double"), "attributes": (7, _ATTRIBUTE)})
_BUCKETS: Final = (1, {
    **_TIMES, "count": (4, "fixed"), "sum": (5, "double"), "bucketCounts": (6, "<Q"), "explicitBounds": (7, "<d"),
    "attributes": (9, _ATTRIBUTE),
})  # fmt: skip
_METRIC: Final[Form] = {
    "name": (1, "text"), "description": (2, "text"),
    "gauge": (5, {"dataPoints": _NUMBERS}),
    "sum": (7, {"dataPoints": _NUMBERS, "aggregationTemporality": (2, "int"), "isMonotonic": (3, "int")}),
    "histogram": (9, {"dataPoints": _BUCKETS, "aggregationTemporality": (2, "int")}),
}  # fmt: skip
METRICS: Final[Form] = {
    "resourceMetrics": (1, {"resource": _RESOURCE, "scopeMetrics": (2, {"scope": _SCOPE, "metrics": (2, _METRIC)})})
}
"""A request with metrics."""
_VARINT, _FIXED, _BYTES = 0, 1, 2


def send(spans: bytes, url: str) -> int:
    """Send OTLP's JSON to a collector; return the number of spans. Raise UsageError if not all were taken."""
    if not is_url(url):
        raise UsageError(f"{url} is no URL of HTTP", remedy=_REMEDY)
    (resource,) = json.loads(spans)["resourceSpans"]
    (scoped,) = resource["scopeSpans"]
    every = scoped["spans"]
    for start in range(0, len(every), _BATCH):
        batch = {**resource, "scopeSpans": [{**scoped, "spans": every[start : start + _BATCH]}]}
        _post(encode({"resourceSpans": [batch]}), url)
    return len(every)


def encode(request: Mapping[str, Any], form: Form = SPANS) -> bytes:
    """Return a request as protobuf."""
    return _message(request, form)


def deliver(body: bytes, url: str, headers: Mapping[str, str], timeout_s: float = _TIMEOUT_S) -> int:
    """Post a request; return the number of spans, or of numbers, that the collector left out.

    Raise OSError if it did not take the request: HTTPError if it said so. Redirections are not followed.
    """
    place = url if urlsplit(url).path.rstrip("/") else f"{url.rstrip('/')}/v1/traces"
    every = {"content-type": "application/x-protobuf", **headers}
    return _rejected(post(place, body, every, timeout_s, 1 << 20))


def _post(body: bytes, url: str) -> None:
    try:
        rejected = deliver(body, url, headers_by(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")))
    except urllib.error.HTTPError as error:
        raise UsageError(f"the collector answered {error.code}", remedy=_REMEDY) from None
    except OSError as error:
        raise UsageError(f"the collector cannot be reached: {error}", remedy=_REMEDY) from None
    if rejected:
        raise UsageError(
            f"the collector left out {counted(rejected, 'span')}", remedy="Look in its own log for the reason."
        )


def _message(value: Mapping[str, Any], form: Form) -> bytes:
    fields = ((number, kind, value[name]) for name, (number, kind) in form.items() if name in value)
    items = ((number, kind, values if isinstance(values, list) else [values]) for number, kind, values in fields)
    return b"".join(_field(number, kind, item) for number, kind, values in items for item in values)


def _field(number: int, kind: Any, value: Any) -> bytes:
    if kind == "int":
        return _varint(number << 3 | _VARINT) + _varint(int(value) & (2**64 - 1))
    if kind == "fixed":
        return _varint(number << 3 | _FIXED) + struct.pack("<Q", int(value))
    if kind == "double":
        return _varint(number << 3 | _FIXED) + struct.pack("<d", value)
    match kind:
        case "hex":
            data = bytes.fromhex(value)
        case "text":
            data = value.encode()
        case "<Q" | "<d":  # a tuple of numbers, packed
            data = b"".join(struct.pack(kind, number) for number in value)
        case _:
            data = _message(value, kind)
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits a byte
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _rejected(answer: bytes) -> int:
    """Return the number that an ExportTraceServiceResponse, or its twin for metrics, says was left out."""
    if len(answer) < 4 or answer[0] != 1 << 3 | _BYTES or answer[2] != 1 << 3:  # noqa: PLR2004 - field, length, field, value
        return 0
    number, shift = 0, 0
    for byte in answer[3:]:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004 - the last of its bytes
            break
    return number
