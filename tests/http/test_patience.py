"""Connections that bring nothing make room for those that do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from remit.http import server as patience
from remit.http.server import listen, serve
from tests.patience import PATIENCE_S

HALF = b"GET / HTTP/1.1\r\nhost: x\r\nx-half: "
WHOLE = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Application:
    """Answers at once, or once `held` is set."""

    def __init__(self, held: asyncio.Event | None) -> None:
        self.held = held
        self.asked = asyncio.Semaphore(0)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve within the block."""
        yield

    def close_streams(self) -> None:
        """There are none."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request (ASGI)."""
        self.asked.release()
        if self.held is not None:
            await self.held.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def served(app: Application, most: int) -> AsyncIterator[int]:
    """The port that it answers at."""
    stop = asyncio.Event()
    with listen("127.0.0.1", 0) as listening:
        running = asyncio.create_task(serve(app, listening, stop, most=most))
        try:
            yield listening.getsockname()[1]
        finally:
            stop.set()
            await running


async def opened(port: int, sent: bytes) -> Ends:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    await writer.drain()
    return reader, writer


async def status(ends: Ends) -> bytes:
    """The status of an answer; empty if the connection was closed."""
    try:
        return (await ends[0].readline()).partition(b" ")[2][:3]
    except ConnectionError:
        return b""


@pytest.mark.parametrize("sent", [HALF, b"", WHOLE], ids=["half a head", "nothing", "answered"])
async def test_the_oldest_connection_without_a_request_makes_room(sent: bytes) -> None:
    async with served(Application(None), 3) as port:
        idle = [await opened(port, sent) for _ in range(3)]
        if sent == WHOLE:
            assert [await status(one) for one in idle] == [b"204"] * 3
        newest = [await opened(port, WHOLE) for _ in range(2)]
        assert [await status(one) for one in newest] == [b"204"] * 2
        for reader, _ in idle[:2]:
            async with asyncio.timeout(PATIENCE_S):
                with suppress(ConnectionError):
                    await reader.read()  # to its end
        for _, writer in (*idle, *newest):
            writer.close()


async def test_a_request_under_way_is_left_alone() -> None:
    app = Application(asyncio.Event())
    async with served(app, 2) as port:
        busy = [await opened(port, WHOLE) for _ in range(2)]
        for _ in busy:
            await app.asked.acquire()
        refused = await opened(port, WHOLE)
        assert await status(refused) == b""
        assert app.held is not None
        app.held.set()
        assert [await status(one) for one in busy] == [b"204", b"204"]
        for _, writer in (*busy, refused):
            writer.close()


@pytest.mark.parametrize(("descriptors", "most"), [(1_024, 768), (100, 64), (1_000_000, 4_096), (-1, 4_096)])
def test_as_many_are_kept_as_there_are_descriptors_for(
    monkeypatch: pytest.MonkeyPatch, descriptors: int, most: int
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _kind: (descriptors, descriptors))
    assert patience._allowed() == most
