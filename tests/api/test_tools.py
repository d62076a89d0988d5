"""Tools, calls and questions over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from remit import Remit, Run, recipe, tool
from tests.api.conftest import Client, Served, bearer, token
from tests.opened import OpenRemit

pytestmark = pytest.mark.slow

CALLS: list[str] = []


@tool("desk.look", level="L0")
def look(what: str) -> str:
    """Look something up."""
    CALLS.append(what)
    return what.upper()


@tool("desk.write", level="L1")
def write(text: str) -> str:
    """Write something."""
    CALLS.append(f"write {text}")
    return text


@recipe("asks")
async def asks(run: Run) -> str:
    """Write, with approval."""
    return str((await run.call("desk.write", {"text": "hi"})).value)


@pytest.fixture
async def remit(remit_in: OpenRemit) -> AsyncIterator[Remit]:
    CALLS.clear()
    async with remit_in(tools=[look, write], recipes=[asks]) as one:
        yield one


@pytest.fixture
async def client(remit: Remit, served: Served) -> AsyncIterator[Client]:
    async with served(remit) as one:
        yield one


async def test_tools_are_listed_and_shown_by_name_or_key(client: Client) -> None:
    names = [tool["name"] for tool in (await client.get("/v1/tools")).json]
    assert {"desk.look", "desk.write"} <= set(names)
    assert (await client.get("/v1/tools/desk_look")).json["policy"] == "runs"
    missing = await client.get("/v1/tools/none")
    assert (missing.status, missing.json["error_code"]) == (404, "UNKNOWN_TOOL")


async def test_a_call_is_made_through_the_gateway_and_recorded_in_a_session(client: Client) -> None:
    called = await client.post("/v1/tools/execute", {"tool_name": "desk_look", "args": {"what": "x"}})
    assert (called.status, called.json["status"], called.json["value"]) == (200, "ok", "X")
    (session,) = (await client.get("/v1/sessions")).json
    story = await client.get(f"/v1/jobs/{session['session']}/trace")
    assert story.status == 200
    assert "desk.look" in story.body.decode()


async def test_a_refused_call_is_an_outcome_with_its_code(client: Client) -> None:
    for name, args, code in (("none", {}, "UNKNOWN_TOOL"), ("desk_look", {"what": 3}, "INVALID_TOOL_ARGS")):
        called = await client.post("/v1/tools/execute", {"tool_name": name, "args": args})
        assert (called.status, called.json["status"], called.json["code"]) == (200, "blocked", code)


async def test_a_name_with_a_dot_is_refused_and_the_key_and_the_name_for_models_are_taken(client: Client) -> None:
    refused = await client.post("/v1/tools/execute", {"tool_name": "desk.look", "args": {"what": "x"}})
    assert (refused.status, refused.json["error_code"]) == (400, "INVALID_TOOL_STEP")
    for name in ("desk_look", "desk__look"):
        called = await client.post("/v1/tools/execute", {"tool_name": name, "args": {"what": "x"}})
        assert called.json["status"] == "ok"


async def test_a_call_under_a_key_is_made_once(client: Client) -> None:
    key = {"idempotency-key": "k1"}
    body = {"tool_name": "desk_look", "args": {"what": "x"}}
    one = await client.post("/v1/tools/execute", body, headers=key)
    again = await client.post("/v1/tools/execute", body, headers=key)
    assert one.json["value"] == again.json["value"]
    assert CALLS == ["x"]
    other = await client.post("/v1/tools/execute", {**body, "args": {"what": "y"}}, headers=key)
    assert other.json["code"] == "IDEMPOTENCY_MISMATCH"


async def test_a_call_that_needs_a_person_answers_202_and_runs_once_it_was_approved(client: Client) -> None:
    body = {"tool_name": "desk_write", "args": {"text": "hi"}}
    asked = await client.post("/v1/tools/execute", body)
    assert (asked.status, asked.json["code"]) == (202, "CONFIRMATION_REQUIRED")
    one = f"/v1/confirmations/{asked.json['confirmation']}"
    question = (await client.get(one)).json
    assert question["args"] == {"text": "hi"}
    wrong = await client.post(f"{one}/approve", {"digest": "sha256:0"})
    assert (wrong.status, wrong.json["error_code"]) == (409, "CONFIRMATION_MISMATCH")
    assert (await client.post(f"{one}/approve", {"digest": question["digest"]})).json["state"] == "approved"
    assert (await client.post("/v1/tools/execute", body)).json["status"] == "ok"
    assert CALLS == ["write hi"]


async def test_a_jobs_question_is_edited_denied_and_listed(client: Client) -> None:
    job = (await client.post("/v1/jobs?wait=20", {"recipe": "asks"})).json["job"]
    (question,) = (await client.get(f"/v1/confirmations?job={job}")).json
    one = f"/v1/confirmations/{question['confirmation']}"
    bad = await client.post(f"{one}/edit", {"args": {"txt": "x"}})
    assert (bad.status, bad.json["error_code"]) == (400, "INVALID_TOOL_ARGS")
    edited = (await client.post(f"{one}/edit", {"args": {"text": "bye"}})).json
    two = f"/v1/confirmations/{edited['confirmation']}"
    closed = await client.post(f"{one}/deny", {"digest": question["digest"]})
    assert (closed.status, closed.json["error_code"]) == (409, "CONFIRMATION_CLOSED")
    denied = await client.post(f"{two}/deny", {"digest": edited["digest"], "reason": "no"})
    assert denied.json["state"] == "denied"
    ended = (await client.get(f"/v1/jobs/{job}?wait=20")).json
    assert (ended["state"], ended["error"]["code"]) == ("failed", "CONFIRMATION_DENIED")


async def test_an_approval_is_remembered_and_revoked(client: Client) -> None:
    job = (await client.post("/v1/jobs?wait=20", {"recipe": "asks"})).json["job"]
    (question,) = (await client.get("/v1/confirmations")).json
    one = f"/v1/confirmations/{question['confirmation']}"
    early = await client.post(f"{one}/remember", {"scope": "everything", "seconds": 60})
    assert early.json["error_code"] == "CONFIRMATION_CLOSED"
    await client.post(f"{one}/approve", {"digest": question["digest"]})
    assert (await client.post(f"{one}/remember", {"scope": "everything", "seconds": 60})).status == 200
    assert (await client.get(f"/v1/jobs/{job}?wait=20")).json["result"] == "hi"
    again = (await client.post("/v1/jobs?wait=20", {"recipe": "asks"})).json
    assert again["state"] == "completed"
    (rule,) = (await client.get("/v1/approvals")).json
    assert (await client.post(f"/v1/approvals/{rule['id']}/revoke", {"reason": "enough"})).status == 204
    assert (await client.get("/v1/approvals")).json == []


async def test_policy_is_explained_without_a_call(client: Client) -> None:
    found = await client.post("/v1/policy/explain", {"tool": "desk.write", "args": {"text": "x"}})
    assert found.json["decision"]["effect"] == "ask"
    assert CALLS == []


async def test_a_jobs_story_events_and_record_are_shown(client: Client) -> None:
    job = (await client.post("/v1/jobs?wait=20", {"recipe": "asks"})).json["job"]
    first = (await client.get(f"/v1/jobs/{job}/events?limit=1")).json
    assert [event["kind"] for event in first["items"]] == ["job_created"]
    rest = (await client.get(f"/v1/jobs/{job}/events?after={first['next']}")).json
    assert rest["items"][0]["seq"] == 2
    assert (await client.get(f"/v1/jobs/{job}/verify")).json["problems"] == []
    assert (await client.get(f"/v1/jobs/{job}/steps/1")).status == 200
    assert (await client.get(f"/v1/jobs/{job}/steps/99")).json["error_code"] == "STEP_NOT_FOUND"
    assert (await client.post(f"/v1/jobs/{job}/replay")).status == 200


async def test_events_are_followed_live_and_from_where_the_client_was(client: Client) -> None:
    job = (await client.post("/v1/jobs?wait=20", {"recipe": "asks"})).json["job"]
    async with client.session.get(f"{client.url}/v1/jobs/{job}/events/live") as live:
        assert live.content_type == "text/event-stream"
        assert await live.content.readline() == b"id: 1\n"
        (question,) = (await client.get("/v1/confirmations")).json
        answer = {"digest": question["digest"]}
        await client.post(f"/v1/confirmations/{question['confirmation']}/approve", answer)
        told = (await live.content.read()).decode()
    assert told.rstrip().rpartition("event: ")[2].startswith("job_completed")
    last = told.rpartition("id: ")[2].partition("\n")[0]
    headers = {"last-event-id": str(int(last) - 1)}
    again = await client.get(f"/v1/jobs/{job}/events/live", headers=headers)
    assert again.body.decode().count("id: ") == 1
    wrong = await client.get(f"/v1/jobs/{job}/events/live", headers={"last-event-id": "x"})
    assert wrong.json["error_code"] == "REQUEST_INVALID"
    assert (await client.get("/v1/jobs/job_none/events/live")).status == 404


async def test_a_tickets_steps_run_once_for_an_attempt(client: Client) -> None:
    body = {"ticket_id": "tkt_1", "tool_steps": [{"tool_name": "desk_look", "args": {"what": "x"}}]}
    one, again = [(await client.post("/v1/tools/execute", body)).json for _ in range(2)]
    assert (one["status"], one["run_id"]) == ("ok", again["run_id"])
    assert CALLS == ["x"]


@pytest.mark.parametrize("body", [{}, {"ticket_id": "t"}, {"tool_steps": []}, {"tool_name": "a", "tool_steps": []}])
async def test_a_request_that_is_neither_a_call_nor_a_run_is_refused(client: Client, body: object) -> None:
    found = await client.post("/v1/tools/execute", body)
    assert (found.status, found.json["error_code"]) == (400, "INVALID_TOOL_STEP")


async def test_each_principals_calls_have_a_session_of_their_own(remit: Remit, served: Served) -> None:
    tokens = [token("ann", "call", "read"), token("bob", "call")]
    async with served(remit, tokens) as client:
        body = {"tool_name": "desk_look", "args": {"what": "x"}}
        for who in ("ann", "bob", "ann"):
            await client.post("/v1/tools/execute", body, headers=bearer(who))
        rows = (await client.get("/v1/sessions", headers=bearer("ann"))).json
        assert sorted(row["principal"] for row in rows) == ["ann", "bob"]


async def test_a_token_for_some_tools_sees_and_calls_no_others_nor_do_its_jobs(remit: Remit, served: Served) -> None:
    limited = token("ann", "read", "call", tools=("desk.look",))
    async with served(remit, tokens=[limited]) as client:
        ann = bearer("ann")
        assert [tool["name"] for tool in (await client.get("/v1/tools", headers=ann)).json] == ["desk.look"]
        assert (await client.get("/v1/tools/desk.write", headers=ann)).status == 404
        body = {"tool_name": "desk_look", "args": {"what": "x"}}
        assert (await client.post("/v1/tools/execute", body, headers=ann)).json["value"] == "X"
        body = {"tool_name": "desk_write", "args": {"text": "x"}}
        assert (await client.post("/v1/tools/execute", body, headers=ann)).json["code"] == "POLICY_DENIED"
        run = {"ticket_id": "t", "tool_steps": [{"tool_name": "desk_write", "args": {"text": "x"}}]}
        assert (await client.post("/v1/tools/execute", run, headers=ann)).json["error_code"] == "SCOPE_REQUIRED"
        start = {"recipe": "asks", "input": {}}
        wider = await client.post("/v1/jobs", {**start, "tools": ["desk.look", "desk.*"]}, headers=ann)
        assert (wider.status, wider.json["error_code"]) == (403, "SCOPE_REQUIRED")
        for tools in (None, ["desk.look"], []):
            job = (await client.post("/v1/jobs", {**start, "tools": tools}, headers=ann)).json["job"]
            assert (await remit.ended(job)).state == "failed"
    assert CALLS == ["x"]
