"""The offer to each client now, remembered until the catalog changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.mcp_server.view import OfferView, view_of
from remit.policy.overlay import covers

if TYPE_CHECKING:
    from remit.mcp_server.names import Names
    from remit.mcp_server.tool_index import ToolIndex
    from remit.service.tools import ToolsNoun

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
        self._kept: dict[Viewer, OfferView] = {}
        self._indexes: dict[Viewer, tuple[OfferView, ToolIndex]] = {}
        self._generation = 0

    async def of(self, viewer: Viewer, patience_s: float) -> OfferView:
        """Return what a client is offered; of servers that are still connecting, only what is known so far."""
        view = self._kept.get(viewer)
        if view is None:
            generation = self._generation
            seen = await self._tools.visible(viewer.principal, kind="mcp", only=viewer.only, patience_s=patience_s)
            view = view_of(seen, self._names, viewer.listed)
            if seen.complete and generation == self._generation:
                self._kept[viewer] = view
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
        from remit.mcp_server.tool_index import ToolIndex  # noqa: PLC0415 - only clients that search need it

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
        return next((schema for view in self._kept.values() if (schema := view.schema(name))), None)

    def forget(self) -> None:
        """The catalog differs: views that are being made now are not kept either."""
        self._kept.clear()
        self._indexes.clear()
        self._generation += 1
