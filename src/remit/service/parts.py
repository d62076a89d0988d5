"""The parts that the nouns of the service are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.capability import Capability
    from remit.gateway.pipeline import Gateway
    from remit.gateway.services import Services
    from remit.jobs.program import Programs
    from remit.jobs.skills import Skills
    from remit.journal.journal import Journal
    from remit.randomness import RandomSource
    from remit.settings import Settings
    from remit.settings.mcp import McpServer
    from remit.tools.catalog import Catalog
    from remit.tools.listings import ToolVersionRegistry
    from remit.tools.meta import ToolMeta
    from remit.tools.pins import Pins


class Worker(msgspec.Struct, frozen=True):
    """What works on jobs in this process."""

    wake: Callable[[], None]
    working: Callable[[], bool]
    """Tells whether it was started, and has not stopped since."""
    awaited: set[str] = msgspec.field(default_factory=set)
    """Streams of jobs that requests of this process wait for; it may work on these alone."""


class Parts(Protocol):
    """The parts of one process; each may be made when it is first asked for."""

    @property
    def journal(self) -> Journal:
        """The journal, in which everything is recorded."""
        ...

    @property
    def services(self) -> Services:
        """Return what the gateway works with."""
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
    def unlisted(self) -> tuple[ToolMeta, ...]:
        """The tools that rules may name and no catalog lists: those of agents, before one has used them."""
        ...

    @property
    def programs(self) -> Programs:
        """Return what jobs run."""
        ...

    @property
    def skills(self) -> Skills:
        """Return what knows the skills of this process."""
        ...

    @property
    def pins(self) -> Pins:
        """Return what MCP servers offered when they were first used."""
        ...

    @property
    def versions(self) -> ToolVersionRegistry:
        """Return what knows the versions of tools."""
        ...

    @property
    def settings(self) -> Settings:
        """All settings."""
        ...

    @property
    def chance(self) -> RandomSource:
        """The source of what is random."""
        ...

    @property
    def parts(self) -> tuple[Capability, ...]:
        """The parts that ship, and those that the settings name. Raises UsageError."""
        ...

    @property
    def servers(self) -> Sequence[McpServer]:
        """The MCP servers that the settings name."""
        ...
