"""The session of each principal: where its calls over HTTP are recorded."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from remit.http.access import Identity
    from remit.service.service import Service

_KEPT: Final = 1_000
"""Principals whose session is remembered; the one that was idle longest gets a new one."""


class HttpSessions:
    """Opens a session for each principal, when its first call comes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._open: OrderedDict[tuple[str, Identity | None], asyncio.Future[str]] = OrderedDict()

    async def of(self, principal: str, identity: Identity | None = None) -> str:
        """The session of a principal, whose `identity` an issuer's token proved."""
        key = (principal, identity)
        session = self._open.get(key)
        if session is None or (session.done() and (session.cancelled() or session.exception() is not None)):
            opening = self._service.sessions.open("http", principal=principal, client="http", identity=identity)
            session = self._open[key] = asyncio.ensure_future(opening)
            if len(self._open) > _KEPT:
                self._open.popitem(last=False)
        self._open.move_to_end(key)
        return await asyncio.shield(session)
