"""Tools: the catalog as faces show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from remit.codes import Code
from remit.gateway.readiness import ReadinessSnapshot
from remit.http.access import Access
from remit.http.problem import HttpProblem
from remit.operation import Patience, WireName, operation
from remit.policy.decision import Caller
from remit.policy.levels import exposed
from remit.policy.overlay import covers
from remit.record.views import ToolView
from remit.service.visible import OfferedTool, Visible, offered_tool, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from remit.gateway.services import Services
    from remit.policy.decision import CallerKind
    from remit.policy.rules import Outlook
    from remit.tools.catalog import Tool
    from remit.tools.meta import ToolMeta


def _covered(access: Access, tool: ToolView) -> bool:
    return not access.tools or covers(access.tools, tool.name, tool.key)


def _covered_tools(access: Access, tools: list[ToolView]) -> list[ToolView]:
    return [tool for tool in tools if _covered(access, tool)]


def _covered_tool(access: Access, tool: ToolView) -> ToolView:
    if not _covered(access, tool):
        raise HttpProblem(Code.UNKNOWN_TOOL)
    return tool


class ToolsNoun:
    """The tools of this process."""

    def __init__(self, services: Services, principal: str) -> None:
        self._services = services
        self._caller = Caller(principal=principal, kind="session")

    # --- queries

    @operation("tools.page", "GET /v1/tools", "read", "List tools.", visible=_covered_tools)
    async def views(self, patience_s: Patience = None) -> list[ToolView]:
        """List the tools, with their schemas, versions and what policy will do.

        They come by name. Servers that are still connecting are waited for, but no longer than `patience_s` seconds.
        """
        tools = await self._services.catalog.tools(patience_s)
        return [self._view(tool) for tool in sorted(tools, key=lambda t: t.meta.name)]

    async def metas(self) -> list[ToolMeta]:
        """Return what providers say of their tools."""
        return [tool.meta for tool in await self._services.catalog.tools()]

    @operation(
        "tools.view",
        "GET /v1/tools/{tool}",
        "read",
        "Show a tool.",
        codes=(Code.UNKNOWN_TOOL, Code.INVALID_TOOL_STEP, Code.TOOL_QUARANTINED),
        visible=_covered_tool,
    )
    async def view(self, name: Annotated[str, WireName("tool")]) -> ToolView:
        """Show one tool by its full name, key or wire name.

        The key covers no other tool. Also a quarantined one is shown. Raises ResolveError.
        """
        known = await self._services.catalog.find(name)
        return self._view(known or (await self._services.catalog.resolve(name, {}))[0])

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
        tools = await self._services.catalog.tools(patience_s)
        return visible(tools, self._services, principal, kind, only)

    async def known(self, name: str) -> OfferedTool | None:
        """A tool as last listed; None if the name is unknown."""
        tool = self._services.catalog.known(name)
        return offered_tool(tool, self._services, self._caller) if tool is not None else None

    async def find(self, name: str) -> OfferedTool | None:
        """A tool, once its provider has been listed; None if the name is unknown."""
        tool = await self._services.catalog.find(name)
        return offered_tool(tool, self._services, self._caller) if tool is not None else None

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Have `changed` called when tools of this process may have changed; the result ends that.

        For faces of this process: it does not go over a wire.
        """
        return self._services.catalog.watch(changed)

    @operation("tools.failures", "GET /v1/providers/failures", "read", "Say which providers cannot be listed.")
    async def failures(self, patience_s: Patience = None) -> dict[str, str]:
        """Say why tools are missing, by the provider that could not be listed."""
        await self._services.catalog.tools(patience_s)
        return dict(self._services.catalog.failures)

    async def unlike(self) -> dict[str, str]:
        """Return which tools give another form of result than one in whose place they came, and how it differs."""
        await self._services.catalog.tools()
        return dict(self._services.catalog.unlike)

    async def readiness(self) -> ReadinessSnapshot:
        """Return which dependencies of tools are ready."""
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
        unchecked=meta.unchecked,
    )
