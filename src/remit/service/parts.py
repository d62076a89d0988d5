"""What the nouns of the service are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.gateway.pipeline import Gateway
    from remit.gateway.services import Services
    from remit.jobs.program import Programs
    from remit.journal.journal import Journal
    from remit.settings.mcp import McpServer
    from remit.tickets.desk import Desk
    from remit.tools.catalog import Catalog
    from remit.tools.pins import Pins


class Parts(Protocol):
    """The parts of one process; each may be made when it is first asked for."""

    @property
    def journal(self) -> Journal:
        """Where everything is recorded."""
        ...

    @property
    def services(self) -> Services:
        """What the gateway works with."""
        ...

    @property
    def gateway(self) -> Gateway:
        """The one door for calls."""
        ...

    @property
    def catalog(self) -> Catalog:
        """All tools."""
        ...

    @property
    def programs(self) -> Programs:
        """What jobs run."""
        ...

    @property
    def pins(self) -> Pins:
        """What MCP servers offered when they were first used."""
        ...

    @property
    def desk(self) -> Desk:
        """What tickets work with."""
        ...

    @property
    def servers(self) -> Sequence[McpServer]:
        """The MCP servers that the settings name."""
        ...
