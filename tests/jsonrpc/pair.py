"""Two dispatchers that talk to each other in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from remit.jsonrpc.dispatcher import Dispatcher
from remit.jsonrpc.inbound import Inbound, OnNotifyIntercept
from remit.jsonrpc.message import RpcMessage

Context = Inbound
Params = Mapping[str, Any] | None
Handler = Callable[[Context, str, Params], Awaitable[dict[str, Any]]]


async def echo(_context: Context, method: str, params: Params) -> dict[str, Any]:
    return {"method": method, "params": dict(params or {})}


class Transport:
    """Carries lines to a receiver, one turn of the loop later; keeps them."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.deliver: Callable[[bytes], None] = lambda _line: None
        self.free = asyncio.Event()
        self.free.set()

    def send(self, message: RpcMessage) -> None:
        assert b"\n" not in message.body
        self.sent.append(message.body)
        asyncio.get_running_loop().call_soon(self.deliver, message.body)

    async def drained(self) -> None:
        await self.free.wait()

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What was sent, decoded."""
        return [msgspec.json.decode(line) for line in self.sent]


class Side:
    """One side, which echoes unless told otherwise, and keeps what it is told."""

    def __init__(self, handle: Handler = echo, intercept: OnNotifyIntercept | None = None, **options: Any) -> None:
        self.wire = Transport()
        self.dispatcher = Dispatcher(self.wire, **options)
        self.handle = handle
        self.intercept = intercept
        self.told: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()

    async def run(self) -> None:
        await self.dispatcher.run(self._asked, self._told, self.intercept)

    async def ask(self, method: str = "echo", params: Params = None, **opts: Any) -> dict[str, Any]:
        return await self.dispatcher.send_raw_request(method, params, opts)  # type: ignore[arg-type] # a TypedDict

    async def _asked(self, context: Context, method: str, params: Params) -> dict[str, Any]:
        return await self.handle(context, method, params)

    async def _told(self, _context: Context, method: str, params: Params) -> None:
        self.told.put_nowait((method, dict(params or {})))


@asynccontextmanager
async def running(*sides: Side) -> AsyncIterator[None]:
    """Sides that run within the block; nothing of theirs is left after it."""
    before = asyncio.all_tasks()
    tasks = [asyncio.create_task(side.run()) for side in sides]
    await turns(1)
    try:
        yield
    finally:
        for side in sides:
            side.dispatcher.close("the test is over")
        await asyncio.gather(*tasks)
        for side in sides:
            assert side.dispatcher._waiting == {}
            assert side.dispatcher._progress == {}
            assert len(side.dispatcher._tasks) == 0
        assert asyncio.all_tasks() - before == set()


@asynccontextmanager
async def talking(client: Side, server: Side) -> AsyncIterator[None]:
    """Two sides connected to each other."""
    client.wire.deliver = server.dispatcher.received
    server.wire.deliver = client.dispatcher.received
    async with running(client, server):
        yield


async def turns(number: int = 5) -> None:
    """Let everything that is ready have its turn."""
    for _ in range(number):
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(turn.set_result, None)
        await turn


def line(**message: Any) -> bytes:
    """A message as a peer writes it."""
    return msgspec.json.encode({"jsonrpc": "2.0", **message})
