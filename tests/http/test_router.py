from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from remit.http.access import Access, Scope
from remit.http.guard import LOOPBACK, Guard
from remit.http.router import REQUEST, Mount, Router
from remit.http.serving import listen, serve
from remit.http.token import Token, digest_of
from remit.testing.clock import ManualClock

pytestmark = pytest.mark.slow


class Echo:
    """Answers with its name, the path and who asks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.life: list[str] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.life.append("up")
        try:
            yield
        finally:
            self.life.append("down")

    def close_streams(self) -> None:
        self.life.append("hushed")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = f"{self.name} {scope['path']} {scope[REQUEST].access.principal}".encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def served(app: Router) -> AsyncIterator[tuple[str, int]]:
    stop = asyncio.Event()
    with listen("127.0.0.1", 0) as taken:
        task = asyncio.create_task(serve(app, taken, stop))
        port = taken.getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}", port
        finally:
            stop.set()
            await task


def token(scope: Scope) -> Token:
    return Token(digest_of(scope), Access(f"who may {scope}", frozenset({scope})))


async def test_a_request_goes_to_the_part_with_the_longest_path_in_the_name_of_its_token() -> None:
    short, long = Echo("short"), Echo("long")
    guard = Guard(LOOPBACK, [token("call"), token("read")], ManualClock())
    app = Router(guard, [Mount("/v1", short, "read"), Mount("/v1/tools", long, "call")])
    async with served(app) as (url, _), httpx2.AsyncClient(base_url=url) as client:

        async def get(path: str, token: str) -> tuple[int, str]:
            answer = await client.get(path, headers={"authorization": f"Bearer {token}"})
            return answer.status_code, answer.text

        assert await get("/v1", "read") == (200, "short /v1 who may read")
        assert await get("/v1/jobs", "read") == (200, "short /v1/jobs who may read")
        assert await get("/v1/tools/x", "call") == (200, "long /v1/tools/x who may call")
        assert (await get("/v1/tools/x", "read"))[0] == 403
        assert (await get("/v1tools", "read"))[0] == 404
        assert (await get("/v1", "wrong"))[0] == 401
        assert (await get("/nowhere", "wrong"))[0] == 401, "which paths there are is told to clients only"
    assert short.life == long.life == ["up", "hushed", "down"]


async def test_a_refusal_is_a_problem_with_its_code() -> None:
    app = Router(Guard(LOOPBACK, [], ManualClock()), [])
    async with served(app) as (url, _), httpx2.AsyncClient() as client:
        answer = await client.get(url)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["error_code"] == "PATH_UNKNOWN"


async def test_answers_are_sent_without_delay() -> None:
    """Nagle's algorithm holds a second answer back until the client acknowledges the first: 40 ms each."""
    app = Router(Guard(LOOPBACK, [], ManualClock()), [Mount("/", Echo("all"), "read")])
    async with served(app) as (url, port), httpx2.AsyncClient() as client:
        assert (await client.get(url)).status_code == 200
        kept = [
            each
            for each in gc.get_objects()
            if isinstance(each, socket.socket) and each.fileno() >= 0 and each.family == socket.AF_INET
        ]
        ours = [each for each in kept if each.getsockname()[1] == port and not _listens(each)]
        assert ours
        assert all(each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for each in ours)


def _listens(each: socket.socket) -> bool:
    return bool(each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def test_a_port_that_is_taken_raises_and_leaves_no_socket_open() -> None:
    with listen("127.0.0.1", 0) as taken, pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", taken.getsockname()[1])


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_an_ipv6_address_is_listened_at() -> None:
    try:
        listening = listen("::1", 0)
    except OSError as error:
        pytest.skip(f"no IPv6 loopback: {error}")
    with listening:
        assert listening.getsockname()[0] == "::1"
