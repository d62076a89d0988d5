"""One request and its answer, watched on the way out."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from remit.http.access_log import Answered

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from starlette.types import Send

    from remit.http.trace_context import TraceContext


SAFE: Final = {b"cache-control": b"no-store", b"x-content-type-options": b"nosniff"}
"""Headers of every answer that does not have them: it is for one client, and is what its media type says."""


class Exchange:
    """Passes an answer on, names the trace in it, and keeps what the access log says of it."""

    def __init__(self, scope: Any, trace: TraceContext, send: Send) -> None:
        """Answer the request of an ASGI `scope` through `send`."""
        self.trace = trace
        self.principal = ""
        self.code = ""
        self._scope = scope
        self._send = send
        self._began = perf_counter()
        self._status = 0
        self._size = 0

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Send a part of the answer (ASGI)."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = [*message.get("headers", ()), (b"traceresponse", self.trace.header.encode())]
            names = {name.lower() for name, _ in headers}
            message = {**message, "headers": headers + [pair for pair in SAFE.items() if pair[0] not in names]}
        else:
            self._size += len(message.get("body", b""))
        await self._send(message)

    def answered(self) -> Answered:
        """What there is to say of it, now that it is over."""
        address = self._scope.get("client")
        return Answered(
            method=self._scope["method"],
            path=self._scope["path"],
            client=address[0] if address else "",
            principal=self.principal,
            status=self._status,
            code=self.code,
            size=self._size,
            duration_ms=(perf_counter() - self._began) * 1_000,
            trace=self.trace,
        )
