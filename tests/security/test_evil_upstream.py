"""What a hostile server on HTTP replies: it leads nowhere else, and the call ends with a code (reviews s06)."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeAlias

import pytest
from mcp.client.auth import OAuthFlowError

from remit.codes import Code
from remit.errors import ProviderError
from remit.providers.mcp.oauth import LoginOrigins, ServerLogin
from remit.settings.mcp import McpServer
from remit.tools.remote import Authorized
from tests.gateway.world import opened
from tests.patience import PATIENCE_S
from tests.providers.mcp.authority import Authority
from tests.providers.mcp.test_oauth import Person
from tests.providers.mcp.world import World, tool, world

CAP = 200_000
TOKEN = "Bearer swordfish"


@pytest.fixture
async def mcp() -> AsyncIterator[World]:
    """A world for providers."""
    async with world() as made:
        yield made


Reply: TypeAlias = "Callable[[Upstream, asyncio.StreamWriter], Awaitable[None]] | bytes"


class Upstream:
    """A server that speaks bare HTTP and says to calls what a test wants; `inside` is a service that is not its own."""

    def __init__(self) -> None:
        self.reply: Reply = b""
        self.stream = b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n"
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.inside_heard: list[bytes] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._servers = [
            await asyncio.start_server(self._connected, "127.0.0.1", 0),
            await asyncio.start_server(self._inside, "127.0.0.1", 0),
        ]
        self.port, self.inside = (server.sockets[0].getsockname()[1] for server in self._servers)
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        return self

    async def __aexit__(self, *_exc: object) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _inside(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.inside_heard.append(await reader.read(1_000))
        writer.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client had enough
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        self.requests.append((first, headers))
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if first.startswith("GET"):
            writer.write(self.stream)
            return True
        message = json.loads(body) if body else {}
        method = message.get("method")
        if method == "tools/call":
            if isinstance(self.reply, bytes):
                writer.write(self.reply.replace(b"ID", str(message["id"]).encode()))
                return False
            await self.reply(self, writer)
            return False
        if method == "initialize":
            say(writer, message["id"], {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                        "serverInfo": {"name": "evil", "version": "1"}})  # fmt: skip
        elif method == "tools/list":
            say(writer, message["id"], {"tools": [tool("do")]})
        elif "id" in message:
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
        return True


def say(writer: asyncio.StreamWriter, number: object, result: object) -> None:
    writer.write(ok(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()))


def ok(body: bytes, kind: str = "application/json", more: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{more}content-length: {len(body)}\r\n\r\n".encode() + body


async def outcome_of(mcp: World, upstream: Upstream, **entry: Any) -> tuple[Code | None, str]:
    """What a call comes to."""
    headers = {"Authorization": TOKEN}
    provider = mcp.provider(
        mcp.server(name="web", url=upstream.url, era="legacy", level="L0", headers=headers, **entry),
        max_message_bytes=CAP,
    )
    async with asyncio.timeout(PATIENCE_S), opened(provider) as gate:
        outcome = await gate.call("mcp.web.do")
        await provider.close()
    return outcome.code, str(outcome)


EMPTY = ok(b'{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}').replace(b": 49", b": 48")
"""An answer to a request whose number has one digit."""
REDIRECTS = {
    "U01": (307, "http://127.0.0.1:{inside}/admin"),
    "U02": (308, "http://127.0.0.1:{inside}/admin"),
    "U03": (302, "http://127.0.0.1:{inside}/admin"),
    "U04": (307, "//127.0.0.1:{inside}/admin"),
    "U05": (307, "http://user:password@127.0.0.1:{port}/x"),
    "U06": (307, "http://localhost:{inside}/x"),
    "U07": (307, "file:///etc/passwd"),
    "U08": (307, "gopher://127.0.0.1:{inside}/"),
    "U09": (307, "http://127.0.0.1:{port}/mcp"),
    "U10": (307, "http://127.0.0.1:{port}/x\r\n X-Evil: 1"),
}


@pytest.mark.parametrize("name", REDIRECTS)
async def test_a_redirection_leads_to_no_other_service(mcp: World, name: str) -> None:
    status, place = REDIRECTS[name]
    async with Upstream() as upstream:
        place = place.format(inside=upstream.inside, port=upstream.port)
        upstream.reply = f"HTTP/1.1 {status} Elsewhere\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n".encode()
        code, said = await outcome_of(mcp, upstream)
        assert code in {Code.TOOL_EXEC_FAILED, Code.TOOL_UNAVAILABLE}
        assert upstream.inside_heard == []
        assert len(upstream.requests) < 30
        assert all("x-evil" not in headers for _, headers in upstream.requests)
        assert {headers.get("authorization") for _, headers in upstream.requests} <= {TOKEN, None}
        assert "root:" not in said
        assert "password" not in said


async def test_nor_does_one_of_the_event_stream(mcp: World) -> None:  # U11
    async with Upstream() as upstream:
        place = f"http://127.0.0.1:{upstream.inside}/x"
        upstream.stream = f"HTTP/1.1 302 Found\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n".encode()
        upstream.reply = EMPTY
        code, _ = await outcome_of(mcp, upstream)
        assert code is None
        assert upstream.inside_heard == []


async def dripping(_upstream: Upstream, writer: asyncio.StreamWriter) -> None:
    """Comments, and never an answer."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    for _ in range(100):
        writer.write(b"7\r\n: drip\n\r\n")
        await writer.drain()
    await asyncio.Event().wait()


