"""What a request over HTTP is answered, byte by byte where that matters; `test_http.py` has who may connect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx2
import pytest

from remit import Remit, tool
from remit.mcp_server import exchange, sessions
from remit.mcp_server.server import ToolServer
from remit.tools.peer import PeerError
from remit.tools.provider import CallContext
from tests.mcp_server.links import MODERN, NO_TLS, facing, serving
from tests.mcp_server.test_calls import Door, count
from tests.mcp_server.test_http import ACCEPT, INITIALIZE
from tests.mcp_server.test_listing import echo, write
from tests.opened import OpenRemit
from tests.patience import PATIENCE_S

OLDER = {**ACCEPT, "mcp-protocol-version": "2025-11-25"}
NEWER = {**ACCEPT, "mcp-protocol-version": MODERN}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bare", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Bare(NamedTuple):
    """A server and somebody who talks HTTP to it."""

    remit: Remit
    face: ToolServer
    url: str
    http: httpx2.AsyncClient

    async def begin(self) -> dict[str, str]:
        """A session; the headers that belong to it."""
        opened = await self.http.post(self.url, headers=OLDER, json=INITIALIZE)
        assert opened.status_code == 200
        session = {**OLDER, "mcp-session-id": opened.headers["mcp-session-id"]}
        assert (await self.http.post(self.url, headers=session, json=INITIALIZED)).status_code == 202
        return session

    async def post(self, body: Any, headers: dict[str, str]) -> httpx2.Response:
        sent = {"content": body} if isinstance(body, bytes) else {"json": body}
        return await self.http.post(self.url, headers=headers, **sent)


@asynccontextmanager
async def bare(remit_in: OpenRemit, *tools: Any) -> AsyncIterator[Bare]:
    async with (
        remit_in(tools=list(tools)) as remit,
        facing(remit) as face,
        serving(face) as url,
        httpx2.AsyncClient(timeout=PATIENCE_S, verify=NO_TLS) as http,
    ):
        yield Bare(remit, face, url, http)


def listing(**more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/list", **more}


def call(name: str, args: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": args or {}, "_meta": {**META, **meta}}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def routed(body: dict[str, Any]) -> dict[str, str]:
    """The headers that repeat what a request of 2026-07-28 is."""
    name = body.get("params", {}).get("name")
    return {**NEWER, "mcp-method": body["method"], **({"mcp-name": name} if name else {})}


@pytest.mark.parametrize("headers", [OLDER, NEWER], ids=["legacy", MODERN])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b'{"jsonrpc": NaN}', -32600),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        ([listing()], -32600),
        ("text", -32600),
        ({"id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600),
        (listing(id=None), -32600),
        (listing(id=[1]), -32600),
        (listing(id=True), -32600),
    ],
    ids=str,
)
async def test_what_is_no_message_is_refused(
    remit_in: OpenRemit, headers: dict[str, str], body: Any, code: int
) -> None:
    async with bare(remit_in) as it:
        answer = await it.post(body, headers)
        assert answer.status_code == 400
        assert (answer.json()["id"], answer.json()["error"]["code"]) == (None, code)


@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"accept": "application/json"}, 406),
        ({"accept": "text/event-stream"}, 406),
        ({"accept": ""}, 406),
        ({"accept": "text/html"}, 406),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": ""}, 415),
    ],
    ids=str,
)
async def test_types_are_negotiated(remit_in: OpenRemit, version: str, headers: dict[str, str], status: int) -> None:
    async with bare(remit_in) as it:
        given = {**ACCEPT, "mcp-protocol-version": version, **headers}
        assert (await it.post(INITIALIZE, given)).status_code == status


@pytest.mark.parametrize("accept", ["*/*", "application/*, text/*", "text/event-stream;q=0.5,APPLICATION/JSON"])
async def test_types_may_be_meant_in_general(remit_in: OpenRemit, accept: str) -> None:
    async with bare(remit_in) as it:
        assert (await it.post(INITIALIZE, {**OLDER, "accept": accept})).status_code == 200


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"protocolVersion": None}, "Expected `str`, got `null` - at `$.protocolVersion`"),
        ({}, "Object missing required field `protocolVersion`"),
        (None, "Object missing required field `protocolVersion`"),
    ],
    ids=str,
)
async def test_a_handshake_that_is_refused_says_what_is_wrong(remit_in: OpenRemit, params: Any, reason: str) -> None:
    async with bare(remit_in) as it:
        answer = (await it.post({**INITIALIZE, "params": params}, OLDER)).json()
        assert answer["error"] == {"code": -32602, "message": f"Invalid request parameters: {reason}"}


async def test_there_is_nothing_elsewhere(remit_in: OpenRemit) -> None:
    async with bare(remit_in) as it:
        for path in ("", "/", "/mcp//", "/mcp/x", "/other"):
            url = it.url.removesuffix("/mcp") + path
            assert (await it.http.post(url, headers=ACCEPT, json=INITIALIZE)).status_code == 404
        assert (await it.http.post(f"{it.url}/", headers=ACCEPT, json=INITIALIZE)).status_code == 200


# ---------------------------------------------------------------------------------------------------- before 2026-07-28
async def test_a_session_is_named_with_every_request(remit_in: OpenRemit) -> None:
    async with bare(remit_in, echo) as it:
        assert (await it.post(listing(), OLDER)).status_code == 400
        assert (await it.post(listing(), {**OLDER, "mcp-session-id": "made up"})).status_code == 404
        session = await it.begin()
        answer = await it.post(listing(), session)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["mcp-session-id"] == session["mcp-session-id"]
        assert [tool["name"] for tool in answer.json()["result"]["tools"]]


async def test_a_session_that_was_refused_never_was(remit_in: OpenRemit) -> None:
    async with bare(remit_in) as it:
        answer = await it.post({**INITIALIZE, "params": {}}, OLDER)
        assert answer.json()["error"]["code"] == -32602
        gone = {**OLDER, "mcp-session-id": answer.headers["mcp-session-id"]}
        assert (await it.post(listing(), gone)).status_code == 404


async def test_a_session_ends_when_its_client_says_so_with_what_was_under_way(remit_in: OpenRemit) -> None:
    door = Door()
    async with bare(remit_in, door.tool) as it:
        session = await it.begin()
        calling = asyncio.create_task(it.post(call("door__pass"), session))
        await door.began.wait()
        assert (await it.http.delete(it.url, headers=session)).status_code == 200
        await door.stopped.wait()
        assert "error" in (await calling).json()
        assert (await it.http.delete(it.url, headers=session)).status_code == 404
        assert (await it.post(listing(), session)).status_code == 404


async def test_a_session_that_nothing_comes_from_is_closed_unless_somebody_listens(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "IDLE_S", 0.0)
    async with bare(remit_in) as it:
        opened = await it.http.post(it.url, headers=OLDER, json=INITIALIZE)
        named = {**OLDER, "mcp-session-id": opened.headers["mcp-session-id"]}
        assert (await it.post(listing(), named)).status_code == 404
        monkeypatch.setattr(sessions, "IDLE_S", 60.0)
        session = await it.begin()
        monkeypatch.setattr(sessions, "IDLE_S", 0.0)
        async with it.http.stream("GET", it.url, headers=session):
            assert (await it.post(listing(), session)).status_code == 200
            assert (await it.post(listing(), session)).status_code == 200


async def test_there_are_so_many_sessions_and_no_more(remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 2)
    async with bare(remit_in) as it:
        first = await it.begin()
        await it.begin()
        assert (await it.post(INITIALIZE, OLDER)).status_code == 503
        await it.http.delete(it.url, headers=first)
        await it.begin()


async def test_a_client_that_opens_too_many_sessions_loses_its_own_oldest(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:  # s07/F01: ten thousand by one token locked everybody out
    monkeypatch.setattr(sessions, "MAX_PER_PRINCIPAL", 2)
    async with bare(remit_in) as it:
        first, second, third = [await it.begin() for _ in range(3)]
        assert [(await it.post(listing(), one)).status_code for one in (first, second, third)] == [404, 200, 200]


async def test_what_belongs_to_no_request_is_heard_by_who_listens_even_if_it_came_before(remit_in: OpenRemit) -> None:
    async with bare(remit_in, echo) as it:
        session, changed = await it.begin(), "notifications/prompts/list_changed"
        it.face.changes.heard(changed, {})
        await it.face.changes._tasks.ended()
        async with it.http.stream("GET", it.url, headers=session) as stream:
            assert stream.headers["content-type"] == "text/event-stream"
            lines = stream.aiter_lines()
            for _ in range(2):
                assert [await anext(lines) for _ in range(3)] == [
                    "event: message",
                    'data: {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}',
                    "",
                ]
                it.face.changes.heard(changed, {})
            again = await it.http.get(it.url, headers=session)
            assert again.status_code == 409
        assert (await it.http.get(it.url, headers={**session, "accept": "application/json"})).status_code == 406
        assert (await it.http.put(it.url, headers=session)).status_code == 405


async def test_a_client_that_leaves_has_not_cancelled_its_call(remit_in: OpenRemit) -> None:
    door = Door()
    async with bare(remit_in, door.tool) as it:
        session = await it.begin()
        calling = asyncio.create_task(it.post(call("door__pass"), session))
        await door.began.wait()
        calling.cancel()
        await asyncio.wait([calling])
        assert (await it.post(listing(id=2), session)).status_code == 200
        assert not door.stopped.is_set()
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        assert (await it.post(cancelled, session)).status_code == 202
        await door.stopped.wait()


async def test_a_question_to_a_client_that_left_is_not_waited_for(remit_in: OpenRemit) -> None:
    began, go_on, told = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @tool("person.ask", level="L0")
    async def ask(ctx: CallContext) -> str:
        """Ask whoever called, once they are gone."""
        began.set()
        await go_on.wait()
        assert ctx.peer is not None
        try:
            await ctx.peer.ask({"q": {"method": "elicitation/create", "params": {}}})
        except PeerError:
            told.set()
        return "alone"

    async with bare(remit_in, ask) as it:
        session = await it.begin()
        calling = asyncio.create_task(it.post(call("person__ask"), session))
        await began.wait()
        calling.cancel()
        await asyncio.wait([calling])
        assert (await it.post(listing(id=2), session)).status_code == 200
        go_on.set()
        async with asyncio.timeout(PATIENCE_S):
            await told.wait()


async def test_a_call_that_is_cancelled_still_ends_over_http(remit_in: OpenRemit) -> None:
    door = Door()
    async with bare(remit_in, door.tool) as it:
        session = await it.begin()
        calling = asyncio.create_task(it.post(call("door__pass"), session))
        await door.began.wait()
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        await it.post(cancelled, session)
        assert (await calling).json() == {
            "jsonrpc": "2.0",
            "id": 1,
            "error": {"code": -32800, "message": "Request cancelled"},
        }


# ----------------------------------------------------------------------------------------------------- since 2026-07-28
async def test_a_request_stands_for_itself(remit_in: OpenRemit) -> None:
    async with bare(remit_in, echo) as it:
        body = call("text__echo", {"text": "hi"})
        answer = await it.post(body, routed(body))
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        assert answer.json()["result"]["content"][0]["text"] == "hi"
        assert "mcp-session-id" not in answer.headers
        for method in ("GET", "DELETE", "PUT"):
            refused = await it.http.request(method, it.url, headers=NEWER)
            assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"mcp-method": "tools/list"}, 400, -32020),
        ({"mcp-name": "other"}, 400, -32020),
        ({"mcp-protocol-version": "2099-01-01"}, 400, -32020),
    ],
    ids=str,
)
async def test_headers_have_to_say_what_the_request_says(
    remit_in: OpenRemit, changes: dict[str, str], status: int, code: int
) -> None:
    async with bare(remit_in, echo) as it:
        body = call("text__echo", {"text": "hi"})
        answer = await it.post(body, {**routed(body), **changes})
        assert (answer.status_code, answer.json()["error"]["code"], answer.json()["id"]) == (status, code, 1)


async def test_a_header_that_comes_twice_is_refused(remit_in: OpenRemit) -> None:
    async with bare(remit_in, echo) as it:
        body = call("text__echo", {"text": "hi"})
        twice = [*routed(body).items(), ("mcp-method", "tools/call")]
        answer = await it.http.post(it.url, headers=twice, json=body)
        assert answer.status_code == 400
        assert "more than once" in answer.json()["error"]["message"]


async def test_a_notification_is_taken_note_of_where_its_version_is_spoken(remit_in: OpenRemit) -> None:
    async with bare(remit_in) as it:
        assert (await it.post(INITIALIZED, NEWER)).status_code == 202
        refused = await it.post(INITIALIZED, {**NEWER, "mcp-protocol-version": "2099-01-01"})
        assert refused.status_code == 400
        assert MODERN in refused.json()["error"]["data"]["supported"]


@pytest.mark.parametrize("era", ["legacy", MODERN])
async def test_an_answer_with_something_before_it_is_a_stream(remit_in: OpenRemit, era: str) -> None:
    async with bare(remit_in, count) as it:
        body = call("count__up", {"to": 2}, progressToken=7)
        headers = await it.begin() if era == "legacy" else routed(body)
        answer = await it.post(body, headers)
        assert answer.headers["content-type"] == "text/event-stream"
        events = [event for event in answer.text.split("\r\n\r\n") if event]
        assert ["notifications/progress" in event for event in events] == [*[True] * (len(events) - 1), False]
        assert len(events) > 1
        assert '"result"' in events[-1]


@pytest.mark.parametrize("era", ["legacy", MODERN])
async def test_who_waits_long_is_told_that_somebody_is_there(
    remit_in: OpenRemit, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "PING_S", 0.01)
    door = Door()
    async with bare(remit_in, door.tool, write) as it:
        body = call("door__pass")
        headers = await it.begin() if era == "legacy" else routed(body)
        async with it.http.stream("POST", it.url, headers=headers, json=body) as stream:
            lines = stream.aiter_lines()
            assert await anext(lines) == ": ping"
            door.open.set()
            assert [line async for line in lines if line.startswith("data")]
