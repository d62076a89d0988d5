"""Serving one client on stdin and stdout, in the era that its first request speaks."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from remit.errors import UsageError
from remit.jsonrpc.dispatcher import Dispatcher
from remit.jsonrpc.lines import Lines, LineTooLongError
from remit.jsonrpc.message import Message, error
from remit.jsonrpc.protocol import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    MCPError,
)
from remit.mcp_server.client import MAX_REQUEST_BYTES
from remit.mcp_server.conversation import Conversation, Envelope
from remit.mcp_server.only_client import OnlyClient

if TYPE_CHECKING:
    from remit.jsonrpc.inbound import Inbound
    from remit.mcp_server.server import ToolServer

T = TypeVar("T")
STARTING_S: Final = 150.0
"""Seconds that a client which has said all waits for servers that start: more than any of them is given for that."""
LAST_WORDS_S: Final = 5.0
"""Seconds that a client has to ask something, where all it will hear is why it is not served."""
_FLUSH_S: Final = 1.0
"""Seconds that a client has to read the last answers."""
_GONE: Final = "the client closed our stdin"


class ClientGoneError(Exception):
    """The client closed our stdin before it could be served."""


async def serve_stdio(face: ToolServer, wire: LineWire) -> None:
    """Serve until the client closes our stdin; what it asked before is answered."""
    await OneClient(face, wire.dispatcher, wire.client).run()


class OneClient:
    """One client, whose first request decides the era for good."""

    def __init__(self, face: ToolServer, dispatcher: Dispatcher, client: OnlyClient | None = None) -> None:
        self._face = face
        self._client = client
        self._dispatcher = dispatcher
        self._modern: bool | None = None

    async def run(self) -> None:
        """Serve until the conversation ends."""
        older = Conversation(self._face, self._dispatcher)

        async def on_request(context: Inbound, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
            enveloped = method != "initialize" and _enveloped(params)
            if self._modern is None:
                self._modern = enveloped
                self._dispatcher.may_ask = not enveloped
            if not self._modern:
                if enveloped:
                    raise MCPError(code=INVALID_REQUEST, message="this conversation began with the older protocol")
                return await older.on_request(context, method, params)
            if method == "initialize":
                raise _too_late(params)
            return await self._face.answer(Envelope.of(params).request(context, method, params))

        async def on_notify(context: Inbound, method: str, params: Mapping[str, Any] | None) -> None:
            await older.on_notify(context, method, params)
            if self._client is not None:
                self._client.notified(method)

        try:
            await self._dispatcher.run(on_request, on_notify)
        finally:
            older.close()


class LineWire(asyncio.Protocol):
    """A wire of lines: our stdin and stdout, or a socket."""

    def __init__(self) -> None:
        self._lines = Lines(MAX_REQUEST_BYTES)
        self._writable = asyncio.Event()
        self._writable.set()
        self.out: asyncio.WriteTransport | None = None
        self._over = False
        self._patience_s = 0.0
        self.ended = asyncio.Event()
        """Set once the client says nothing any more."""
        self.dispatcher = Dispatcher(
            self, inline=frozenset({"initialize"}), lasting=frozenset({"subscriptions/listen"}), answers_invalid=True
        )
        self.client = OnlyClient(self.dispatcher)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):  # a socket goes both ways
            self.out = transport
            if self._over:
                transport.close()

    def send(self, message: Message) -> None:
        if self.out is not None and not self.out.is_closing():
            self.out.write(message.body + b"\n")

    async def drained(self) -> None:
        await self._writable.wait()

    def close(self) -> None:
        """Let go of a client that has not left; of one that is about to be connected, too."""
        self._over = True
        if self.out is not None:
            self.out.close()

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        try:
            for line in self._lines.feed(data):
                self.client.hears(line)
                self.dispatcher.received(line)
        except LineTooLongError as why:
            self.send(error(None, {"code": INVALID_REQUEST, "message": str(why)}))
            self.dispatcher.close(str(why))

    def eof_received(self) -> None:
        """End the conversation."""
        self.dispatcher.close(_GONE)

    def connection_lost(self, exc: Exception | None) -> None:
        self._writable.set()
        self.client.left()
        self.dispatcher.close(f"the client is gone{f': {exc}' if exc else ''}")

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def end_input(self) -> None:
        """End the conversation once what the client asked is answered, as far as there is patience."""
        self.ended.set()
        self.client.left()
        self.dispatcher.finish(_GONE, self._patience_s)

    def wait(self, patience_s: float) -> None:
        """Give what the client asked `patience_s` after the end of its input, or from now on if it has ended."""
        self._patience_s = patience_s
        if self.ended.is_set():
            self.end_input()

    async def while_there(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which is given up when the client goes. Raises ClientGoneError."""
        task, gone = asyncio.ensure_future(work), asyncio.ensure_future(self.dispatcher.closed())
        try:
            await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ClientGoneError
            return task.result()
        finally:
            task.cancel()
            gone.cancel()
            await asyncio.wait([task, gone])

    async def refuse(self, why: str) -> None:
        """Answer with an error what the client asks, up to its first request."""
        asked = asyncio.Event()

        async def on_request(_context: Inbound, _method: str, _params: Mapping[str, Any] | None) -> dict[str, Any]:
            asked.set()
            raise MCPError(code=INTERNAL_ERROR, message=why)

        async def on_notify(_context: Inbound, _method: str, _params: Mapping[str, Any] | None) -> None:
            pass

        self.dispatcher.start(on_request, on_notify)
        with suppress(TimeoutError, ClientGoneError):
            async with asyncio.timeout(LAST_WORDS_S):
                await self.while_there(asked.wait())
        self.dispatcher.finish(why, LAST_WORDS_S)
        await self.dispatcher.closed()


