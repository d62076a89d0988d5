"""What holds for every request: its trace, its line in the access log, missing dependencies and warnings."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from remit import CallContext, Run, recipe, tool
from remit.journal.kinds import ToolInvocationStarted, decode
from tests.api.conftest import Served, bearer, token
from tests.opened import OpenRemit

pytestmark = pytest.mark.slow

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
SEEN: list[str] = []


@tool("desk.look", level="L0")
async def look(what: str, ctx: CallContext) -> str:
    """Look, and note the trace."""
    SEEN.append(ctx.trace_id)
    return what


@tool("desk.count", level="L0", output_schema={"type": "object"})
async def count(what: str) -> Any:
    """Give something else than it says."""
    return len(what)


@recipe("looks")
async def looks(run: Run) -> None:
    """Look."""
    await run.call("desk.look", {"what": "x"})


def look_at(what: str) -> dict[str, Any]:
    return {"tool_name": "desk_look", "args": {"what": what}}


async def test_a_call_belongs_to_the_trace_that_its_client_names(remit_in: OpenRemit, served: Served) -> None:
    SEEN.clear()
    async with remit_in(tools=[look]) as remit, served(remit) as client:
        answered = await client.post("/v1/tools/execute", look_at("x"), headers=PARENT)
        named = answered.headers["traceresponse"]
        await client.post("/v1/tools/execute", look_at("x"))
        (row,) = (await client.get("/v1/sessions")).json
        events = await remit.service.streams.events(f"session/{row['session']}")
        said = [decode(event.kind, event.data) for event in events]
    assert named.startswith(f"00-{TRACE}-")
    assert SPAN not in named
    assert [one.trace_id for one in said if isinstance(one, ToolInvocationStarted)] == SEEN
    assert SEEN[0] == TRACE != SEEN[1]


async def test_a_job_is_filed_under_the_trace_that_its_client_names(remit_in: OpenRemit, served: Served) -> None:
    async with remit_in(recipes=[looks], tools=[look]) as remit, served(remit) as client:
        job = (await client.post("/v1/jobs", {"recipe": "looks"}, headers=PARENT)).json["job"]
        await client.post("/v1/jobs", {"recipe": "looks"})
        rows = (await client.get(f"/v1/jobs?label=trace_id={TRACE}")).json["items"]
        assert [row["job"] for row in rows] == [job]


async def test_every_request_has_a_line_and_none_has_a_secret(remit_in: OpenRemit, served: Served) -> None:
    log = io.StringIO()
    async with remit_in(tools=[look]) as remit, served(remit, [token("ann", "read")], log=log) as client:
        await client.get("/v1/tools?what=secret-query", headers=bearer("ann") | PARENT)
        await client.post("/v1/tools/execute", look_at("secret-argument"), headers=bearer("ann"))
        await client.get("/v1/jobs", headers=bearer("nobody"))
    rows = [json.loads(line) for line in log.getvalue().splitlines()]
    said = [(row["principal"], row["method"], row["path"], row["status"], row["code"]) for row in rows]
    assert said == [
        ("ann", "GET", "/v1/tools", 400, "INVALID_INPUT"),
        ("ann", "POST", "/v1/tools/execute", 403, "SCOPE_REQUIRED"),
        ("", "GET", "/v1/jobs", 401, "UNAUTHENTICATED"),
    ]
    assert rows[0]["trace_id"] == TRACE
    assert "secret" not in log.getvalue()


async def test_a_call_is_refused_while_a_required_dependency_is_missing(remit_in: OpenRemit, served: Served) -> None:
    flags = {"tools.no_mcp": True, "mcp.servers": [{"name": "notes", "command": "x"}], "readiness.required": ["mcp"]}
    async with remit_in(tools=[look], flags=flags) as remit, served(remit) as client:
        refused = await client.post("/v1/tools/execute", look_at("x"))
        health = await client.get("/health")
    assert (refused.status, health.status) == (503, 503)
    assert refused.json["error_code"] == "MCP_REQUIRED_UNAVAILABLE"
    assert refused.json["missing_required"] == ["mcp"] == health.json["missing_required"]
    assert refused.json["degraded"] is True
    assert refused.json["as_of"]


async def test_an_answer_says_how_many_warnings_the_schema_gate_had(remit_in: OpenRemit, served: Served) -> None:
    async with remit_in(tools=[look, count], flags={"tools.schema_gate": "warn"}) as remit:
        async with served(remit, counts_warnings=True) as client:
            warned = await client.post("/v1/tools/execute", {"tool_name": "desk_count", "args": {"what": "x"}})
            fine = await client.post("/v1/tools/execute", look_at("x"))
        async with served(remit) as client:
            silent = await client.post("/v1/tools/execute", look_at("x"))
    assert warned.json["status"] == "ok"
    assert (warned.headers["x-schema-warn-count"], fine.headers["x-schema-warn-count"]) == ("1", "0")
    assert "x-schema-warn-count" not in silent.headers
