"""The stand-in for an MCP server where the SDK is not installed: it has no tools, and says what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from remit.codes import Code
from remit.errors import ProviderError
from remit.tools.meta import ToolMeta
from remit.tools.provider import CallContext, ToolResult
from remit.tools.remote import Outage


class AbsentProvider:
    """The provider of a server that cannot be connected here."""

    def __init__(self, server: str, missing: str) -> None:
        """`missing` is the module that is not installed."""
        self.provider_id = f"mcp_{server}"
        self.dependency = f"mcp.{server}"
        self._why = f"{missing} is not installed: pip install 'remit[mcp]'"

    @property
    def reached(self) -> bool:
        """It never answers."""
        return False

    async def list_tools(self) -> Sequence[ToolMeta]:
        """Raises ProviderError."""
        self._refuse()

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:  # noqa: ARG002 - the port's signature
        """Raises ProviderError."""
        self._refuse()

    def outage(self) -> Outage:
        """It is never up."""
        return Outage(Code.SpawnFailed, self._why)

    async def close(self) -> None:
        """Nothing is open."""

    def _refuse(self) -> NoReturn:
        raise ProviderError(self._why, cause=Code.SpawnFailed)
