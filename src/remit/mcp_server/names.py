"""The names of tools towards clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from remit.service.visible import OfferedTool


class Names(Protocol):
    """Chooses what is shown, and under which name."""

    def shown(self, tool: OfferedTool) -> str | None:
        """The name a client sees; None for a tool that is not offered here."""
        ...

    def full(self, name: str) -> str:
        """Return what a name stands for that is not shown, or not yet: never a tool that is not offered here."""
        ...


class WireNames:
    """Every tool under its wire name, such as `mcp__github__create_issue` (contract: tickets, "Names")."""

    def shown(self, tool: OfferedTool) -> str | None:
        return tool.wire_name or None

    def full(self, name: str) -> str:
        return name


class OwnNames:
    """The tools of one MCP server under the names it gave them, for a client that knows it by these."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._provider_id = f"mcp_{server}"

    def shown(self, tool: OfferedTool) -> str | None:
        definition = tool.definition
        if tool.provider_id != self._provider_id or definition is None:
            return None
        name = definition.get("name")
        return name if isinstance(name, str) else None

    def full(self, name: str) -> str:
        return f"mcp.{self._server}.{name}"
