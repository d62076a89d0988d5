"""The offer to each client: the tools that policy may let it use, worded and named as their owners did.

It is remembered until the catalog changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from remit.mcp_server.definition import fitting
from remit.mcp_server.search import OURS, definitions_of, source_of
from remit.policy.overlay import covers

if TYPE_CHECKING:
    from remit.mcp_server.search import ToolIndex
    from remit.service.tools import ToolsNoun
    from remit.service.visible import OfferedTool, Visible


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


_log: Final = logging.getLogger("remit.mcp")


class OfferView(msgspec.Struct, frozen=True):
    """The offer of one moment to one principal."""

    definitions: tuple[dict[str, Any], ...]
    """As `tools/list` answers since 2026-07-28, by name; see `for_older`."""
    hidden: tuple[dict[str, Any], ...]
    """Those of tools that are found by a search instead."""
    tools: dict[str, str]
    """Full names by the names that are shown; also of tools that are not offered, so that a call is told why."""
    providers: dict[str, bool] = {}
    """Whether a provider offers any tool, by its id; those without tools are left out."""
    unlisted: frozenset[str] = frozenset()
    """Ids of providers whose tools are not known."""

    def schema(self, shown: str) -> dict[str, Any] | None:
        """The input schema of a tool."""
        offered = (*self.definitions, *self.hidden)
        return next((each["inputSchema"] for each in offered if each["name"] == shown), None)


def view_of(visible: Visible, names: Names, listed: Sequence[str] | None) -> OfferView:
    """The offer of the visible tools; left out is what the principal may not use, and what the protocol cannot carry.

    `listed` names the tools that are in the list beside those that find and call the others; None: all are.
    """
    definitions: dict[str, dict[str, Any]] = {}
    hidden: dict[str, str] = {}
    full: dict[str, str] = {}
    providers: dict[str, bool] = {}
    for tool in visible.tools:
        providers[tool.provider_id] = providers.get(tool.provider_id, False) or tool.offered
        shown = names.shown(tool)
        if shown is None or shown in full:
            continue
        full[shown] = tool.name
        if not tool.offered:
            continue
        schema = tool.input_schema
        if schema is None or schema.get("type") != "object":
            _log.warning("%s is not offered to MCP clients: the root of its schema is not an object", tool.name)
            continue
        if listed is not None and not _stays(tool, shown, listed):
            hidden[shown] = source_of(tool)
        definitions[shown], omitted = fitting(_definition(tool, shown, schema))
        if omitted:
            _log.warning("%s is shown to MCP clients without its %s", tool.name, ", ".join(omitted))
    in_list = [definitions[name] for name in sorted(definitions) if name not in hidden]
    if listed is not None:
        in_list = [*definitions_of(hidden.values()), *in_list]
    return OfferView(
        tuple(in_list), tuple(definitions[name] for name in sorted(hidden)), full, providers, visible.unlisted
    )


def _stays(tool: OfferedTool, shown: str, listed: Sequence[str]) -> bool:
    """Return whether a tool is in the list although others have to be found; none can be where ours are."""
    return shown not in OURS and (covers(listed, tool.name, tool.key) or covers(listed, shown, shown))


def _definition(tool: OfferedTool, shown: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A tool's definition: its owner's, under the name that is shown; ours is made from what the catalog knows."""
    if tool.definition is not None:
        return {**tool.definition, "name": shown}
    definition: dict[str, Any] = {"name": shown, "description": tool.description, "inputSchema": schema}
    if tool.output_schema is not None and tool.output_schema.get("type") == "object":
        definition["outputSchema"] = tool.output_schema
    definition["annotations"] = tool.annotations
    return definition


PATIENCE_S: Final = 10.0
"""Seconds a client waits for servers that are still connecting before it is shown what there is so far."""


class Viewer(NamedTuple):
    """Whom a view is for."""

    principal: str
    only: tuple[str, ...] = ()
    """Names or globs of the tools that its token covers; empty: all."""
    listed: tuple[str, ...] | None = None
    """Names or globs of the tools in its list, if it finds the others by a search; None: all."""


class Views:
    """The views of all clients."""

    def __init__(self, tools: ToolsNoun, names: Names) -> None:
        self._tools = tools
        self._names = names
        self._views: dict[Viewer, OfferView] = {}
        self._indexes: dict[Viewer, tuple[OfferView, ToolIndex]] = {}
        self._generation = 0

    async def of(self, viewer: Viewer, patience_s: float) -> OfferView:
        """Return what a client is offered; of servers that are still connecting, only what is known so far."""
        view = self._views.get(viewer)
        if view is None:
            generation = self._generation
            visible = await self._tools.visible(viewer.principal, kind="mcp", only=viewer.only, patience_s=patience_s)
            view = view_of(visible, self._names, viewer.listed)
            if visible.complete and generation == self._generation:
                self._views[viewer] = view
        return view

    async def seen(self, viewer: Viewer, patience_s: float) -> Callable[[str], bool | None]:
        """Return whether a client sees an MCP server: it may use one of its tools, or would any that it might have.

        None where its tools are not known.
        """
        view = await self.of(viewer, patience_s)

        def sees(server: str) -> bool | None:
            if f"mcp_{server}" in view.unlisted:
                return None
            any_tool = not viewer.only or covers(viewer.only, f"mcp.{server}.", "")
            return view.providers.get(f"mcp_{server}", any_tool)

        return sees

    async def best(self, viewer: Viewer, query: str, limit: int, patience_s: float) -> list[dict[str, Any]]:
        """The tools of a client's offer that fit a question, the best first."""
        from remit.mcp_server.search import ToolIndex  # noqa: PLC0415 - only clients that search need it

        view = await self.of(viewer, patience_s)
        view_of_index, index = self._indexes.get(viewer, (None, None))
        if index is None or view_of_index is not view:
            index = ToolIndex(view.hidden)
            self._indexes[viewer] = view, index
        return index.best(query, limit)

    async def full(self, viewer: Viewer, shown: str) -> str:
        """The full name behind one that a client gave; a call that comes before its server is listed waits for it."""
        view = await self.of(viewer, 0)
        if shown not in view.tools:
            await self._tools.find(self._names.full(shown))
            view = await self.of(viewer, 0)
        return view.tools.get(shown) or self._names.full(shown)

    def schema(self, name: str) -> Mapping[str, Any] | None:
        """The input schema behind a shown name, for any client."""
        return next((schema for view in self._views.values() if (schema := view.schema(name))), None)

    def forget(self) -> None:
        """The catalog differs: views that are being made now are not kept either."""
        self._views.clear()
        self._indexes.clear()
        self._generation += 1
