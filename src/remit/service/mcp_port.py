"""The port of MCP servers; see remit.service.ports."""

from __future__ import annotations

from typing import Protocol

from remit.service.mcp import ServerDiff, ServerEntry
from remit.tools.pins import Pin
from remit.tools.remote import RemoteStatus


class ServersPort(Protocol):
    """MCP servers, and what is pinned of them."""

    async def entries(self) -> list[ServerEntry]:
        """Every server that is used, by name; none is connected."""
        ...

    async def status(self, server: str) -> RemoteStatus:
        """Connect and tell who answers."""
        ...

    async def pin_of(self, server: str) -> Pin | None:
        """What was pinned last; None if nothing was."""
        ...

    async def pin(self, server: str, *, by: str = "") -> Pin:
        """Take the tools as they are now."""
        ...

    async def diff(self, server: str) -> ServerDiff:
        """What changed since the pin, with the digest that an approval brings back."""
        ...

    async def approve(self, server: str, shown: str, *, by: str = "") -> Pin:
        """Take the changes that were shown, by their digest."""
        ...
