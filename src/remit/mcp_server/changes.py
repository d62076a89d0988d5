"""Telling clients of changes: of tools, those whose own list differs from the one they were given, and no others.

A notice that nothing stands behind is not harmless: widely used clients fail if one comes while they close, and the
others list everything again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.mcp_server import offer as viewing
from remit.mcp_server.subscriptions import RESOURCE_UPDATED
from remit.tasks import Tasks
from remit.tools.peer import is_foreign

if TYPE_CHECKING:
    from remit.mcp_server.offer import OfferView, Viewer, Views
    from remit.mcp_server.request import ClientConnection
    from remit.mcp_server.subscriptions import ListenStreams

TOOLS_CHANGED: Final = "notifications/tools/list_changed"
_LISTS: Final = ("notifications/prompts/list_changed", "notifications/resources/list_changed")
_HEARD: Final = (*_LISTS, RESOURCE_UPDATED)


class _Given(NamedTuple):
    """A list that a client holds."""

    viewer: Viewer
    view: OfferView


class ListChanges:
    """The lists that clients were given, and the clients that are told of a change."""

    def __init__(self, views: Views, listening: ListenStreams) -> None:
        self._views = views
        self._listening = listening
        self._connections: dict[int, ClientConnection] = {}
        self._followed: dict[int, set[str]] = {}
        """The resources that clients subscribed to, by connection."""
        self._held: dict[int, _Given] = {}
        self._held_since: dict[Viewer, _Given] = {}
        self._tasks = Tasks()
        self._stale = False
        self._comparing = False

    def join(self, connection: ClientConnection) -> None:
        """Tell this connection (before 2026-07-28) of changes, until it ends."""
        key = id(connection)
        self._connections[key] = connection

        def leave() -> None:
            self._connections.pop(key, None)
            self._held.pop(key, None)
            self._followed.pop(key, None)

        connection.at_end(leave)

    def given(self, viewer: Viewer, view: OfferView, connection: ClientConnection | None) -> None:
        """A client was given the list of `view`: over its connection, or (None) in a request of its own."""
        if connection is None:
            self._held_since[viewer] = _Given(viewer, view)
        elif id(connection) in self._connections:
            self._held[id(connection)] = _Given(viewer, view)

    def changed(self) -> None:
        """The catalog may differ: tell the clients whose list does."""
        self._stale = True
        if not self._comparing and (self._held or self._held_since):
            self._comparing = True
            self._tasks.begin(self._compare())

    def heard(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass on what a relayed server tells all its clients; of tools, the catalog tells."""
        if method in _HEARD or is_foreign(method):
            self._announce(method, params, list(self._connections.values()))

    def heard_by_followers(self, method: str, params: Mapping[str, Any]) -> None:
        """The same, but of a changed resource only those are told that subscribed to it."""
        if method != RESOURCE_UPDATED:
            if method in _HEARD:
                self.heard(method, params)
            return
        uri = str(params.get("uri"))
        self._announce(method, params, [self._connections[key] for key, uris in self._followed.items() if uri in uris])

    def follow(self, connection: ClientConnection | None, uri: str) -> None:
        """A client (before 2026-07-28) subscribed to a resource."""
        if id(connection) in self._connections:
            self._followed.setdefault(id(connection), set()).add(uri)

    def unfollow(self, connection: ClientConnection | None, uri: str) -> bool:
        """A client does not want to hear of it any more; whether others still do."""
        self._followed.get(id(connection), set()).discard(uri)
        return any(uri in uris for uris in self._followed.values())

    async def close(self) -> None:
        """Tell no client anything any more."""
        self._tasks.cancel()
        await self._tasks.ended()

    async def _compare(self) -> None:
        try:
            while self._stale:
                self._stale = False
                await self._tell()
        finally:
            self._comparing = False

    async def _tell(self) -> None:
        """Tell who holds a list that is not the one of today; what they hold counts as that one from now on."""
        patience = viewing.PATIENCE_S
        viewers = {listing.viewer for listing in (*self._held.values(), *self._held_since.values())}
        today = {viewer: await self._views.of(viewer, patience) for viewer in viewers}
        differing = [key for key, listing in self._held.items() if _differs(listing, today)]
        since = [viewer for viewer, listing in self._held_since.items() if _differs(listing, today)]
        for key in differing:
            viewer = self._held[key].viewer
            self._held[key] = _Given(viewer, today[viewer])
        for viewer in since:
            self._held_since[viewer] = _Given(viewer, today[viewer])
        if since:
            self._listening.tell(TOOLS_CHANGED, {})
        there = [self._connections[key] for key in differing if key in self._connections]
        await asyncio.gather(*(each.notify(TOOLS_CHANGED, {}) for each in there))

    def _announce(self, method: str, params: Mapping[str, Any], there: Sequence[ClientConnection]) -> None:
        notice = {} if method in _LISTS else params
        self._listening.tell(method, notice)
        for each in there:
            self._tasks.begin(each.notify(method, notice))


def _differs(offered: _Given, today: Mapping[Viewer, OfferView]) -> bool:
    now = today.get(offered.viewer)
    return now is not None and now.definitions != offered.view.definitions
