from __future__ import annotations

from typing import Any

import msgspec
import pytest

from remit.codes import ERROR, Code
from remit.http.problem import HttpProblem


async def said(problem: HttpProblem) -> tuple[dict[str, Any], dict[bytes, bytes], Any]:
    events: list[dict[str, Any]] = []

    async def send(event: Any) -> None:
        events.append(event)

    await problem.say(send)
    start, body = events
    return start, dict(start["headers"]), msgspec.json.decode(body["body"])


async def test_a_problem_has_the_members_of_rfc_9457_and_the_code() -> None:
    start, headers, body = await said(
        HttpProblem(Code.MCP_REQUIRED_UNAVAILABLE, "No.", {"retry-after": "5"}, degraded=True)
    )
    assert start["status"] == 503
    assert headers[b"content-type"] == b"application/problem+json"
    assert headers[b"retry-after"] == b"5"
    assert body == {
        "type": "about:blank",
        "title": "Service Unavailable",
        "status": 503,
        "detail": "No.",
        "error_code": "MCP_REQUIRED_UNAVAILABLE",
        "degraded": True,
    }


@pytest.mark.parametrize("code", [code for code in Code if code.status == ERROR])
async def test_every_error_can_be_said(code: Code) -> None:
    start, _, body = await said(HttpProblem(code))
    assert start["status"] == body["status"] == code.http
    assert body["detail"] == code.meaning
    assert body["title"]
