"""Tools: the catalog as faces show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.gateway.readiness import Snapshot
from remit.policy.decision import Caller
from remit.policy.levels import exposed
from remit.service.views import ToolView
from remit.service.visible import OfferedTool, Visible, offered_tool, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from remit.gateway.services import Services
    from remit.policy.decision import CallerKind
    from remit.policy.rules import Outlook
    from remit.tools.catalog import Tool
    from remit.tools.meta import ToolMeta


class Tools:
    """The tools of this process."""

    def __init__(self, services: Services, principal: str) -> None:
        """Look at the catalog of `services`, and at what policy says to `principal`."""
        self._services = services
        self._caller = Caller(principal=principal, kind="session")
        self._catalog = services.catalog

    # --- queries

    async def views(self, patience_s: float | None = None) -> list[ToolView]:
        """The catalog, by name.

        Servers that are still connecting are waited for, but no longer than `patience_s` seconds.
        """
        tools = await self._catalog.tools(patience_s)
        return [self._view(tool) for tool in sorted(tools, key=lambda t: t.meta.name)]

    async def metas(self) -> list[ToolMeta]:
        """What providers say of their tools."""
        return [tool.meta for tool in await self._catalog.tools()]

    async def view(self, name: str) -> ToolView:
        """One tool by its full name, wire name, or a key that covers no other; also a quarantined one.

        Raises ResolveError.
        """
        known = await self._catalog.find(name)
        return self._view(known or (await self._catalog.resolve(name, {}))[0])

    async def visible(
        self,
        principal: str,
        *,
        kind: CallerKind = "session",
        only: tuple[str, ...] = (),
        patience_s: float | None = None,
    ) -> Visible:
        """The tools that a principal may use, with what a model is told of each; also those it may not use, marked.

        `only` are names or globs of the tools to look at; empty: all. Providers that are still connecting are waited
        for, but no longer than `patience_s` seconds.
        """
        tools = await self._catalog.tools(patience_s)
        return visible(tools, self._services, principal, kind, only, complete=not self._catalog.listing)

    async def known(self, name: str) -> OfferedTool | None:
        """A tool as last listed; None if the name is unknown."""
        tool = self._catalog.known(name)
        return offered_tool(tool, self._services, self._caller) if tool is not None else None

    async def find(self, name: str) -> OfferedTool | None:
        """A tool, once its provider has been listed; None if the name is unknown."""
        tool = await self._catalog.find(name)
        return offered_tool(tool, self._services, self._caller) if tool is not None else None

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Have `changed` called when tools of this process may have changed; the result ends that.

        For faces of this process: it does not go over a wire.
        """
        return self._catalog.watch(changed)

    async def failures(self, patience_s: float | None = None) -> dict[str, str]:
        """Why tools are missing, by the provider that could not be listed."""
        await self._catalog.tools(patience_s)
        return dict(self._catalog.failures)

    async def readiness(self) -> Snapshot:
        """Which dependencies of tools are ready."""
        return await self._services.readiness.snapshot()

    def _view(self, tool: Tool) -> ToolView:
        if exposed(tool.meta, self._services.limits.unprotected):
            return tool_view(tool, "denied")
        return tool_view(tool, self._services.policy.outlook(tool.meta, tool.key, self._caller))


def tool_view(tool: Tool, policy: Outlook) -> ToolView:
    """A tool as faces show it."""
    meta = tool.meta
    return ToolView(
        name=meta.name,
        key=tool.key,
        wire_name=tool.wire_name,
        provider_id=meta.provider_id,
        description=meta.description,
        capability_level=meta.capability_level.name,
        side_effects=meta.side_effects,
        idempotent=meta.idempotent,
        requires_confirm=meta.requires_confirm,
        policy=policy,
        timeout_ms=meta.timeout_ms,
        version=meta.version,
        contract_hash=tool.contract_hash,
        input_schema=meta.input_schema,
        output_schema=meta.output_schema,
        quarantined=tool.quarantined or "",
        remedy=tool.remedy,
        isolation=meta.isolation,
    )
