"""The offer to each client now, remembered until the catalog changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.mcp_server.view import View, view_of

if TYPE_CHECKING:
    from remit.mcp_server.names import Names
    from remit.service.tools import Tools

PATIENCE_S: Final = 10.0
"""Seconds a client waits for servers that are still connecting before it is shown what there is so far."""


class Viewer(NamedTuple):
    """Whom a view is for."""

    principal: str
    only: tuple[str, ...] = ()
    """Names or globs of the tools that its token covers; empty: all."""


class Views:
    """The views of all clients."""

    def __init__(self, tools: Tools, names: Names) -> None:
        """Show `tools` under `names`."""
        self._tools = tools
        self._names = names
        self._kept: dict[Viewer, View] = {}
        self._generation = 0

    async def of(self, viewer: Viewer, patience_s: float) -> View:
        """Return what a client is offered; of servers that are still connecting, only what is known so far."""
        view = self._kept.get(viewer)
        if view is None:
            generation = self._generation
            seen = await self._tools.visible(viewer.principal, kind="mcp", only=viewer.only, patience_s=patience_s)
            view = view_of(seen.tools, self._names)
            if seen.complete and generation == self._generation:
                self._kept[viewer] = view
        return view

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
        self._generation += 1
