"""MCP servers that a server uses, and what is pinned of them."""

from __future__ import annotations

from typing import Final

from remit.api.routes.servers import ApproveBody
from remit.client.connection import Connection
from remit.client.person import only_oneself
from remit.service.mcp import ServerDiff, ServerEntry
from remit.tools.pins import Pin
from remit.tools.remote import RemoteStatus

_ASKED_S: Final = 120.0
"""Seconds that connecting a server may take: it may have to be installed first."""


class RemoteServers:
    """The MCP servers of a server; see ServersPort."""

    def __init__(self, connection: Connection) -> None:
        """Ask over `connection`."""
        self._connection = connection

    async def entries(self) -> list[ServerEntry]:
        """Every server that is used, by name; none is connected."""
        found: list[ServerEntry] = await self._connection.ask("servers.page")
        return found

    async def status(self, server: str) -> RemoteStatus:
        """Have it connected, and tell who answers."""
        found: RemoteStatus = await self._connection.ask("servers.status", server, held_s=_ASKED_S, repeatable=True)
        return found

    async def pin_of(self, server: str) -> Pin | None:
        """What was pinned last; None if nothing was."""
        found: Pin | None = await self._connection.ask("servers.pinned", server)
        return found

    async def pin(self, server: str, *, by: str = "") -> Pin:
        """Take the tools as they are now."""
        only_oneself(by)
        pinned: Pin = await self._connection.ask("servers.pin", server, held_s=_ASKED_S)
        return pinned

    async def diff(self, server: str) -> ServerDiff:
        """What changed since the pin, with the digest that an approval brings back."""
        found: ServerDiff = await self._connection.ask("servers.diff", server, held_s=_ASKED_S, repeatable=True)
        return found

    async def approve(self, server: str, shown: str, *, by: str = "") -> Pin:
        """Take the changes that were shown, by their digest."""
        only_oneself(by)
        body = ApproveBody(digest=shown)
        pinned: Pin = await self._connection.ask("servers.approve", server, body=body, held_s=_ASKED_S)
        return pinned
