"""Spans that a program tells of itself, by OTLP over HTTP in JSON or protobuf: its claims, and no facts (rule 23).

They are recorded beside the run, up to a number and a size. Nothing that sums, judges, joins or replays reads them.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.canonical import sha256
from remit.codes import Code
from remit.http.problem import HttpProblem
from remit.http.router import REQUEST, StatelessPart
from remit.journal.blobs import BlobRef
from remit.journal.event import Blob
from remit.parts.model_gateway.kinds import ClaimedSpan, ModelGatewayClaimed
from remit.redact import line

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from remit.journal.kinds import Payload

Record = Callable[["Payload", Sequence[Blob]], Awaitable[None]]
"""Appends an event. Raises JournalError."""
PATH: Final = "/otlp"
_TRACES: Final = f"{PATH}/v1/traces"
MOST_SPANS: Final = 1_000
"""Spans that are kept of a run."""
MOST_BYTES: Final = 1024 * 1024
"""Bytes of them, and of one request."""
_MOST_ATTRIBUTES: Final = 32
_LONGEST: Final = 400
_NAMED: Final = 10
_LATEST: Final = 2**63
_FAILED: Final = {2, "2", "STATUS_CODE_ERROR"}
_JSON, _PROTOBUF = "application/json", "application/x-protobuf"
_encode: Final = msgspec.json.Encoder().encode


class SpanClaims:
    """The claims of one run. `log` shows people a line beside the step."""

    def __init__(self, record: Record, step: str, log: Callable[[str], None]) -> None:
        self.count = self.left_out = 0
        self._append, self._step, self._log = record, step, log
        self._bytes = 0

    async def take(self, spans: list[ClaimedSpan]) -> int:
        """Keep spans as far as there is room; return how many are left out. Raise JournalError."""
        fitting = list[ClaimedSpan]()
        for span in spans:
            size = len(_encode(span))
            if self.count == MOST_SPANS or self._bytes + size > MOST_BYTES:
                break
            self.count += 1
            self._bytes += size
            fitting.append(span)
        left = len(spans) - len(fitting)
        if fitting or (left and not self.left_out):
            await self._record(fitting, left)
        self.left_out += left
        return left

    async def _record(self, spans: list[ClaimedSpan], left: int) -> None:
        data = _encode(spans)
        ref = BlobRef(sha256(data), len(data), "")
        names = tuple(dict.fromkeys(span.name for span in spans))[:_NAMED]
        claimed = ModelGatewayClaimed(step=self._step, count=len(spans), names=names, spans_blob=ref, left_out=left)
        await self._append(claimed, [Blob(ref.digest, data)])
        for span in spans:
            failed = ", failed" if span.failed else ""
            self._log(
                f"claimed by the program: {span.name}, {max(0, span.ended_us - span.began_us) // 1_000} ms{failed}"
            )


class ClaimsPart(StatelessPart):
    """The receiver of spans, as a part of the server before a program (`remit.http.router.ServerPart`).

    `find` returns the claims of the run whose token this is; None: none are taken.
    """

    def __init__(self, find: Callable[[str], SpanClaims | None]) -> None:
        self._find = find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[str, str] = scope[REQUEST].headers
        claims = self._find(headers.get("authorization", "").partition(" ")[2])
        if scope["path"] != _TRACES or scope["method"] != "POST" or claims is None:
            raise HttpProblem(Code.PATH_UNKNOWN)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in {_JSON, _PROTOBUF}:
            raise HttpProblem(Code.MEDIA_TYPE_UNSUPPORTED, f"Spans come as {_JSON} or {_PROTOBUF}.")
        from remit.parts.model_gateway.exchange import whole_body  # noqa: PLC0415 - an extra, for who takes spans

        body = await whole_body(receive, MOST_BYTES, "what is kept of a run")
        try:
            spans = await asyncio.to_thread(spans_of, _plain(body, headers.get("content-encoding", "")), kind)
        except (ValueError, TypeError, AttributeError, RecursionError, zlib.error) as error:
            raise HttpProblem(Code.INVALID_INPUT, f"The spans cannot be read: {line(str(error))}") from error
        left = await claims.take(spans)
        answer = _answer(left, kind)
        pairs = [(b"content-type", kind.encode()), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": pairs})
        await send({"type": "http.response.body", "body": answer})


def _plain(body: bytes, encoding: str) -> bytes:
    """Return a body inflated. Raise ValueError and zlib.error."""
    if encoding in {"", "identity"}:
        return body
    if encoding != "gzip":
        raise ValueError(f"they are compressed as {encoding}")
    inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    data = inflate.decompress(body, MOST_BYTES)
    if inflate.unconsumed_tail:
        raise ValueError(f"they are longer than {MOST_BYTES} bytes")
    return data


def _answer(left: int, kind: str) -> bytes:
    words = f"a run keeps {MOST_SPANS} spans and {MOST_BYTES} bytes"
    if kind == _JSON:
        return _encode({"partialSuccess": {"rejectedSpans": str(left), "errorMessage": words}} if left else {})
    if not left:
        return b""
    partial = b"\x08" + _varint_of(left) + b"\x12" + _varint_of(len(words)) + words.encode()
    return b"\x0a" + _varint_of(len(partial)) + partial


# --- reading


def spans_of(body: bytes, kind: str) -> list[ClaimedSpan]:
    """Return the spans of a request; one that cannot be read costs itself. Raise ValueError for anything else."""
    request = msgspec.json.decode(body) if kind == _JSON else _message(body, _REQUEST)
    spans = list[ClaimedSpan]()
    for resource in request.get("resourceSpans") or ():
        for scope in resource.get("scopeSpans") or ():
            for span in scope.get("spans") or ():
                with suppress(ValueError, TypeError, AttributeError, KeyError):
                    spans.append(_span(span))
    return spans


def _span(span: Mapping[str, Any]) -> ClaimedSpan:
    attributes = span.get("attributes") or []
    return ClaimedSpan(
        name=line(str(span["name"])),
        trace_id=str(span.get("traceId") or "")[:32],
        span_id=str(span.get("spanId") or "")[:16],
        parent=str(span.get("parentSpanId") or "")[:16],
        began_us=_micros(span.get("startTimeUnixNano")),
        ended_us=_micros(span.get("endTimeUnixNano")),
        failed=(span.get("status") or {}).get("code") in _FAILED,
        attributes=dict(_attribute(each) for each in attributes[:_MOST_ATTRIBUTES]),
    )


def _micros(nanoseconds: Any) -> int:
    """Return a time in microseconds since the Unix epoch; 0 if it is not a time."""
    time = int(nanoseconds or 0)
    return time // 1_000 if 0 <= time <= _LATEST else 0


def _attribute(pair: Mapping[str, Any]) -> tuple[str, str]:
    """Return a name and its value, masked as the name wants it."""
    name, value = str(pair["key"])[:_LONGEST], next(iter((pair.get("value") or {}).values()), "")
    text = value if isinstance(value, str) else _encode(value).decode()
    shown = line(f"{name}: {text}", len(name) + 2 + _LONGEST)
    return line(name), shown.removeprefix(f"{name}: ")


# The messages of opentelemetry-proto that are read: each field with its number, its name in OTLP's JSON and its form.
_Form = Mapping[int, tuple[str, Any]]
_ANY: Final[_Form] = {
    1: ("stringValue", "text"), 2: ("boolValue", "int"), 3: ("intValue", "int"), 4: ("doubleValue", "double"),
}  # fmt: skip
_SPAN: Final[_Form] = {
    1: ("traceId", "hex"), 2: ("spanId", "hex"), 4: ("parentSpanId", "hex"), 5: ("name", "text"),
    7: ("startTimeUnixNano", "int"), 8: ("endTimeUnixNano", "int"),
    9: ("attributes", [{1: ("key", "text"), 2: ("value", _ANY)}]), 15: ("status", {3: ("code", "int")}),
}  # fmt: skip
_REQUEST: Final[_Form] = {1: ("resourceSpans", [{2: ("scopeSpans", [{2: ("spans", [_SPAN])}])}])}
_VARINT, _FIXED, _BYTES, _SHORT = 0, 1, 2, 5
_LAST: Final = 63


def _message(data: bytes, form: _Form) -> dict[str, Any]:
    """Read a message of protobuf as OTLP's JSON. Raise ValueError."""
    message: dict[str, Any] = {}
    for number, field in _fields(data):
        name, kind = form.get(number, ("", ""))
        if isinstance(kind, list):
            message.setdefault(name, []).append(_message(_raw(field), kind[0]))
        elif name:
            message[name] = _value(field, kind)
    return message


def _value(field: int | bytes, kind: Any) -> Any:
    if kind == "int" and isinstance(field, int):
        return field
    if kind == "double" and isinstance(field, int):
        return struct.unpack("<d", struct.pack("<Q", field))[0]
    data = _raw(field)
    return data.hex() if kind == "hex" else data.decode(errors="replace") if kind == "text" else _message(data, kind)


def _raw(field: int | bytes) -> bytes:
    if not isinstance(field, bytes):
        raise ValueError("a field has another type")  # noqa: TRY004 - as all that is wrong with the bytes
    return field


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message: their numbers, and what they hold. Raise ValueError."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        size = {_FIXED: 8, _SHORT: 4}.get(wire)
        if wire == _BYTES:
            size, at = _varint(data, at)
        if size is None or at + size > len(data):
            raise ValueError("a field is cut, or has an unknown type")
        piece = data[at : at + size]
        at += size
        yield number, piece if wire == _BYTES else int.from_bytes(piece, "little")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift <= _LAST:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the last one
            return value, at
        shift += 7
    raise ValueError("a number is cut")


def _varint_of(value: int) -> bytes:
    pieces = bytearray()
    while value >= 0x80:  # noqa: PLR2004 - more follow
        pieces.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*pieces, value])
