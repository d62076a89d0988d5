"""Serving over HTTP: who may connect, as whom, and how it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from remit.codes import Code
from remit.errors import SettingsError
from remit.http import server as http
from remit.journal.kinds import SessionOpened
from remit.large import MAX_VALUES
from remit.mcp_server.request import PATH
from tests.mcp_server.links import MODERN, application, at, facing, listening, person, serving, sessions, text_of
from tests.mcp_server.test_calls import Door
from tests.mcp_server.test_listing import echo, names, write
from tests.opened import OpenRemit
from tests.patience import PATIENCE_S

ERAS = pytest.mark.parametrize("era", ["legacy", MODERN])
PEOPLE = [person(name) for name in ("ann", "ben")]
INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}},
}
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


async def posted(url: str, headers: dict[str, str], body: Any = INITIALIZE) -> int:
    async with httpx2.AsyncClient() as bare:
        return (await bare.post(url, headers={**ACCEPT, **headers}, json=body)).status_code


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example:80"}, 421),
        ({"host": "localhost:1"}, 200),
        ({"host": "team.example"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "https://team.example"}, 200),
    ],
)
async def test_host_and_origin_are_checked(remit_in: OpenRemit, headers: dict[str, str], status: int) -> None:
    async with remit_in() as remit, facing(remit) as face, serving(face, hosts=["team.example"]) as url:
        assert await posted(url, headers) == status


@pytest.mark.parametrize(
    ("token", "status"),
    [("", 401), ("wrong", 401), ("token-of-an", 401), ("token-of-annn", 401), ("tökén", 401), ("token-of-ann", 200)],
)
async def test_where_clients_are_named_only_they_are_let_in(remit_in: OpenRemit, token: str, status: int) -> None:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    sent = [(name.encode(), value.encode("latin-1")) for name, value in {**ACCEPT, **headers}.items()]
    async with (
        remit_in() as remit,
        facing(remit) as face,
        serving(face, clients=PEOPLE) as url,
        httpx2.AsyncClient() as bare,
    ):
        answer = await bare.post(url, headers=sent, json=INITIALIZE)
    assert answer.status_code == status
    assert "token-of" not in answer.text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", ""])  # noqa: S104 - what must be refused
async def test_nobody_listens_to_the_network_without_tokens_and_tls(remit_in: OpenRemit, host: str) -> None:
    async with remit_in() as remit, facing(remit) as face:
        with pytest.raises(SettingsError, match="no client has a token") as raised:
            application(face, host=host)
        assert raised.value.code is Code.SETTINGS_INVALID
        with pytest.raises(SettingsError, match="unencrypted"):
            application(face, host=host, clients=PEOPLE)


@ERAS
async def test_each_client_is_who_its_token_says_in_a_session_of_its_own(remit_in: OpenRemit, era: str) -> None:
    rule = {"effect": "deny", "tools": ["note.write"], "callers": ["mcp:ben"]}
    async with (
        remit_in(tools=[echo, write], flags={"policy.rules": [rule]}) as remit,
        facing(remit, transport="http") as face,
        serving(face, clients=PEOPLE) as url,
        at(url, token="token-of-ann", mode=era, cache=None) as ann,
        at(url, token="token-of-ben", mode=era, cache=None) as ben,
    ):
        assert "note__write" in await names(ann)
        assert "note__write" not in await names(ben)
        for _ in range(2):
            answers = await asyncio.gather(
                ann.call_tool("text__echo", {"text": "from ann"}), ben.call_tool("text__echo", {"text": "from ben"})
            )
            assert [text_of(answer) for answer in answers] == ["from ann", "from ben"]
        found = await sessions(remit)
        assert (await remit.service.streams.verify()).ok
    opened = [events[0] for events in found.values()]
    assert all(isinstance(event, SessionOpened) for event in opened)
    assert sorted(event.principal for event in opened if isinstance(event, SessionOpened)) == ["ann", "ben"]
    assert [len(events) for events in found.values()] == [5, 5]


async def test_clients_without_tokens_have_sessions_of_their_own_where_the_protocol_has_sessions(
    remit_in: OpenRemit,
) -> None:
    async with (
        remit_in(tools=[echo]) as remit,
        facing(remit) as face,
        serving(face) as url,
        at(url, mode="legacy") as one,
        at(url, mode="legacy") as other,
    ):
        await one.call_tool("text__echo", {"text": "a"})
        await other.call_tool("text__echo", {"text": "b"})
        assert len(await sessions(remit)) == 2


async def test_a_session_is_of_no_use_to_somebody_else(remit_in: OpenRemit) -> None:
    async with (
        remit_in(tools=[echo]) as remit,
        facing(remit) as face,
        serving(face, clients=PEOPLE) as url,
        httpx2.AsyncClient(headers=ACCEPT) as bare,
    ):
        ann = {"authorization": "Bearer token-of-ann"}
        opened = await bare.post(url, headers=ann, json=INITIALIZE)
        session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await bare.post(url, headers={**ann, **session}, json=initialized)).status_code == 202
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        ben = {"authorization": "Bearer token-of-ben"}
        assert (await bare.post(url, headers={**ben, **session}, json=listing)).status_code == 404
        assert (await bare.post(url, headers={**ann, **session}, json=listing)).status_code == 200


async def test_a_header_that_names_another_s_session_changes_nothing_about_who_calls(remit_in: OpenRemit) -> None:
    async with (
        remit_in(tools=[echo]) as remit,
        facing(remit) as face,
        serving(face, clients=PEOPLE) as url,
        at(url, token="token-of-ann", mode="legacy") as ann,
    ):
        await ann.call_tool("text__echo", {"text": "a"})
        (session,) = [str(key[2]) for key in face._clients]
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "bare", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": "text__echo", "arguments": {"text": "b"}, "_meta": meta}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            "authorization": "Bearer token-of-ben",
            "mcp-session-id": session,
            "mcp-protocol-version": MODERN,
            "mcp-method": "tools/call",
            "mcp-name": "text__echo",
        }
        assert await posted(url, headers, body) == 200
        found = await sessions(remit)
    assert [events[0].principal for events in found.values() if isinstance(events[0], SessionOpened)] == ["ann", "ben"]


async def test_a_request_that_is_too_large_is_refused_and_the_next_one_served(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[echo]) as remit, facing(remit) as face, serving(face) as url:
        big = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x" * 20_000_000}}
        assert await posted(url, {}, big) == 413
        assert await posted(url, {}) == 200


async def test_a_message_of_too_many_values_is_refused(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[echo]) as remit, facing(remit) as face, serving(face) as url:
        many = {"name": "text__echo", "arguments": dict.fromkeys(map(str, range(MAX_VALUES)), 0)}
        assert await posted(url, {}, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": many}) == 413
        assert await posted(url, {}) == 200


@pytest.mark.slow
@ERAS
async def test_it_stops_within_seconds_whatever_is_open(remit_in: OpenRemit, era: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(http, "GRACE_S", 1)
    door = Door()
    async with remit_in(tools=[door.tool]) as remit, facing(remit) as face:
        stop = asyncio.Event()
        with listening() as taken:
            app = application(face)
            task = asyncio.create_task(http.serve(app, taken, stop))
            url = f"http://127.0.0.1:{taken.getsockname()[1]}{PATH}"
            async with at(url, mode=era, cache=None, read_timeout_seconds=PATIENCE_S) as client:
                call = asyncio.create_task(client.call_tool("door__pass", {}))
                await door.began.wait()
                stop.set()
                async with asyncio.timeout(PATIENCE_S):
                    await task
                    await door.stopped.wait()
                    with pytest.raises(MCPError):
                        await call


@ERAS
async def test_a_principal_has_so_many_requests_under_way_and_others_keep_theirs(remit_in: OpenRemit, era: str) -> None:
    door = Door()
    ann, ben = ({"authorization": f"Bearer token-of-{name}"} for name in ("ann", "ben"))
    async with (
        remit_in(tools=[door.tool]) as remit,
        facing(remit) as face,
        serving(face, clients=PEOPLE, requests=1) as url,
        at(url, token="token-of-ann", mode=era) as client,
    ):
        call = asyncio.create_task(client.call_tool("door__pass", {}))
        await door.began.wait()
        async with httpx2.AsyncClient() as bare:
            refused = await bare.post(url, headers={**ACCEPT, **ann}, json=INITIALIZE)
        assert (refused.status_code, refused.json()["error_code"]) == (429, Code.TOO_MANY_REQUESTS.name)
        assert refused.headers["retry-after"]
        assert await posted(url, ben) == 200
        door.open.set()
        assert text_of(await call) == "through"
        assert await posted(url, ann) == 200


async def test_an_answer_to_a_question_takes_no_place_of_a_request(remit_in: OpenRemit) -> None:
    async def approve(_context: Any, _params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"decision": "approve"})

    async with (
        remit_in(tools=[write]) as remit,
        facing(remit) as face,
        serving(face, clients=PEOPLE, requests=1) as url,
        at(url, token="token-of-ann", mode="legacy", elicitation_callback=approve) as client,
    ):
        assert not (await client.call_tool("note__write", {"text": "x"})).is_error
