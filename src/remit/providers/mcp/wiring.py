"""From the configured servers to their providers, whether the extra that they may need is installed or not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from remit.codes import Code
from remit.errors import ProviderError
from remit.settings.places import login_folder
from remit.settings.principal import principal
from remit.tools.meta import ToolMeta
from remit.tools.provider import CallContext, ToolResult
from remit.tools.remote import Outage
from remit.tools.stub import StubProvider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.capability import Opening
    from remit.providers.mcp.oauth import ServerLogin
    from remit.settings.mcp import McpServer
    from remit.tools.meta import ToolMeta
    from remit.tools.pins import Pins
    from remit.tools.provider import ToolProvider


def open_servers(opening: Opening) -> list[ToolProvider]:
    """One for each MCP server, or what stands in for all of them.

    What they need is slow to import; a process without servers does not pay for it.
    """
    settings, servers = opening.settings, opening.servers
    if settings.tools.no_mcp:
        return [StubProvider(source=partial(_stand_ins, servers, opening.pins, settings.mcp.pins_file))]
    if not servers:
        return []
    try:
        # An extra, and slow to import.
        from remit.providers.mcp.enclosure import launch_of  # noqa: PLC0415 - as above
        from remit.providers.mcp.provider import McpProvider  # noqa: PLC0415 - as above

        login = _login(opening) if any(server.url for server in servers) else None
    except ModuleNotFoundError as error:
        return [AbsentProvider(server.name, error.name or "mcp") for server in servers]
    return [
        McpProvider(
            server,
            settings.mcp,
            opening.pins,
            clock=opening.clock,
            chance=opening.chance,
            login=login,
            launch=launch_of(server, opening.enclosures),
        )
        for server in servers
    ]


def _login(opening: Opening) -> ServerLogin:
    from remit.providers.mcp.oauth import ServerLogin  # noqa: PLC0415 - only a server over HTTP needs it

    by_url = opening.settings.sources["mcp.servers"] == "command line"
    who = principal(opening.settings)
    return ServerLogin(login_folder(os.environ), opening.authorizer, principal=who, by_url=by_url)


async def _stand_ins(servers: Sequence[McpServer], pins: Pins, file: str) -> list[ToolMeta]:
    from remit.providers.mcp.stand_ins import stand_ins  # noqa: PLC0415 - only a process without servers needs it

    return await stand_ins(servers, pins, file)


class AbsentProvider:
    """The provider of a server that cannot be connected here."""

    def __init__(self, server: str, missing: str) -> None:
        self.provider_id = f"mcp_{server}"
        self.dependency = f"mcp.{server}"
        self._reason = f"{missing} is not installed: pip install 'remit[mcp]'"

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
        return Outage(Code.SpawnFailed, self._reason)

    async def close(self) -> None:
        """Nothing is open."""

    def _refuse(self) -> NoReturn:
        raise ProviderError(self._reason, cause=Code.SpawnFailed)
