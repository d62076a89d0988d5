"""The way of messages to a client over HTTP: an answer as JSON, or an event stream where there is more to say."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from remit.jsonrpc.message import error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Send

    from remit.jsonrpc.message import RpcMessage
    from remit.jsonrpc.protocol import RequestId

MANY: Final = 100
"""Messages beyond which the sender waits for a client that listens; without one the oldest are dropped."""


TOO_MANY: Final = 1_000
"""Messages beyond which notifications are lost: not everyone who speaks can wait."""


class Outbox:
    """Messages in their order (`remit.jsonrpc.message.Transport`)."""

    __slots__ = ("_changed", "_messages", "_open", "_room")

    def __init__(self) -> None:
        self._messages: deque[RpcMessage] = deque()
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._open = False

    def send(self, message: RpcMessage) -> None:
        if len(self._messages) >= TOO_MANY and message.method and message.request_id is None:
            return
        self._messages.append(message)
        if len(self._messages) > MANY:
            if self._open:
                self._room.clear()
            else:
                self._messages.popleft()
        self._changed.set()

    async def drained(self) -> None:
        await self._room.wait()

    # --- who carries it

    @property
    def open(self) -> bool:
        """Return whether it is carried to the client."""
        return self._open

    def listen(self) -> None:
        """It is carried from now on."""
        self._open = True

    def leave(self) -> None:
        """It is carried no more."""
        self._open = False
        self._room.set()

    def take(self) -> RpcMessage | None:
        """The next message."""
        if len(self._messages) <= MANY:
            self._room.set()
        return self._messages.popleft() if self._messages else None

    def wake(self, _: object = None) -> None:
        """Wake everyone who waits."""
        self._changed.set()

    async def changed(self) -> None:
        """Wait until there was something to look at."""
        await self._changed.wait()
        self._changed.clear()


Headers = Sequence[tuple[bytes, bytes]]
PING_S: Final = 15.0
"""Seconds of silence after which a stream says that it is still there, for proxies that would cut it off."""
_CANCELLED: Final = -32800
_PING: Final = b": ping\r\n\r\n"
_EVENTS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class McpExchange:
    """One HTTP request and all that is said in reply."""

    def __init__(self, outbox: Outbox, receive: Receive, send: Send, headers: Headers = ()) -> None:
        self._outbox = outbox
        self._receive = receive
        self._send = send
        self._headers = list(headers)
        self._streams = False
        self._left = False
        """Whether the client is gone."""

    async def answer(
        self, request_id: RequestId | None, serving: asyncio.Task[None] | None, statuses: Mapping[int, int]
    ) -> RpcMessage | None:
        """Say what comes until the answer, and that; None where the client left.

        A request whose `serving` ended without an answer was cancelled, and is told so: over HTTP something has to end
        it. `statuses` are those of HTTP for codes of errors.
        """
        if serving is not None:
            serving.add_done_callback(self._outbox.wake)
        async with self._carrying():
            while not self._left:
                while (message := self._outbox.take()) is not None:
                    if not message.method:
                        await self._end(message, statuses.get(message.error_code or 0, 200))
                        return message
                    await self._event(_framed(message))
                if serving is None or serving.done():
                    cancelled = error(request_id, {"code": _CANCELLED, "message": "Request cancelled"})
                    await self._end(cancelled, 200)
                    return cancelled
                await self._wait()
        return None

    async def stream(self, ended: asyncio.Event) -> None:
        """Say what comes until the client leaves, or until `ended`."""
        async with self._carrying():
            await self._begin()
            while not self._left and not ended.is_set():
                while (message := self._outbox.take()) is not None:
                    await self._event(_framed(message))
                await self._wait()
        await self._send({"type": "http.response.body", "body": b""})

    # --- listening

    @asynccontextmanager
    async def _carrying(self) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch())
        self._outbox.listen()
        try:
            yield
        finally:
            self._outbox.leave()
            watching.cancel()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._left = True
        self._outbox.wake()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(PING_S):
                await self._outbox.changed()
        except TimeoutError:
            await self._event(_PING)

    # --- speaking

    async def _begin(self) -> None:
        self._streams = True
        await self._send({"type": "http.response.start", "status": 200, "headers": [*_EVENTS, *self._headers]})
        await self._send({"type": "http.response.body", "body": b"", "more_body": True})

    async def _event(self, event: bytes) -> None:
        if not self._streams:
            await self._begin()
        await self._send({"type": "http.response.body", "body": event, "more_body": True})

    async def _end(self, message: RpcMessage, status: int) -> None:
        if self._streams:
            await self._send({"type": "http.response.body", "body": _framed(message)})
            return
        length = str(len(message.body)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", length), *self._headers]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": message.body})


def _framed(message: RpcMessage) -> bytes:
    return b"event: message\r\ndata: " + message.body + b"\r\n\r\n"
