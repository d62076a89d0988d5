"""Sends spans to an OpenTelemetry collector: OTLP over HTTP, in protobuf, which every receiver takes.

The spans are read from OTLP's JSON, and keep their ids: what was sent before is shown once.
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
_SCOPED: Final[Form] = {
    "scope": (1, {"name": (1, "text"), "version": (2, "text")}), "spans": (2, _SPAN), "schemaUrl": (3, "text"),
}  # fmt: skip
_REQUEST: Final[Form] = {
    "resourceSpans": (1, {"resource": (1, {"attributes": (1, _ATTRIBUTE)}), "scopeSpans": (2, _SCOPED)})
}
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


def encode(request: Mapping[str, Any]) -> bytes:
    """Return a request as protobuf."""
    return _message(request, _REQUEST)


def deliver(body: bytes, url: str, headers: Mapping[str, str], timeout_s: float = _TIMEOUT_S) -> int:
    """Post a request; return the number of spans that the collector left out.

    Raise OSError if it did not take the request: HTTPError if it said so. Redirections are not followed.
    """
    place = url if urlsplit(url).path.rstrip("/") else f"{url.rstrip('/')}/v1/traces"
    every = {"content-type": "application/x-protobuf", **headers}
    return _rejected(post(place, body, every, timeout_s, 1 << 20))


def _post(body: bytes, url: str) -> None:
    try:
        left = deliver(body, url, headers_by(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")))
    except urllib.error.HTTPError as error:
        raise UsageError(f"the collector answered {error.code}", remedy=_REMEDY) from None
    except OSError as error:
        raise UsageError(f"the collector cannot be reached: {error}", remedy=_REMEDY) from None
    if left:
        raise UsageError(
            f"the collector left out {counted(left, 'span')}", remedy="Look in its own log for the reason."
        )


def _message(value: Mapping[str, Any], form: Form) -> bytes:
    fields = ((number, kind, value[name]) for name, (number, kind) in form.items() if name in value)
    items = ((number, kind, given if isinstance(given, list) else [given]) for number, kind, given in fields)
    return b"".join(_field(number, kind, item) for number, kind, given in items for item in given)


def _field(number: int, kind: Any, value: Any) -> bytes:
    if kind == "int":
        return _varint(number << 3 | _VARINT) + _varint(int(value) & (2**64 - 1))
    if kind == "fixed":
        return _varint(number << 3 | _FIXED) + struct.pack("<Q", int(value))
    if kind == "double":
        return _varint(number << 3 | _FIXED) + struct.pack("<d", value)
    data = bytes.fromhex(value) if kind == "hex" else value.encode() if kind == "text" else _message(value, kind)
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits a byte
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _rejected(answer: bytes) -> int:
    """Return the number of spans that an ExportTraceServiceResponse says were left out."""
    if len(answer) < 4 or answer[0] != 1 << 3 | _BYTES or answer[2] != 1 << 3:  # noqa: PLR2004 - field, length, field, value
        return 0
    number, shift = 0, 0
    for byte in answer[3:]:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004 - the last of its bytes
            break
    return number
