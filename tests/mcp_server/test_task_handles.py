"""Calls that are answered with tasks: those that wait for a person, and those of servers that make tasks of them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPError

from remit import Remit
from remit.clock import SystemClock, isoformat
from remit.jsonrpc.protocol import INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_REQUIRED_CLIENT_CAPABILITY, TASKS
from remit.mcp_server import task_handles
from remit.mcp_server.offer import Names, OwnNames, WireNames
from remit.mcp_server.peers import Parked
from remit.mcp_server.relay import Relay
from remit.mcp_server.request import AskingTerms
from tests.mcp_server.links import MODERN, Link, at, facing, person, raw, serving, sessions, text_of
from tests.mcp_server.test_confirmation import Notes, Person, said
from tests.opened import OpenRemit
from tests.patience import PATIENCE_S

NEWER: Final = [Link(transport, MODERN) for transport in ("lines", "http")]
TAKES: Final[dict[str, Any]] = {"extensions": [advertise(TASKS)]}
WRITE: Final = {"name": "note__write", "arguments": {"text": "milk"}}
newer = pytest.mark.parametrize("link", NEWER, ids=lambda link: link.transport)


@pytest.fixture
def notes() -> Notes:
    return Notes()


async def ended(client: Client, task: str, *status: str) -> dict[str, Any]:
    """The task once it has one of these states."""
    async with asyncio.timeout(PATIENCE_S):
        while (got := await raw(client, "tasks/get", {"taskId": task}))["status"] not in status:
            pass
    return got


async def decided(remit: Remit, decision: Any, by: str = "ann") -> str:
    """Answer the only open question."""
    (question,) = await remit.service.confirmations.pending()
    await remit.service.confirmations.decide(question.confirmation, decision, by=by, reason="not now")
    return question.confirmation


@newer
async def test_a_call_that_waits_is_a_task_that_tells_when_it_was_decided_and_gives_the_result(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    async with remit_in(tools=[notes.tool]) as remit, facing(remit) as face, link.connect(face, **TAKES) as client:
        created = await raw(client, "tools/call", WRITE)
        task = created["taskId"]
        assert (created["resultType"], created["status"], notes.written) == ("task", "working", [])
        waiting = await raw(client, "tasks/get", {"taskId": task})
        assert (waiting["resultType"], waiting["status"]) == ("complete", "working")
        question = await decided(remit, "approve")
        assert question in waiting["statusMessage"]
        done = await ended(client, task, "completed")
        assert done["result"]["structuredContent"] == {"notes": 1}
        (decision,) = (await remit.service.confirmations.answers(question)).decisions
        assert done["statusMessage"] == f"approved by ann at {isoformat(decision.at)}"
        assert done["createdAt"] <= done["lastUpdatedAt"]
        assert (await ended(client, task, "completed"))["result"] == done["result"]
        assert (await remit.service.streams.verify()).ok
    assert notes.written == ["milk"]


@newer
async def test_a_denial_is_the_result_of_the_task(remit_in: OpenRemit, link: Link, notes: Notes) -> None:
    async with remit_in(tools=[notes.tool]) as remit, facing(remit) as face, link.connect(face, **TAKES) as client:
        task = (await raw(client, "tools/call", WRITE))["taskId"]
        await decided(remit, "deny")
        done = await ended(client, task, "completed")
    assert done["result"]["isError"]
    assert done["result"]["_meta"]["dev.remit/outcome"]["code"] == "CONFIRMATION_DENIED"
    assert notes.written == []


async def test_a_dialog_comes_first_and_a_task_follows_where_it_was_closed(remit_in: OpenRemit, notes: Notes) -> None:
    closed = Person(types.ElicitResult(action="cancel"))
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        NEWER[1].connect(face, elicitation_callback=closed, **TAKES) as client,
    ):
        asked = await raw(client, "tools/call", WRITE)
        assert asked["resultType"] == "input_required"
        answer = {"inputResponses": {"decision": {"action": "cancel"}}, "requestState": asked["requestState"]}
        task = (await raw(client, "tools/call", {**WRITE, **answer}))["taskId"]
        await decided(remit, "approve")
        await ended(client, task, "completed")
    assert notes.written == ["milk"]


async def test_an_approval_in_the_dialog_is_answered_at_once(remit_in: OpenRemit, notes: Notes) -> None:
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        NEWER[1].connect(face, elicitation_callback=Person(said("approve")), **TAKES) as client,
    ):
        assert (await client.call_tool("note__write", {"text": "milk"})).structured_content == {"notes": 1}


@newer
async def test_a_cancelled_task_runs_nothing(remit_in: OpenRemit, link: Link, notes: Notes) -> None:
    async with remit_in(tools=[notes.tool]) as remit, facing(remit) as face, link.connect(face, **TAKES) as client:
        task = (await raw(client, "tools/call", WRITE))["taskId"]
        await raw(client, "tasks/cancel", {"taskId": task})
        await ended(client, task, "cancelled")
        await decided(remit, "approve")
        assert (await raw(client, "tasks/get", {"taskId": task}))["status"] == "cancelled"
    assert notes.written == []


async def test_a_task_is_its_principals(remit_in: OpenRemit, notes: Notes) -> None:
    clients = [person("ann"), person("bob")]
    given = {"mode": MODERN, "cache": None, **TAKES}
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, terms=AskingTerms(ask="terminal")) as face,
        serving(face, clients=clients) as url,
        at(url, token="token-of-ann", **given) as ann,
        at(url, token="token-of-bob", **given) as bob,
    ):
        task = (await raw(ann, "tools/call", WRITE))["taskId"]
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            with pytest.raises(MCPError) as caught:
                await raw(bob, method, {"taskId": task, "inputResponses": {}})
            assert caught.value.code == INVALID_PARAMS
        assert (await raw(ann, "tasks/get", {"taskId": task}))["status"] == "working"


@newer
async def test_a_client_that_does_not_take_tasks_gets_none(remit_in: OpenRemit, link: Link, notes: Notes) -> None:
    async with remit_in(tools=[notes.tool]) as remit, facing(remit) as face, link.connect(face) as client:
        assert (await raw(client, "tools/call", WRITE))["resultType"] == "complete"
        with pytest.raises(MCPError) as caught:
            await raw(client, "tasks/get", {"taskId": "x"})
    assert caught.value.code == MISSING_REQUIRED_CLIENT_CAPABILITY
    assert caught.value.data == {"requiredCapabilities": {"extensions": {TASKS: {}}}}


async def test_the_extension_is_offered_since_2026_and_the_older_capability_in_its_version_alone(
    remit_in: OpenRemit,
) -> None:
    async with remit_in() as remit, facing(remit) as face:
        async with Link("lines", MODERN).connect(face) as client:
            said_now = await raw(client, "server/discover", {})
            with pytest.raises(MCPError) as caught:
                await raw(client, "tasks/list", {})
        async with Link("lines", "legacy").connect(face) as client:
            before = client.session.server_capabilities
    assert said_now["capabilities"]["extensions"] == {TASKS: {}}
    assert "tasks" not in said_now["capabilities"]
    assert before is not None
    assert before.extensions is None
    assert before.tasks is not None
    assert caught.value.code in {METHOD_NOT_FOUND, MISSING_REQUIRED_CLIENT_CAPABILITY}


async def test_one_principal_has_so_many_tasks_and_the_ended_ones_make_room(
    remit_in: OpenRemit, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_handles, "_MAX_OF_ONE", 1)
    async with remit_in(tools=[notes.tool]) as remit, facing(remit) as face, NEWER[1].connect(face, **TAKES) as client:
        first = (await raw(client, "tools/call", WRITE))["taskId"]
        other = {"name": "note__write", "arguments": {"text": "tea"}}
        with pytest.raises(MCPError, match="too many tasks"):
            await raw(client, "tools/call", other)
        await raw(client, "tasks/cancel", {"taskId": first})
        await ended(client, first, "cancelled")
        assert (await raw(client, "tools/call", other))["status"] == "working"
        with pytest.raises(MCPError, match="no such task"):
            await raw(client, "tasks/get", {"taskId": first})


async def test_no_two_questions_of_a_task_have_the_same_key() -> None:
    parked = Parked(cast("Any", SimpleNamespace()), takes_tasks=True)
    assert parked.defer("it takes long")
    keys = []
    for _ in range(2):
        asking = asyncio.create_task(parked.ask({"q": {"method": "roots/list", "params": {}}}))
        while not parked.questions:
            await asyncio.wait({asking}, timeout=0)
        (key,) = parked.questions
        parked.answered({key: {"roots": []}})
        await asking
        keys.append(key)
    assert len(set(keys)) == 2


async def test_a_task_is_known_for_its_time_alone() -> None:
    given_up = asyncio.Event()
    work: Any = SimpleNamespace(give_up=given_up.set)
    handles = task_handles.TaskHandles(SystemClock())
    handle = handles.take(work, "ann", ttl_ms=1)
    async with asyncio.timeout(PATIENCE_S):
        await given_up.wait()
    assert handle.id not in handles._handles


# --- tasks of servers

SERVER: Final = Path(__file__).parent / "servers" / "tasks.py"
FAR: Final = {"content": [{"type": "text", "text": "far"}], "isError": False}
ERROR: Final = {"code": -32050, "message": "quota", "data": {"left": 0}}
eras = pytest.mark.parametrize("era", ["legacy", "modern"])
"""The server's, which its client's need not be."""


@asynccontextmanager
async def behind(
    remit_in: OpenRemit, era: str, link: Link, *, wrapped: bool = True, level: str = "L0", **given: Any
) -> AsyncIterator[Any]:
    """A Remit in front of the server, and a client of it."""
    command = [sys.executable, "-I", "-S", str(SERVER)]
    table = {"name": "far", "command": command, "level": level, "era": era}
    async with remit_in(flags={"mcp.servers": [table], "mcp.elicitation": "forward"}) as remit:
        servers = remit.service.servers
        relay = Relay(servers.remote("far"), remit.service.sessions, await servers.status("far")) if wrapped else None
        names: Names = OwnNames("far") if wrapped else WireNames()
        async with facing(remit, names=names, relay=relay) as face, link.connect(face, **given) as client:
            yield remit, client


@eras
@pytest.mark.parametrize("link", [Link("lines", "legacy"), Link("http", MODERN)], ids=["legacy", "modern"])
async def test_a_call_that_a_server_makes_a_task_of_is_one_call_to_who_takes_no_tasks(
    remit_in: OpenRemit, era: str, link: Link
) -> None:
    heard: list[str | None] = []

    async def progress(_done: float, _total: float | None, message: str | None) -> None:
        heard.append(message)

    async with behind(remit_in, era, link, wrapped=False) as (remit, client):
        args = {"polls": 2, "result": FAR}
        result = await client.call_tool("mcp__far__must", args, progress_callback=progress)
        assert text_of(result) == "far"
        assert (await remit.service.streams.verify()).ok
        (rows,) = (await sessions(remit)).values()
        assert [row.KIND for row in rows].count("tool_invocation_finished") == 1
    assert "2 to go" in heard


@eras
async def test_a_failed_task_is_the_error_of_its_call(remit_in: OpenRemit, era: str) -> None:
    async with behind(remit_in, era, Link("lines", "legacy")) as (_, client):
        with pytest.raises(MCPError) as caught:
            await client.call_tool("must", {"error": ERROR})
    assert caught.value.error.model_dump(exclude_none=True) == ERROR


@eras
async def test_a_task_asks_the_person_at_the_client(remit_in: OpenRemit, era: str) -> None:
    async def which(context: Any, params: Any) -> types.ElicitResult:
        assert "Which?" in params.message
        return types.ElicitResult(action="accept", content={"which": "this"})

    async with behind(remit_in, era, Link("lines", "legacy"), elicitation_callback=which) as (_, client):
        result = await client.call_tool("must", {"asks": True})
    assert json.loads(text_of(result))["content"] == {"which": "this"}


@eras
async def test_a_client_of_the_extension_gets_a_task_of_its_own(remit_in: OpenRemit, era: str) -> None:
    async with behind(remit_in, era, Link("lines", MODERN), **TAKES) as (_, client):
        created = await raw(client, "tools/call", {"name": "must", "arguments": {"polls": 1, "result": FAR}})
        assert created["resultType"] == "task"
        assert created["taskId"] != "t0"
        done = await ended(client, created["taskId"], "completed")
    assert done["result"]["content"] == FAR["content"]


@eras
async def test_a_task_that_asks_is_answered_by_an_update(remit_in: OpenRemit, era: str) -> None:
    async def never(context: Any, params: Any) -> types.ElicitResult:
        raise AssertionError

    link = Link("http", MODERN)
    async with behind(remit_in, era, link, elicitation_callback=never, **TAKES) as (_, client):
        call = {"name": "must", "arguments": {"asks": True, "polls": 1}}
        task = (await raw(client, "tools/call", call))["taskId"]
        waiting = await ended(client, task, "input_required")
        ((key, question),) = waiting["inputRequests"].items()
        assert "Which?" in question["params"]["message"]
        answer = {"action": "accept", "content": {"which": "that"}}
        await raw(client, "tasks/update", {"taskId": task, "inputResponses": {"other": answer}})
        await raw(client, "tasks/update", {"taskId": task, "inputResponses": {key: answer}})
        done = await ended(client, task, "completed")
    assert json.loads(done["result"]["content"][0]["text"])["content"] == {"which": "that"}


@eras
async def test_a_cancelled_task_is_cancelled_at_the_server(remit_in: OpenRemit, era: str) -> None:
    async with behind(remit_in, era, Link("lines", MODERN), **TAKES) as (_, client):
        call = {"name": "must", "arguments": {"polls": 1_000_000, "result": FAR}}
        task = (await raw(client, "tools/call", call))["taskId"]
        await raw(client, "tasks/cancel", {"taskId": task})
        await ended(client, task, "cancelled")
        assert text_of(await client.call_tool("told", {})) == '["t0"]'


OLDER: Final = [Link("lines", "legacy"), Link("http", "legacy")]


@pytest.mark.parametrize("link", OLDER, ids=lambda link: link.transport)
async def test_a_client_of_2025_asks_for_a_task_lists_it_and_takes_its_result(remit_in: OpenRemit, link: Link) -> None:
    async with behind(remit_in, "legacy", link) as (_, client):
        offered = client.session.server_capabilities
        assert offered is not None
        assert offered.tasks is not None
        call = {"name": "may", "arguments": {"polls": 1, "result": FAR}, "task": {"ttl": 60_000}}
        task = (await raw(client, "tools/call", call))["task"]
        assert (task["ttl"], task["status"]) == (60_000, "working")
        assert [each["taskId"] for each in (await raw(client, "tasks/list", {}))["tasks"]] == [task["taskId"]]
        result = await raw(client, "tasks/result", {"taskId": task["taskId"]})
        assert result["content"] == FAR["content"]
        assert result["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": task["taskId"]}
        assert (await raw(client, "tasks/get", {"taskId": task["taskId"]}))["status"] == "completed"
        with pytest.raises(MCPError, match="completed already"):
            await raw(client, "tasks/cancel", {"taskId": task["taskId"]})


@pytest.mark.parametrize("link", OLDER, ids=lambda link: link.transport)
async def test_a_task_of_2025_asks_whoever_waits_for_its_result(remit_in: OpenRemit, link: Link) -> None:
    async def which(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"which": "this"})

    async with behind(remit_in, "legacy", link, elicitation_callback=which) as (_, client):
        call = {"name": "must", "arguments": {"asks": True}, "task": {}}
        task = (await raw(client, "tools/call", call))["task"]["taskId"]
        result = await raw(client, "tasks/result", {"taskId": task})
    assert json.loads(result["content"][0]["text"])["content"] == {"which": "this"}


async def test_a_task_of_2025_waits_for_a_person(remit_in: OpenRemit) -> None:
    async with behind(remit_in, "legacy", OLDER[0], level="L1") as (remit, client), asyncio.timeout(PATIENCE_S):
        call = {"name": "must", "arguments": {"result": FAR}, "task": {}}
        task = (await raw(client, "tools/call", call))["task"]["taskId"]
        result = asyncio.create_task(raw(client, "tasks/result", {"taskId": task}))
        while not await remit.service.confirmations.pending():
            pass
        await decided(remit, "approve")
        assert (await result)["content"] == FAR["content"]
        assert "approved by ann" in (await raw(client, "tasks/get", {"taskId": task}))["statusMessage"]


async def test_a_task_of_2025_gives_the_error_that_its_call_ends_in(remit_in: OpenRemit) -> None:
    async with behind(remit_in, "legacy", OLDER[0]) as (_, client):
        call = {"name": "must", "arguments": {"error": ERROR}, "task": {}}
        task = (await raw(client, "tools/call", call))["task"]["taskId"]
        with pytest.raises(MCPError, match="quota"):
            await raw(client, "tasks/result", {"taskId": task})
        assert (await raw(client, "tasks/get", {"taskId": task}))["status"] == "failed"
        other = {"name": "told", "arguments": {}, "task": {}}
        assert "content" in await raw(client, "tools/call", other)  # a tool that is no task is called at once