@asynccontextmanager
async def standard_streams() -> AsyncIterator[LineWire]:
    """The wire over private copies of stdin and stdout; the numbers themselves lead elsewhere until we are done.

    So whatever prints to stdout reaches stderr instead. From the beginning on the wire hears when the client goes; what
    it asked before may wait for servers that start.
    """
    loop = asyncio.get_running_loop()
    sys.stdout.flush()
    taken = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    wire, inwards, outwards = LineWire(), None, None
    wire.wait(STARTING_S)
    try:
        try:
            outwards = _Outwards(wire)
            await loop.connect_write_pipe(lambda: outwards, os.fdopen(os.dup(taken[1]), "wb", 0))
            inwards = _Inwards(wire)
            if os.path.samestat(os.fstat(taken[0]), os.stat(os.devnull)):  # noqa: PTH116 - beside a number
                inwards.eof_received()  # no event loop can wait for it
            else:
                await loop.connect_read_pipe(lambda: inwards, os.fdopen(os.dup(taken[0]), "rb", 0))
        except ValueError as error:  # asyncio's word for a file
            remedy = "Let an MCP client start this command, or use --http."
            raise UsageError("stdin and stdout are not those of an MCP client", remedy=remedy) from error
        yield wire
    finally:
        if inwards is not None:
            inwards.close()
        if outwards is not None:
            await outwards.close()
        sys.stdout.flush()
        for number, copy in enumerate(taken):
            os.dup2(copy, number)
            os.close(copy)


class _Inwards(asyncio.Protocol):
    """The reading half of a wire."""

    def __init__(self, wire: LineWire) -> None:
        self._wire = wire
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._wire.data_received(data)

    def eof_received(self) -> None:
        self._wire.end_input()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self._wire.connection_lost(exc)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class _Outwards(asyncio.BaseProtocol):
    """The writing half of a wire."""

    def __init__(self, wire: LineWire) -> None:
        self._wire = wire
        self._ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            self._wire.out = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set()
        self._wire.connection_lost(exc)

    def pause_writing(self) -> None:
        self._wire.pause_writing()

    def resume_writing(self) -> None:
        self._wire.resume_writing()

    async def close(self) -> None:
        """End it once the client has read what was written, within `_FLUSH_S`."""
        out = self._wire.out
        if out is None:
            return
        out.close()
        try:
            async with asyncio.timeout(_FLUSH_S):
                await self._ended.wait()
        except TimeoutError:
            out.abort()


def _enveloped(params: Mapping[str, Any] | None) -> bool:
    """Return whether a request is of 2026-07-28 or later: only these carry their protocol version."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, Mapping) and PROTOCOL_VERSION_META_KEY in meta


def _too_late(params: Mapping[str, Any] | None) -> MCPError:
    supported = {"supported": list(MODERN_VERSIONS), "requested": str((params or {}).get("protocolVersion"))}
    return MCPError(
        code=UNSUPPORTED_PROTOCOL_VERSION, message="this conversation began with the newer protocol", data=supported
    )
