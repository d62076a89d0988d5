"""The access log: a line for every request, without what could be secret."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from remit.http.router import AccessLog, AnsweredRequest
from remit.http.trace_context import TraceContext
from remit_testing.clock import ManualClock

TRACE = TraceContext("a" * 32, "b" * 16, named=True)


def answered(**given: Any) -> AnsweredRequest:
    said: dict[str, Any] = {
        "method": "GET",
        "path": "/v1/jobs",
        "client": "127.0.0.1",
        "principal": "ann",
        "status": 200,
        "code": "",
        "size": 2,
        "duration_ms": 1.23456,
        "trace": TRACE,
    }
    return AnsweredRequest(**{**said, **given})


def test_a_line_holds_who_asked_for_what_and_how_it_went() -> None:
    out = io.StringIO()
    AccessLog(out, ManualClock()).write(answered())
    assert json.loads(out.getvalue()) == {
        "at": "2026-01-01T00:00:00.000Z",
        "method": "GET",
        "path": "/v1/jobs",
        "status": 200,
        "code": "",
        "principal": "ann",
        "client": "127.0.0.1",
        "bytes": 2,
        "duration_ms": 1.235,
        "trace_id": "a" * 32,
        "span_id": "b" * 16,
    }


@pytest.mark.parametrize("path", ["/a\n{}", "/a\x1b[31m", "/" + "x" * 100_000, "/\u202e"])
def test_a_path_cannot_forge_a_line_nor_fill_the_disk(path: str) -> None:
    out = io.StringIO()
    AccessLog(out, ManualClock()).write(answered(path=path))
    assert out.getvalue().count("\n") == 1
    assert out.getvalue().isascii() or out.getvalue().strip().isprintable()
    assert len(out.getvalue()) < 1_000


def test_a_secret_in_a_path_is_masked() -> None:
    out = io.StringIO()
    AccessLog(out, ManualClock()).write(answered(path="/v1/jobs/ghp_" + "a1B2" * 9))
    assert "a1B2a1B2" not in out.getvalue()


class FullDisk(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk_costs_the_line_and_not_the_answer() -> None:
    AccessLog(FullDisk(), ManualClock()).write(answered())
