"""The API over a real connection: what it answers, and what it refuses."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from remit import Run, recipe
from remit.api.route import MAX_BODY
from remit.large import MAX_VALUES
from tests.api.conftest import Client, Served, bearer, token
from tests.opened import OpenRemit

pytestmark = pytest.mark.slow

MANY_KEYS = json.dumps({"recipe": "greet", "input": {str(number): 0 for number in range(MAX_VALUES)}}).encode()
EVENT = {"type": "message", "thread_id": "t1", "content": "hello"}


@recipe("greet")
async def greet(_run: Run, name: str) -> str:
    """Greet."""
    return f"Hello {name}"


@recipe("waits")
async def waits(run: Run) -> Any:
    """Wait for a signal."""
    return await run.wait_signal("go")


@pytest.fixture
async def client(remit_in: OpenRemit, served: Served) -> AsyncIterator[Client]:
    async with remit_in(recipes=[greet, waits]) as remit, served(remit) as one:
        yield one


async def test_a_job_is_started_and_looked_at(client: Client) -> None:
    started = await client.post("/v1/jobs", {"recipe": "greet", "input": {"name": "x"}})
    assert started.status == 201
    found = await client.get(f"/v1/jobs/{started.json['job']}")
    assert found.json["row"]["name"] == "greet"
    page = await client.get("/v1/jobs?limit=1")
    assert [row["job"] for row in page.json["items"]] == [started.json["job"]]
    assert page.json["next"] == started.json["job"]


async def test_a_job_is_signalled_cancelled_and_resumed(client: Client) -> None:
    job = (await client.post("/v1/jobs", {"recipe": "waits"})).json["job"]
    assert (await client.post(f"/v1/jobs/{job}/signal", {"name": "other"})).status == 200
    assert (await client.post(f"/v1/jobs/{job}/resume")).status == 200
    assert (await client.post(f"/v1/jobs/{job}/cancel", {"reason": "enough"})).status == 200


async def test_a_message_becomes_a_ticket_that_is_leased_and_filled_under_its_proof(client: Client) -> None:
    ticket = (await client.post("/events", EVENT)).json["id"]
    (lease,) = (await client.post("/v1/tickets/lease", {"kind": "TRIAGE", "owner": "me"})).json
    assert lease["ticket"]["id"] == ticket
    proof = {"lease_owner": "me", "lease_token": lease["lease_token"]}
    wrong = await client.post(f"/v1/tickets/{ticket}/fill", {"outputs": {}, **proof, "lease_owner": "you"})
    assert (wrong.status, wrong.json["error_code"]) == (409, "lease_owner_mismatch")
    filled = await client.post(f"/v1/tickets/{ticket}/fill", {"outputs": {"triage": "x"}, **proof})
    assert filled.json["ticket"]["status"] == "done"
    again = await client.post(f"/v1/tickets/{ticket}/fill", {"outputs": {}, **proof})
    assert again.json["ticket"] == filled.json["ticket"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/jobs/job_none", 404, "JOB_NOT_FOUND"),
        ("GET", "/v1/tickets/tkt_none", 404, "not_found"),
        ("GET", "/nowhere", 404, "PATH_UNKNOWN"),
        ("GET", "/v1/jobs/a/b/c", 404, "PATH_UNKNOWN"),
        ("DELETE", "/v1/jobs", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/v1/jobs?limit=0", 400, "INVALID_INPUT"),
        ("GET", "/v1/jobs?limit=x", 400, "INVALID_INPUT"),
        ("GET", "/v1/jobs?unknown=1", 400, "INVALID_INPUT"),
        ("GET", "/v1/jobs?limit=1&limit=2", 400, "INVALID_INPUT"),
        ("GET", "/v1/tickets?state=odd", 400, "INVALID_INPUT"),
    ],
)
async def test_what_cannot_be_answered_is_a_problem_with_a_code(
    client: Client, method: str, path: str, status: int, code: str
) -> None:
    found = await client.ask(method, path)
    assert (found.status, found.json["error_code"], found.json["status"]) == (status, code, status)
    assert found.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("body", "kind", "status", "code"),
    [
        (b"{}", "text/plain", 415, "MEDIA_TYPE_UNSUPPORTED"),
        (b"", "application/json", 400, "INVALID_INPUT"),
        (b"{", "application/json", 400, "INVALID_INPUT"),
        (b"\xff\xfe", "application/json", 400, "INVALID_INPUT"),
        (b'{"recipe": "\xff"}', "application/json", 400, "INVALID_INPUT"),
        (b"[" * 100_000, "application/json", 400, "INVALID_INPUT"),
        (b'{"recipe": "greet", "surprise": 1}', "application/json", 400, "INVALID_INPUT"),
        (b'{"recipe": "none"}', "application/json", 404, "UNKNOWN_RECIPE"),
        (b'{"recipe": "greet"}', "application/json", 400, "INVALID_INPUT"),
        (b'"' + b"x" * MAX_BODY + b'"', "application/json", 413, "REQUEST_TOO_LARGE"),
        (
            b'{"recipe": "greet", "input": {"x": [0' + b",0" * MAX_VALUES + b"]}}",
            "application/json",
            413,
            "REQUEST_TOO_LARGE",
        ),
        (MANY_KEYS, "application/json", 413, "REQUEST_TOO_LARGE"),
    ],
)
async def test_a_body_that_cannot_be_used_is_refused(
    client: Client, body: bytes, kind: str, status: int, code: str
) -> None:
    found = await client.ask("POST", "/v1/jobs", data=io.BytesIO(body), headers={"content-type": kind})
    assert (found.status, found.json["error_code"]) == (status, code)


async def test_a_body_without_end_is_cut_off_at_the_limit(client: Client) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 65_536

    headers = {"content-type": "application/json"}
    found = await client.ask("POST", "/v1/jobs", data=endless(), headers=headers)
    assert (found.status, found.json["error_code"]) == (413, "REQUEST_TOO_LARGE")


async def test_a_token_needs_the_scope_and_its_name_is_recorded(remit_in: OpenRemit, served: Served) -> None:
    tokens = [token("reader", "read"), token("caller", "call", "read"), token("boss", "admin")]
    async with remit_in(recipes=[greet]) as remit, served(remit, tokens) as client:
        started = {"recipe": "greet", "input": {"name": "x"}}
        nobody = await client.post("/v1/jobs", started)
        assert (nobody.status, nobody.json["error_code"]) == (401, "UNAUTHENTICATED")
        assert "www-authenticate" in nobody.headers
        wrong = await client.post("/v1/jobs", started, headers=bearer("thief"))
        assert wrong.status == 401
        little = await client.post("/v1/jobs", started, headers=bearer("reader"))
        assert (little.status, little.json["error_code"]) == (403, "SCOPE_REQUIRED")
        job = (await client.post("/v1/jobs", started, headers=bearer("caller"))).json["job"]
        assert (await client.get(f"/v1/jobs/{job}", headers=bearer("reader"))).json["principal"] == "caller"
        assert (await client.post("/events", EVENT, headers=bearer("boss"))).status == 201


async def test_no_page_of_another_origin_may_ask(client: Client) -> None:
    assert (await client.get("/v1/jobs", headers={"origin": "https://elsewhere.example"})).status == 403
    assert (await client.get("/v1/jobs", headers={"host": "elsewhere.example"})).status == 421


@pytest.mark.parametrize(
    ("path", "status"),
    [("/v1/tickets/tkt_none/retry", 404), ("/v1/tickets", 415), ("/v1/jobs/job_none/cancel", 415), ("/v1/jobs", 415)],
)
async def test_a_request_comes_without_a_body_only_where_it_may(client: Client, path: str, status: int) -> None:
    assert (await client.post(path)).status == status


async def test_one_principal_cannot_take_every_place(remit_in: OpenRemit, served: Served) -> None:
    tokens = [token("greedy", "read", "call"), token("modest", "read")]
    async with remit_in() as remit, served(remit, tokens, places=2) as client:
        gate = asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            yield b"{"
            await gate.wait()
            yield b"}"

        headers = {"content-type": "application/json", **bearer("greedy")}
        held = [asyncio.create_task(client.ask("POST", "/v1/jobs", data=slow(), headers=headers)) for _ in range(2)]
        while client.places._taken["greedy"] < 2:
            await client.get("/v1/jobs", headers=bearer("modest"))
        refused = await client.get("/v1/jobs", headers=bearer("greedy"))
        assert (refused.status, refused.json["error_code"]) == (429, "TOO_MANY_REQUESTS")
        assert refused.headers["retry-after"] == "1"
        assert (await client.get("/v1/jobs", headers=bearer("modest"))).status == 200
        gate.set()
        assert {answer.status for answer in await asyncio.gather(*held)} == {400}
        assert (await client.get("/v1/jobs", headers=bearer("greedy"))).status == 200


async def test_metrics_say_what_the_journal_holds(client: Client) -> None:
    for _ in range(3):
        await client.post("/events", {"type": "message", "thread_id": "t1", "content": "hello"})
    (leased,) = (await client.post("/v1/tickets/lease", {"kind": "TRIAGE", "owner": "me"})).json
    before = (await client.get("/metrics")).body.decode().splitlines()
    assert 'queue_depth{kind="ticket",state="pending"} 2.0' in before
    assert 'queue_depth{kind="ticket",state="running"} 1.0' in before
    assert 'leases{kind="ticket",lease="held"} 1.0' in before
    assert "confirmations_waiting 0.0" in before
    assert "journal_backlog_bytes 0.0" in before
    commits = next(line for line in before if line.startswith("journal_commit_seconds_count"))
    assert float(commits.split()[-1]) >= 4
    proof = {name: leased[name] for name in ("lease_owner", "lease_token")}
    await client.post(f"/v1/tickets/{leased['ticket']['id']}/fill", {"outputs": {"triage": "x"}, **proof})
    after = (await client.get("/metrics")).body.decode().splitlines()
    assert 'queue_depth{kind="ticket",state="done"} 1.0' in after
    assert 'leases{kind="ticket",lease="held"} 0.0' in after


async def test_health_metrics_and_the_document_are_served(client: Client) -> None:
    assert (await client.get("/health/live")).json == {"status": "live"}
    assert (await client.get("/health")).json["degraded"] is False
    await client.post("/v1/tickets/tkt_none/retry")
    metrics = await client.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    assert b"# TYPE ticket_store_guard_reject_total counter" in metrics.body
    document = (await client.get("/openapi.json")).json
    assert document["openapi"] == "3.1.0"
    assert "/v1/tickets/{ticket}/fill" in document["paths"]