async def flooding(_upstream: Upstream, writer: asyncio.StreamWriter) -> None:
    """An event without an end."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ")
    while True:
        writer.write(b"x" * 65_536)
        await writer.drain()


RESULT = b'{"jsonrpc":"2.0","id":3,"result":{"content":[]}}'
HEADER = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
FAILED = {Code.TOOL_EXEC_FAILED, Code.TOOL_UNAVAILABLE}
HOSTILE: dict[str, tuple[Reply, set[Code]]] = {
    "H01": (ok(gzip.compress(b"x" * 4_000_000), more="content-encoding: gzip\r\n"), FAILED),
    "H02": (dripping, {Code.TOOL_TIMEOUT}),
    "H03": (flooding, FAILED),
    "H04": ((HEADER + "".join(f"x-{one}: {'y' * 200}\r\n" for one in range(10_000)) + "\r\n").encode(), FAILED),
    "H05": (ok(RESULT)[:-5] + ok(RESULT), FAILED),
    "H06": ((HEADER + "content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n").encode(), FAILED),
    "H07": (ok(b"id: 1\nretry: 0\ndata:\n\n", "text/event-stream"), {*FAILED, Code.TOOL_TIMEOUT}),
    "H08": ((HEADER + "content-length: 99999999999999999999\r\n\r\n{}").encode(), FAILED),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_reply_that_is_an_attack_ends_the_call_and_nothing_else(mcp: World, name: str) -> None:
    reply, codes = HOSTILE[name]
    async with Upstream() as upstream:
        upstream.reply = reply
        more = {"timeout_ms": 200} if name in {"H02", "H07"} else {}
        code, _ = await outcome_of(mcp, upstream, **more)
        assert code in codes
        assert len(upstream.requests) < 60


async def test_a_cookie_and_an_odd_session_change_nothing(mcp: World) -> None:  # H09
    async with Upstream() as upstream:
        upstream.reply = EMPTY.replace(b"\r\n\r\n", b"\r\nset-cookie: a=b\r\nmcp-session-id: odd;id\r\n\r\n")
        code, _ = await outcome_of(mcp, upstream)
        assert code is None
        assert all("cookie" not in headers for _, headers in upstream.requests)


async def test_a_header_with_a_line_end_is_never_sent(mcp: World, monkeypatch: pytest.MonkeyPatch) -> None:  # H10
    monkeypatch.setenv("EVIL", "x\r\nX-Evil: 1")
    async with Upstream() as upstream:
        provider = mcp.provider(mcp.server(name="web", url=upstream.url, headers={"X-A": "${EVIL}"}))
        async with opened(provider) as gate:
            assert (await gate.call("mcp.web.do")).code is Code.MCP_REQUIRED_UNAVAILABLE
        assert upstream.requests == []


# --- OAuth


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("file:///etc/passwd", id="O04"),
        pytest.param("javascript:alert(1)", id="O05"),
        pytest.param("--help", id="O06"),
        pytest.param("http://127.0.0.1:9/a b$(touch x)", id="O07"),
    ],
)
async def test_a_browser_is_sent_to_the_server_s_own_pages_alone(mcp: World, tmp_path: Path, place: str) -> None:
    with pytest.raises(OAuthFlowError):
        LoginOrigins(McpServer(name="h", url="https://mcp.example/mcp", oauth={})).check(place, "authorization")
    async with Authority() as authority:
        authority.elsewhere = {"authorization": place}
        server = McpServer(name="hosted", url=authority.url, oauth={})
        person = Person()
        with suppress(ProviderError):  # what is no URL at all is passed over, and the login goes on at home
            await mcp.provider(server, login=ServerLogin(tmp_path, person)).list_tools()
        assert all(page.startswith(f"{authority.origin}/authorize?") for page in person.pages)


class Elsewhere(Person):
    """Comes back with a code of another program, in answer to nothing that we asked."""

    async def callback(self) -> Authorized:
        return Authorized("evil-code", "wrong-state")


async def test_a_code_that_comes_with_another_state_is_not_exchanged(mcp: World, tmp_path: Path) -> None:  # s10/O10
    async with Authority() as authority:
        server = McpServer(name="hosted", url=authority.url, oauth={})
        with pytest.raises(ProviderError):
            await mcp.provider(server, login=ServerLogin(tmp_path, Elsewhere())).list_tools()
        assert "/token" not in authority.asked
