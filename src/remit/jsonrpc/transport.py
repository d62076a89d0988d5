"""Where messages go: a pipe, or HTTP."""

from __future__ import annotations

from typing import Protocol

from remit.jsonrpc.message import Message


class Transport(Protocol):
    """Takes messages to the peer."""

    def send(self, message: Message) -> None:
        """Take a message; never fails, never waits."""
        ...

    async def drained(self) -> None:
        """Wait while the other side is too slow to take more."""
        ...
