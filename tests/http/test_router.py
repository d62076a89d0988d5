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
from remit.http.guard import LOOPBACK, Guard, Token, digest_of
from remit.http.router import REQUEST, PartMount, Router
from remit.http.server import listen, serve
from remit_testing.clock import ManualClock

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
    app = Router(guard, [PartMount("/v1", short, "read"), PartMount("/v1/tools", long, "call")])
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
    app = Router(Guard(LOOPBACK, [], ManualClock()), [PartMount("/", Echo("all"), "read")])
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


async def _sent(port: int, *lines: str) -> tuple[int, dict[str, str]]:
    """The status of the answer to a request that no client library would make, and its headers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write("\r\n".join([*lines, "connection: close", "", ""]).encode())
    head = (await reader.read()).partition(b"\r\n\r\n")[0].decode().split("\r\n")
    writer.close()
    pairs = [line.partition(": ") for line in head[1:]]
    return int(head[0].split()[1]), {name.lower(): value for name, _, value in pairs}


@pytest.mark.parametrize(
    "twice",
    [
        ("host: 127.0.0.1", "host: 127.0.0.1"),
        ("host: elsewhere.example", "host: 127.0.0.1"),
        ("host: 127.0.0.1", "origin: https://elsewhere.example", "origin: http://127.0.0.1"),
        ("host: 127.0.0.1", "authorization: Bearer wrong", "authorization: Bearer call"),
        ("host: 127.0.0.1", "content-type: text/plain", "Content-Type: application/json"),
        ("host: 127.0.0.1", "cookie: a=b", "cookie: c=d"),
        ("host: 127.0.0.1", "idempotency-key: a", "idempotency-key: b"),
    ],
    ids=lambda lines: lines[-1].partition(":")[0],
)
async def test_a_header_that_has_one_value_is_not_taken_twice(twice: tuple[str, ...]) -> None:
    app = Router(Guard(LOOPBACK, [], ManualClock()), [PartMount("/", Echo("all"), None)])
    async with served(app) as (_, port):
        assert (await _sent(port, "GET / HTTP/1.1", *twice))[0] == 400
        assert (await _sent(port, "GET / HTTP/1.1", "host: 127.0.0.1", "accept: a/b", "accept: c/d"))[0] == 200


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://127.0.0.1/x", "127.0.0.1", 200),
        ("http://127.0.0.1/x", "elsewhere.example", 200),
        ("http://elsewhere.example/x", "127.0.0.1", 421),
        ("HTTP://elsewhere.example:80/x", "127.0.0.1", 421),
        ("http://a@127.0.0.1/x", "127.0.0.1", 421),
    ],
)
async def test_the_host_of_a_whole_url_counts_more_than_the_header(target: str, host: str, status: int) -> None:
    app = Router(Guard(LOOPBACK, [], ManualClock()), [PartMount("/", Echo("all"), None)])
    async with served(app) as (_, port):
        assert (await _sent(port, f"GET {target} HTTP/1.1", f"host: {host}"))[0] == status


async def test_no_answer_is_kept_by_a_cache_or_taken_for_another_media_type() -> None:
    guard = Guard(LOOPBACK, [token("call")], ManualClock())
    app = Router(guard, [PartMount("/v1", Echo("all"), "call")])
    async with served(app) as (url, _), httpx2.AsyncClient(base_url=url) as client:
        for bearer, status in (("call", 200), ("wrong", 401)):
            answer = await client.get("/v1", headers={"authorization": f"Bearer {bearer}"})
            kept = (answer.headers["cache-control"], answer.headers["x-content-type-options"])
            assert (answer.status_code, *kept) == (status, "no-store", "nosniff")


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
