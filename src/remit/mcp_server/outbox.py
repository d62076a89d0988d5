"""Messages to a client over HTTP, until the request or stream that it belongs to carries it there."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from remit.jsonrpc.message import RpcMessage

MANY: Final = 100
"""Messages beyond which the sender waits for a client that listens; without one the oldest are dropped."""


TOO_MANY: Final = 1_000
"""Messages beyond which notifications are lost: not everyone who speaks can wait."""


class Outbox:
    """Messages in their order (`remit.jsonrpc.transport.Transport`)."""

    __slots__ = ("_changed", "_open", "_room", "_said")

    def __init__(self) -> None:
        self._said: deque[RpcMessage] = deque()
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._open = False

    def send(self, message: RpcMessage) -> None:
        if len(self._said) >= TOO_MANY and message.method and message.request_id is None:
            return
        self._said.append(message)
        if len(self._said) > MANY:
            if self._open:
                self._room.clear()
            else:
                self._said.popleft()
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
        if len(self._said) <= MANY:
            self._room.set()
        return self._said.popleft() if self._said else None

    def wake(self, _: object = None) -> None:
        """Have who waits look around."""
        self._changed.set()

    async def changed(self) -> None:
        """Wait until there was something to look at."""
        await self._changed.wait()
        self._changed.clear()
