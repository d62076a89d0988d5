"""The access log: one JSON line for each request that was answered. It holds no header, no query and no body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

import msgspec

from remit.clock import isoformat
from remit.redact import line

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.http.trace_context import TraceContext

_PATH: Final = 300
_encode: Final = msgspec.json.Encoder().encode


class Answered(NamedTuple):
    """A request and its answer."""

    method: str
    path: str
    """Without the query, which a client may put a secret into."""
    client: str
    """The address that it came from."""
    principal: str
    """In whose name it came; empty if the server knows no tokens, or if it was not let in."""
    status: int
    """The HTTP status; 0 if the client left before an answer began."""
    code: str
    """The stable code of a refusal; empty for an answer."""
    size: int
    """Bytes of the answer's body."""
    duration_ms: float
    trace: TraceContext


class AccessLog:
    """Writes lines to a file that another program may rotate or read."""

    def __init__(self, out: TextIO, clock: Clock) -> None:
        self._out = out
        self._clock = clock

    def write(self, answered: Answered) -> None:
        """Write a line. A log that cannot be written does not keep a request from its answer."""
        row = {
            "at": isoformat(self._clock.now()),
            "method": answered.method,
            "path": line(answered.path, _PATH),
            "status": answered.status,
            "code": answered.code,
            "principal": answered.principal,
            "client": answered.client,
            "bytes": answered.size,
            "duration_ms": round(answered.duration_ms, 3),
            "trace_id": answered.trace.trace_id,
            "span_id": answered.trace.span_id,
        }
        try:
            self._out.write(_encode(row).decode() + "\n")
            self._out.flush()
        except OSError:
            return
