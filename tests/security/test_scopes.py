"""What a token may not do by a detour: by a ticket, by a retry, under another's key, by a page (scopes and tools)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from remit import Remit, Run, recipe
from remit.http.access import Access
from remit.http.guard import Token, digest_of
from tests.api.conftest import Client, bearer, token
from tests.api.conftest import _served as api_served
from tests.opened import OpenRemit, until_waiting
from tests.pages.conftest import serving
from tests.security.test_chained import PAID, buy, pay

pytestmark = pytest.mark.slow
STEPS = [{"tool_name": "desk.pay", "args": {"to": "eve"}}]
TOKENS = [
    token("ann", "read", "call", "tickets", "work", "decide"),
    token("few", "read", "call", "tickets", "work", "decide", tools=("fs.read",)),
    token("bob", "read", "call", "tickets"),
]


@recipe("fail_after_pay")
async def fail_after_pay(run: Run) -> str:
    """Pay, then fail."""
    await run.call("desk.pay", {"to": "ann"})
    raise ValueError("afterwards")


@pytest.fixture
async def remit(remit_in: OpenRemit) -> AsyncIterator[Remit]:
    PAID.clear()
    allow = [{"id": "pays", "effect": "allow", "tools": ["desk.pay"]}]
    async with remit_in(tools=[pay], recipes=[buy, fail_after_pay], flags={"policy.rules": allow}) as one:
        yield one


@pytest.fixture
async def client(remit: Remit) -> AsyncIterator[Client]:
    async with api_served(remit, TOKENS) as one:
        yield one


async def ask(client: Client, who: str, path: str, body: Any, **headers: str) -> tuple[int, str]:
    """The status and the code of an answer."""
    got = await client.post(path, body, headers={**bearer(who), **headers})
    return got.status, got.json.get("error_code", "") if isinstance(got.json, dict) else ""


async def failed_job(client: Client, who: str = "ann") -> str:
    """A job of someone that paid, and then failed."""
    given = {"recipe": "fail_after_pay"}
    got = await client.post("/v1/jobs?wait=30", given, headers=bearer(who))
    assert got.json["state"] == "failed", got.json
    PAID.clear()
    return str(got.json["job"])


TOOL_TICKET = {"type": "TOOL", "event": {"type": "message", "content": "x"}, "tool_input": {"tool_steps": STEPS}}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/tickets", TOOL_TICKET),
        ("/v1/tickets", {"type": "TOOL", "event": {"type": "message", "content": "x"}, "tool_steps": STEPS}),
        ("/v1/tickets/tkt_x/fill", {"outputs": {"tool_steps": STEPS}, "by": "http_fill"}),
        ("/v1/tickets/tkt_x/retry", None),
        ("/v1/tools/execute", {"ticket_id": "t", "tool_steps": STEPS}),
    ],
)
async def test_a_token_for_some_tools_has_no_worker_call_others(client: Client, path: str, body: Any) -> None:
    assert await ask(client, "few", path, body) == (403, "SCOPE_REQUIRED")
    assert PAID == []


async def test_it_may_still_create_tickets_for_others_to_judge(client: Client) -> None:
    message = {"type": "TRIAGE", "event": {"type": "message", "thread_id": "t", "content": "x"}}
    assert (await ask(client, "few", "/v1/tickets", message))[0] == 201


async def test_a_token_for_some_tools_retries_nothing(client: Client) -> None:
    job = await failed_job(client)
    assert await ask(client, "few", f"/v1/jobs/{job}/retry", {"repeat": True}) == (403, "SCOPE_REQUIRED")
    assert PAID == []


async def test_a_job_is_run_again_in_another_s_name_only_by_who_may_decide(client: Client) -> None:
    job = await failed_job(client)
    assert await ask(client, "bob", f"/v1/jobs/{job}/retry", {"repeat": True}) == (403, "SCOPE_REQUIRED")
    own = await failed_job(client, "bob")
    assert (await ask(client, "bob", f"/v1/jobs/{own}/retry", {}))[0] == 201
    assert (await ask(client, "ann", f"/v1/jobs/{job}/retry", {}))[0] == 201


async def test_so_it_is_on_the_pages(remit: Remit, client: Client) -> None:
    job = await failed_job(client)
    few = Token(digest_of("secret-few"), Access("ann", frozenset({"read", "call", "decide"}), ("fs.read",)))
    async with serving(remit, [few, TOKENS[2]]) as browser:
        for name in ("few", "bob"):
            await browser.log_in(f"secret-{name}")
            page = await browser.get(f"/jobs/{job}")
            sent = await browser.send(f"/jobs/{job}/retry", [("csrf", page.csrf), ("repeat", "yes")])
            assert sent.status == 403
            shown = await browser.get("/bulk?action=retry")
            seen = shown.text.partition('name="seen" value="')[2].partition('"')[0]
            done = await browser.send("/bulk/retry", [("csrf", shown.csrf), ("action", "retry"), ("seen", seen)])
            assert "SCOPE_REQUIRED" in done.text or done.status >= 400
    assert PAID == []
    assert (await remit.service.jobs.row(job)).state == "failed"


async def test_nobody_meets_the_request_of_another_under_its_key(client: Client) -> None:
    body = {"recipe": "buy", "input": {"to": "ann"}}
    first = await client.post("/v1/jobs", body, headers={**bearer("ann"), "idempotency-key": "k1"})
    other = await client.post("/v1/jobs", body, headers={**bearer("bob"), "idempotency-key": "k1"})
    again = await client.post("/v1/jobs", body, headers={**bearer("ann"), "idempotency-key": "k1"})
    assert first.json["job"] == again.json["job"] != other.json["job"]
    mismatch = await ask(
        client, "ann", "/v1/jobs", {"recipe": "buy", "input": {"to": "eve"}}, **{"idempotency-key": "k1"}
    )
    assert mismatch[1] == "IDEMPOTENCY_MISMATCH"


@pytest.mark.parametrize(
    ("name", "path", "body"),
    [
        ("a rule that allows", "/v1/jobs", {"recipe": "buy", "policy": [{"effect": "allow", "tools": ["*"]}]}),
        ("a tool beyond the token", "/v1/jobs", {"recipe": "buy", "tools": ["desk.pay"]}),
        ("a pattern beyond the token", "/v1/jobs", {"recipe": "buy", "tools": ["*"]}),
    ],
)
async def test_a_job_is_started_with_no_more_than_its_token_has(
    client: Client, name: str, path: str, body: dict[str, Any]
) -> None:
    status, _ = await ask(client, "few", path, body)
    assert status in {400, 403, 422}, name
    assert PAID == []


async def test_a_job_of_a_token_for_some_tools_calls_no_other(client: Client) -> None:
    got = await client.post("/v1/jobs?wait=30", {"recipe": "buy"}, headers=bearer("few"))
    assert got.json["state"] == "failed"
    assert PAID == []


@pytest.mark.parametrize("last", ["-1", "9" * 5_000, "x", "1\u0661", "0x10", " ", "1.0", "99999999999999999999"])
async def test_no_last_event_id_breaks_a_stream(client: Client, last: str) -> None:
    job = await failed_job(client)
    headers = {**bearer("ann"), "last-event-id": last.encode("utf-8").decode("latin-1"), "accept": "text/event-stream"}
    got = await client.get(f"/v1/jobs/{job}/events/live", headers=headers)
    assert got.status in {200, 400, 431}
    assert b"Traceback" not in got.body


@pytest.mark.parametrize("scheme", ["Basic", "", "Token", "bearer,Bearer"])
async def test_a_token_counts_in_its_own_place_alone(client: Client, scheme: str) -> None:
    for headers in ({"authorization": f"{scheme} secret-ann"}, {"x-authorization": "Bearer secret-ann"}):
        assert (await client.get("/v1/jobs", headers=headers)).status == 401
    for path in ("/v1/jobs?access_token=secret-ann", "/v1/jobs?token=secret-ann"):
        assert (await client.get(path)).status == 401


# --- by a ticket without the scope call, and beyond the tools of a token


async def test_a_ticket_that_calls_needs_the_scope_call(remit: Remit) -> None:
    tokens = [token("tim", "read", "tickets", "work"), token("ann", "read", "call", "tickets", "work")]
    async with api_served(remit, tokens) as client:
        assert await ask(client, "tim", "/v1/tickets", TOOL_TICKET) == (403, "SCOPE_REQUIRED")
        given = {"outputs": {"tool_steps": STEPS}, "by": "tim"}
        event = {"type": "TRIAGE", "event": {"type": "message", "thread_id": "t", "content": "x"}}
        made = await client.post("/v1/tickets", event, headers=bearer("tim"))
        assert made.status == 201
        name = made.json["id"]
        assert await ask(client, "tim", f"/v1/tickets/{name}/fill", given) == (403, "SCOPE_REQUIRED")
        made = await client.post("/v1/tickets", {**event, "type": "TOOL"}, headers=bearer("ann"))
        assert made.status == 201
        assert await ask(client, "tim", f"/v1/tickets/{made.json['id']}/retry", None) == (403, "SCOPE_REQUIRED")


async def test_a_token_for_some_tools_reaches_no_question_about_others(remit_in: OpenRemit) -> None:
    tokens = [*TOKENS, token("pat", "read", "decide", tools=("desk.pay",))]
    async with remit_in(tools=[pay], recipes=[buy]) as remit, api_served(remit, tokens) as client:
        job = await remit.start(buy())
        await until_waiting(remit, job.id)
        (question,) = await job.questions()
        one = f"/v1/confirmations/{question.confirmation}"
        answer = {"digest": question.digest}
        wish = {**answer, "scope": "everything", "seconds": 60}
        for path, body in ((f"{one}/approve", answer), (f"{one}/deny", answer), (f"{one}/remember", wish)):
            assert await ask(client, "few", path, body) == (403, "SCOPE_REQUIRED")
        assert (await client.get(one, headers=bearer("few"))).status == 403
        assert (await client.get("/v1/confirmations", headers=bearer("few"))).json == []
        assert len((await client.get("/v1/confirmations", headers=bearer("pat"))).json) == 1
        kept = await client.post(f"{one}/remember", wish, headers=bearer("pat"))
        assert kept.status == 200
        assert (await client.get("/v1/approvals", headers=bearer("few"))).json == []
        assert await ask(client, "few", f"/v1/approvals/{kept.json['id']}/revoke", {}) == (403, "SCOPE_REQUIRED")
        await job


async def test_a_token_for_some_tools_reaches_no_job_of_others(client: Client) -> None:
    job = await failed_job(client)
    for path in ("", "/trace", "/events", "/steps/1", "/artifacts", "/row", "/verify"):
        for name in (job, job[-8:], "last"):
            got = await client.get(f"/v1/jobs/{name}{path}", headers=bearer("few"))
            assert (got.status, got.json["error_code"]) == (403, "SCOPE_REQUIRED"), path
        assert (await client.get(f"/v1/jobs/{job}{path}", headers=bearer("bob"))).status == 200, path
    for path in ("cancel", "resume", "signal", "replay", "steps/1/decide"):
        given = {"signal": {"name": "go"}, "steps/1/decide": {"decision": "done"}}.get(path, {})
        assert await ask(client, "few", f"/v1/jobs/{job}/{path}", given) == (403, "SCOPE_REQUIRED"), path
    assert (await client.get("/v1/jobs", headers=bearer("few"))).json["items"] == []
