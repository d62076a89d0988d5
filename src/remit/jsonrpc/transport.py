"""Where messages go: a pipe, or HTTP."""

from __future__ import annotations

from typing import Protocol

from remit.jsonrpc.message import RpcMessage


class Transport(Protocol):
    """Takes messages to the peer."""

    def send(self, message: RpcMessage) -> None:
        """Take a message; never fails, never waits."""
        ...

    async def drained(self) -> None:
        """Wait while the other side is too slow to take more."""
        ...
