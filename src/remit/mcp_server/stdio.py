"""Serving one client on stdin and stdout, in the era that its first request speaks.

The one client of a process on stdio, as the servers behind it know it: by what it declared, and outside of calls.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from remit.errors import UsageError
from remit.jsonrpc.dispatcher import Dispatcher
from remit.jsonrpc.message import RpcMessage, UnreadableMessageError, error, read
from remit.jsonrpc.protocol import (
    CLIENT_CAPABILITIES_META_KEY,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    MCPError,
)
from remit.jsonrpc.stream import LineReader, LineTooLongError
from remit.mcp_server.conversation import ClientConversation, RequestEnvelope
from remit.mcp_server.request import MAX_REQUEST_BYTES
from remit.tasks import Tasks
from remit.tools.peer import CAPABILITY, PeerError, Requests

if TYPE_CHECKING:
    from remit.jsonrpc.inbound import Inbound
    from remit.mcp_server.server import ToolServer


READY_S: Final = 3.0
"""Seconds that a question waits for a client that is not served yet: some servers list no tools before its answer."""
_ROOTS_CHANGED: Final = "notifications/roots/list_changed"


class OnlyClient:
    """Is told by its wire what it says first, and is asked back over it once it is served."""

    meta: Mapping[str, Any] = {}
    attached: Mapping[str, Any] = {}
    deferred = False
    assertion = None

    def __init__(self, conversation: Dispatcher) -> None:
        self._conversation = conversation
        self._declared: Mapping[str, Any] | None = None
        self._spoke, self._served = asyncio.Event(), asyncio.Event()
        self._gone = self._refused = False
        """Return whether it left, and whether a question was given up before it was served."""
        self._listeners: list[Callable[[], None]] = []
        self._telling = Tasks()

    # --- the wire's side

    def hears(self, line: bytes) -> None:
        """Read what it declares from its first request, in whichever era."""
        if self._spoke.is_set():
            return
        try:
            message = read(line)
        except UnreadableMessageError:
            return  # the dispatcher says so
        params = message.get("params") if isinstance(message, dict) and "id" in message else None
        if isinstance(params, dict):
            meta = params.get("_meta")
            capabilities = params.get("capabilities") if message.get("method") == "initialize" else None
            capabilities = (
                meta.get(CLIENT_CAPABILITIES_META_KEY)
                if capabilities is None and isinstance(meta, dict)
                else capabilities
            )
            self._declared = capabilities if isinstance(capabilities, dict) else None
            self._spoke.set()

    def left(self) -> None:
        """It says nothing any more."""
        self._gone = True
        self._spoke.set()
        self._served.set()

    def notified(self, method: str) -> None:
        """Take a notification of it (before 2026-07-28)."""
        if method == "notifications/initialized":
            self._served.set()
        if method == _ROOTS_CHANGED or (method == "notifications/initialized" and self._refused):
            for listener in self._listeners:
                listener()

    # --- the servers' side

    async def declared(self) -> Mapping[str, Any] | None:
        await self._spoke.wait()
        return self._declared

    async def served(self) -> bool:
        try:
            async with asyncio.timeout(READY_S):
                await self._served.wait()
        except TimeoutError:
            self._refused = True
        return self._served.is_set()

    def subscribe(self, changed: Callable[[], None]) -> None:
        self._listeners.append(changed)

    def given(self, invocation_id: str, result: Mapping[str, Any]) -> None:
        """Return nothing: it is asked within calls alone."""

    def can(self, method: str) -> bool:
        declared = CAPABILITY[method] in (self._declared or {}) if method in CAPABILITY else self._conversation.may_ask
        return self._served.is_set() and not self._gone and declared

    def defer(self, message: str) -> bool:  # noqa: ARG002 - of the port
        return False

    async def ask(self, requests: Requests) -> dict[str, dict[str, Any]]:
        try:
            return {
                key: await self._conversation.send_raw_request(request["method"], request["params"])
                for key, request in requests.items()
            }
        except MCPError as error:
            raise PeerError(error.message) from error

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        if self._served.is_set():
            self._telling.begin(self._conversation.notify(method, params))


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
        older = ClientConversation(self._face, self._dispatcher)

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
            return await self._face.answer(RequestEnvelope.of(params).request(context, method, params))

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
        self._lines = LineReader(MAX_REQUEST_BYTES)
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

    def send(self, message: RpcMessage) -> None:
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
        except LineTooLongError as fault:
            self.send(error(None, {"code": INVALID_REQUEST, "message": str(fault)}))
            self.dispatcher.close(str(fault))

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

    async def refuse(self, reason: str) -> None:
        """Answer with an error what the client asks, up to its first request."""
        event = asyncio.Event()

        async def on_request(_context: Inbound, _method: str, _params: Mapping[str, Any] | None) -> dict[str, Any]:
            event.set()
            raise MCPError(code=INTERNAL_ERROR, message=reason)

        async def on_notify(_context: Inbound, _method: str, _params: Mapping[str, Any] | None) -> None:
            pass

        self.dispatcher.start(on_request, on_notify)
        with suppress(TimeoutError, ClientGoneError):
            async with asyncio.timeout(LAST_WORDS_S):
                await self.while_there(event.wait())
        self.dispatcher.finish(reason, LAST_WORDS_S)
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
