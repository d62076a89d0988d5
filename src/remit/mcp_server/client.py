"""One client, and the session that its calls are recorded in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from remit.http.access import Access

if TYPE_CHECKING:
    from remit.service.sessions import Sessions

MAX_REQUEST_BYTES: Final = 16 * 1024 * 1024
"""The largest request that is taken."""


class Caller(NamedTuple):
    """The caller of a request over HTTP."""

    access: Access
    """The rights of its token."""
    session: str | None
    """The session it names (before 2026-07-28)."""


class Client:
    """The caller."""

    def __init__(self, sessions: Sessions, *, principal: str, name: str, version: str, transport: str) -> None:
        """`name` and `version` are what the program says of itself. Nothing is recorded before its first call."""
        self.principal = principal
        self._sessions = sessions
        self._name = name
        self._version = version
        self._transport = transport
        self._session = ""
        self._opening = asyncio.Lock()

    async def session(self) -> str:
        """The identifier of its session, opened when it is needed first."""
        async with self._opening:
            if not self._session:
                self._session = await self._sessions.open(
                    "mcp",
                    principal=self.principal,
                    client=self._name,
                    client_version=self._version,
                    via=self._transport,
                )
        return self._session
