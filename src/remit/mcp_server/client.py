"""One client, and the session that its calls are recorded in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from remit.http.access import Access, TokenIdentity
    from remit.service.sessions import Sessions
    from remit.settings.model import Settings

MAX_REQUEST_BYTES: Final = 16 * 1024 * 1024
"""The largest request that is taken."""


_STOPPED: Final = frozenset({"claude-code", "codex-mcp-client"})
"""Programs whose dialog stops the clock of the call that it is about."""


class HttpCaller(NamedTuple):
    """The caller of a request over HTTP."""

    access: Access
    """The rights of its token."""
    session: str | None
    """The session it names (before 2026-07-28)."""


class AskingTerms(NamedTuple):
    """The way in which people are asked about a client's calls, and it is answered while they decide."""

    ask: str = "both"
    """As `mcp.ask`."""
    patience_s: float | None = None
    """Seconds that a call waits for its dialog; None: as long as it takes."""
    waiting: str = "error"
    """As `mcp.waiting`."""
    person_s: float = 0.5
    """Seconds that a person takes at least to decline."""
    patience_is_ours: bool = False
    """Whether the patience is the default, which is known better for some programs."""
    expose_tools: str = "all"
    """As `mcp.expose_tools`."""
    always: tuple[str, ...] = ()
    """As `mcp.always`."""
    console: str = ""
    """The base URL at which people reach the console, where there is one."""

    @classmethod
    def read(cls, settings: Settings) -> AskingTerms:
        """The terms that the settings name."""
        mcp = settings.mcp
        ours = settings.sources["mcp.patience"] == "default"
        url = settings.serve.public_url.rstrip("/")
        return cls(
            ask=mcp.ask,
            patience_s=mcp.patience or None,
            waiting=mcp.waiting,
            person_s=mcp.person_ms / 1_000,
            patience_is_ours=ours,
            expose_tools=mcp.expose_tools,
            always=mcp.always,
            console=url if url.startswith(("https://", "http://")) else "",
        )

    def of(self, access: Access, program: str) -> AskingTerms:
        """The terms for one client, by its table if it has one."""
        patience_s = self.patience_s
        if access.patience is not None:
            patience_s = access.patience or None
        elif self.patience_is_ours and program in _STOPPED:
            patience_s = None
        return self._replace(ask=access.ask or self.ask, patience_s=patience_s, waiting=access.waiting or self.waiting)

    def listed(self, access: Access) -> tuple[str, ...] | None:
        """Names or globs of the tools that one client lists, where it finds the others; None: it lists all."""
        searches = (access.expose_tools or self.expose_tools) == "search"
        return (access.always or self.always) if searches else None


class McpCaller:
    """The caller."""

    def __init__(
        self,
        sessions: Sessions,
        *,
        principal: str,
        name: str,
        version: str,
        transport: str,
        identity: TokenIdentity | None = None,
    ) -> None:
        self._identity = identity
        self.principal = principal
        self.name = name
        self._sessions = sessions
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
                    client=self.name,
                    client_version=self._version,
                    via=self._transport,
                    identity=self._identity,
                )
        return self._session
