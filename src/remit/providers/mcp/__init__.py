"""The tools of MCP servers, through the official SDK's sessions over our own stdio transport."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability

CAPABILITIES: Final = (
    Capability(
        name="mcp",
        about="The tools of MCP servers.",
        providers="remit.providers.mcp.wiring:open_servers",
        modules=("mcp",),
        extra="mcp",
    ),
)
