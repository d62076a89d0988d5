"""Serving one client on stdin and stdout, in the era that its first request speaks."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from remit.errors import UsageError
from remit.jsonrpc.dispatcher import Dispatcher
from remit.jsonrpc.lines import Lines, LineTooLongError
from remit.jsonrpc.message import Message, error
from remit.jsonrpc.protocol import (
    INVALID_REQUEST,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    MCPError,
)
from remit.mcp_server.client import MAX_REQUEST_BYTES
from remit.mcp_server.conversation import Envelope

if TYPE_CHECKING:
    from remit.jsonrpc.inbound import Inbound
    from remit.mcp_server.conversation import Answering
    from remit.mcp_server.server import ToolServer

_CHUNK: Final = 256 * 1024


async def serve_stdio(face: ToolServer) -> None:
    """Serve until the client closes our stdin. Meanwhile whatever prints to stdout reaches stderr instead."""
    async with _standard_streams() as wire, face.answering() as answering:
        await OneClient(answering, wire.dispatcher).run()


class OneClient:
    """One client, whose first request decides the era for good."""

    def __init__(self, answering: Answering, dispatcher: Dispatcher) -> None:
        self._answering = answering
        self._dispatcher = dispatcher
        self._modern: bool | None = None

    async def run(self) -> None:
        """Serve until the conversation ends."""
        older = self._answering.converse(self._dispatcher)

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
            envelope = Envelope.of({"method": method, "params": params})
            return await self._answering.answer(envelope, context, method, params, self._dispatcher)

        try:
            await self._dispatcher.run(on_request, older.on_notify)
        finally:
            await older.close()


class LineWire(asyncio.Protocol):
    """A wire of lines: our stdin and stdout, or a socket."""

    def __init__(self) -> None:
        self._lines = Lines(MAX_REQUEST_BYTES)
        self._writable = asyncio.Event()
        self._writable.set()
        self.out: asyncio.WriteTransport | None = None
        self._over = False
        self.dispatcher = Dispatcher(self, inline=frozenset({"initialize"}), answers_invalid=True)

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
                self.dispatcher.received(line)
        except LineTooLongError as why:
            self.send(error(None, {"code": INVALID_REQUEST, "message": str(why)}))
            self.dispatcher.close(str(why))

    def eof_received(self) -> None:
        """End the conversation."""
        self.dispatcher.close("the client closed our stdin")

    def connection_lost(self, exc: Exception | None) -> None:
        self._writable.set()
        self.dispatcher.close(f"the client is gone{f': {exc}' if exc else ''}")

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()


@asynccontextmanager
async def _standard_streams() -> AsyncIterator[LineWire]:
    """The wire over private copies of stdin and stdout; the numbers themselves lead elsewhere until we are done."""
    loop = asyncio.get_running_loop()
    sys.stdout.flush()
    taken = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    wire = LineWire()
    reading = writing = None
    try:
        try:
            writing, _ = await loop.connect_write_pipe(lambda: _Outwards(wire), os.fdopen(os.dup(taken[1]), "wb", 0))
            wire.out = writing
            reading, _ = await loop.connect_read_pipe(lambda: wire, os.fdopen(os.dup(taken[0]), "rb", 0))
        except ValueError as error:  # asyncio's word for a file
            remedy = "Let an MCP client start this command, or use --http."
            raise UsageError("stdin and stdout are not those of an MCP client", remedy=remedy) from error
        yield wire
    finally:
        for transport in (reading, writing):
            if transport is not None:
                transport.close()
        sys.stdout.flush()
        for number, copy in enumerate(taken):
            os.dup2(copy, number)
            os.close(copy)


class _Outwards(asyncio.BaseProtocol):
    """The words that the writing half tells the wire."""

    def __init__(self, wire: LineWire) -> None:
        self._wire = wire

    def connection_lost(self, exc: Exception | None) -> None:
        self._wire.connection_lost(exc)

    def pause_writing(self) -> None:
        self._wire.pause_writing()

    def resume_writing(self) -> None:
        self._wire.resume_writing()


def _enveloped(params: Mapping[str, Any] | None) -> bool:
    """Whether a request is of 2026-07-28 or later: only these carry their protocol version."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, Mapping) and PROTOCOL_VERSION_META_KEY in meta


def _too_late(params: Mapping[str, Any] | None) -> MCPError:
    supported = {"supported": list(MODERN_VERSIONS), "requested": str((params or {}).get("protocolVersion"))}
    return MCPError(
        code=UNSUPPORTED_PROTOCOL_VERSION, message="this conversation began with the newer protocol", data=supported
    )
