"""Progress of a call, on its way to the client."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from remit.mcp_server.peers import ClientPeer, Parked

_log: Final = logging.getLogger("remit.mcp")


class Progress:
    """Passes progress on to the client that asked for it, in order."""

    def __init__(self, peer: ClientPeer | Parked) -> None:
        """Tell `peer`."""
        self._peer = peer
        self._reports: list[tuple[float, float | None, str]] = []
        self._sender: asyncio.Task[None] | None = None
        self._ended = False

    def __call__(self, done: float | None, total: float | None, message: str) -> None:
        """Report; the client may be slow, the tool does not wait for it."""
        if done is None or self._ended:
            return
        self._reports.append((done, total, message))
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())

    async def end(self) -> None:
        """Wait until the client has all of it, and take no more: nothing may come after the answer."""
        self._ended = True
        if self._sender is not None:
            await self._sender

    async def _send(self) -> None:
        while self._reports:
            done, total, message = self._reports.pop(0)
            try:
                await self._peer.request.channel.progress(done, total, message or None)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                _log.debug("progress was not passed on: %r", error)
