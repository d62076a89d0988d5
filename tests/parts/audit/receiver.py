"""A receiver of OTLP over HTTP on this machine, which reads requests with OpenTelemetry's own classes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.patience import PATIENCE_S


class Collector:
    """A receiver of OTLP over HTTP, which keeps a span by its ids as trace stores do."""

    def __init__(self, port: int = 0) -> None:
        self.spans: dict[tuple[bytes, bytes], Any] = {}
        self.metrics: list[ExportMetricsServiceRequest] = []
        """The requests with metrics."""
        self.headers: list[dict[str, str]] = []
        self.came: list[bytes] = []
        """The id of each span that was taken, as often as it came."""
        self.rejected, self.status = 0, 200
        self.answers: list[tuple[int, dict[str, str]]] = []
        """The next answers; after them each has `status`."""
        self.before_answer: Callable[[], None] = lambda: None
        self.arrived = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                metrics = self.path == "/v1/metrics"
                request = ExportTraceServiceRequest.FromString(b"" if metrics else body)
                status, headers = outer.answers.pop(0) if outer.answers else (outer.status, {})
                with outer.arrived:
                    if metrics and status == 200:
                        outer.metrics.append(ExportMetricsServiceRequest.FromString(body))
                    outer.headers.append(
                        {name.lower(): value for name, value in self.headers.items()} | {"": self.path}
                    )
                    for resource in request.resource_spans:
                        for scope in resource.scope_spans:
                            outer.take(scope.spans if status == 200 else ())
                    outer.arrived.notify_all()
                outer.before_answer()
                left = ExportTracePartialSuccess(rejected_spans=outer.rejected, error_message="too old")
                answer = ExportTraceServiceResponse(partial_success=left if outer.rejected else None)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.SerializeToString())

            def log_message(self, *_args: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def take(self, spans: Any) -> None:
        """Keep spans."""
        self.spans |= {(span.trace_id, span.span_id): span for span in spans}
        self.came += [span.span_id for span in spans]

    def start(self) -> None:
        """Listen."""
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Listen no more."""
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

    def until(self, met: Callable[[Collector], bool]) -> None:
        """Wait for what has come."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: met(self), PATIENCE_S), (self.names, self.headers)

    @property
    def names(self) -> list[str]:
        """The names of the spans that it keeps, in order."""
        return sorted(span.name for span in self.spans.values())

    def attributes(self, name: str) -> dict[str, Any]:
        """The attributes of the one span of this name."""
        (span,) = (span for span in self.spans.values() if span.name == name)
        return {row.key: getattr(row.value, row.value.WhichOneof("value")) for row in span.attributes}


@pytest.fixture
def receiver() -> Iterator[Collector]:
    """A collector that listens."""
    collector = Collector()
    collector.start()
    yield collector
    collector.stop()
