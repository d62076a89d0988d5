"""Serving one client on stdin and stdout, in the era that its first request speaks."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from mcp.server.connection import Connection, NotifyOnlyOutbound
from mcp.server.runner import ServerRunner, aclose_shielded, serve_one
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from remit.errors import UsageError
from remit.jsonrpc.dispatcher import Dispatcher
from remit.jsonrpc.lines import Lines, LineTooLongError
from remit.jsonrpc.message import Message, error
from remit.jsonrpc.protocol import (
    INVALID_REQUEST,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    MCPError,
)
from remit.mcp_server.client import MAX_REQUEST_BYTES

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.shared.dispatcher import DispatchContext
    from mcp.shared.transport_context import TransportContext

    from remit.mcp_server.server import ToolServer

_CHUNK: Final = 256 * 1024


async def serve_stdio(face: ToolServer) -> None:
    """Serve until the client closes our stdin. Meanwhile whatever prints to stdout reaches stderr instead."""
    async with _standard_streams() as wire:
        conversation = _Conversation(face.server, wire.dispatcher)
        async with face.server.lifespan(face.server) as lifespan:
            await conversation.run(lifespan)


class _Conversation:
    """One client, whose first request decides the era for good."""

    def __init__(self, server: Server[Any], dispatcher: Dispatcher) -> None:
        self._server = server
        self._dispatcher = dispatcher
        self._modern: bool | None = None

    async def run(self, lifespan: Any) -> None:
        """Serve until the conversation ends."""
        connection = Connection.for_loop(self._dispatcher)
        runner = ServerRunner(self._server, connection, lifespan)
        outbound = NotifyOnlyOutbound(self._dispatcher)

        async def on_request(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> dict[str, Any]:
            enveloped = method != "initialize" and _enveloped(params)
            if self._modern is None:
                self._modern = enveloped
                self._dispatcher.may_ask = not enveloped
            if not self._modern:
                if enveloped:
                    raise MCPError(code=INVALID_REQUEST, message="this conversation began with the older protocol")
                return await runner.on_request(context, method, params)
            if method == "initialize":
                raise _too_late(params)
            route = classify_inbound_request({"method": method, "params": params})
            if isinstance(route, InboundLadderRejection):
                raise MCPError(code=route.code, message=route.message, data=route.data)
            one = Connection.from_envelope(
                route.protocol_version, route.client_info, route.client_capabilities, outbound=outbound
            )
            return await serve_one(self._server, context, method, params, connection=one, lifespan_state=lifespan)

        try:
            await self._dispatcher.run(on_request, runner.on_notify)
        finally:
            await aclose_shielded(connection)


class _Wire(asyncio.Protocol):
    """Our stdin and stdout as a wire of lines."""

    def __init__(self) -> None:
        self._lines = Lines(MAX_REQUEST_BYTES)
        self._writable = asyncio.Event()
        self._writable.set()
        self.out: asyncio.WriteTransport | None = None
        self.dispatcher = Dispatcher(self, inline=frozenset({"initialize"}), answers_invalid=True)

    def send(self, message: Message) -> None:
        if self.out is not None and not self.out.is_closing():
            self.out.write(message.body + b"\n")

    async def drained(self) -> None:
        await self._writable.wait()

    def data_received(self, data: bytes) -> None:
        try:
            for line in self._lines.feed(data):
                self.dispatcher.received(line)
        except LineTooLongError as why:
            self.send(error(None, {"code": INVALID_REQUEST, "message": str(why)}))
            self.dispatcher.close(str(why))

    def eof_received(self) -> None:
        self.dispatcher.close("the client closed our stdin")

    def connection_lost(self, exc: Exception | None) -> None:
        self._writable.set()
        self.dispatcher.close(f"the client is gone{f': {exc}' if exc else ''}")

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()


@asynccontextmanager
async def _standard_streams() -> AsyncIterator[_Wire]:
    """The wire over private copies of stdin and stdout; the numbers themselves lead elsewhere until we are done."""
    loop = asyncio.get_running_loop()
    sys.stdout.flush()
    taken = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    wire = _Wire()
    reading = writing = None
    try:
        try:
            writing, _ = await loop.connect_write_pipe(lambda: _Outwards(wire), os.fdopen(os.dup(taken[1]), "wb", 0))
            wire.out = writing
            reading, _ = await loop.connect_read_pipe(lambda: wire, os.fdopen(os.dup(taken[0]), "rb", 0))
        except ValueError as error:  # asyncio's word for a file
            remedy = "Have an MCP client start this command, or serve with --http."
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
    """What the writing half tells the wire."""

    def __init__(self, wire: _Wire) -> None:
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
    supported = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": str((params or {}).get("protocolVersion"))}
    return MCPError(
        code=UNSUPPORTED_PROTOCOL_VERSION, message="this conversation began with the newer protocol", data=supported
    )
