"""What is watched of an answer on its way out."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from remit.http.router import SAFE, RouterExchange
from remit.http.trace_context import TraceContext

SCOPE = {"method": "GET", "path": "/v1/jobs", "client": ("127.0.0.1", 5)}
TRACE = TraceContext("a" * 32, "b" * 16, named=True)


async def test_an_answer_names_its_trace_and_is_counted() -> None:
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    exchange = RouterExchange(SCOPE, TRACE, send)
    start = {"type": "http.response.start", "status": 201, "headers": [(b"content-length", b"5")]}
    await exchange.send(start)
    await exchange.send({"type": "http.response.body", "body": b"abc", "more_body": True})
    await exchange.send({"type": "http.response.body", "body": b"de"})
    trace = (b"traceresponse", TRACE.header.encode())
    assert sent[0]["headers"] == [(b"content-length", b"5"), trace, *SAFE.items()]
    assert len(start["headers"]) == 1, "what the part keeps of its answer is its own"  # type: ignore[arg-type]
    answered = exchange.answered()
    assert (answered.status, answered.size, answered.client, answered.path) == (201, 5, "127.0.0.1", "/v1/jobs")
    assert answered.duration_ms >= 0


async def test_a_client_that_left_before_its_answer_began_has_no_status() -> None:
    async def send(_message: MutableMapping[str, Any]) -> None:
        """Send nothing."""

    assert RouterExchange({**SCOPE, "client": None}, TRACE, send).answered().status == 0
