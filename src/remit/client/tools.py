"""Tools behind a server: its catalog, its policy, calls, and who made them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from remit.api.routes.tools import ExecuteBody, ExplainBody, SessionQuery
from remit.client.connection import Connection
from remit.policy.decision import CallerKind
from remit.policy.explain import Explanation
from remit.service.outcome import OutcomeView
from remit.service.views import SessionRow, ToolView
from remit.tools.naming import wire_name

_LONGEST_S: Final = 86_400.0
"""Seconds that a call without a timeout of its own may take; the tool's limit is shorter."""


class RemoteTools:
    """The catalog of a server; see ToolsPort."""

    def __init__(self, connection: Connection) -> None:
        """Ask over `connection`."""
        self._connection = connection

    async def views(self) -> list[ToolView]:
        """Every tool, by name."""
        found: list[ToolView] = await self._connection.ask("tools.page")
        return found

    async def view(self, name: str) -> ToolView:
        """One tool."""
        view: ToolView = await self._connection.ask("tools.view", name)
        return view

    async def failures(self) -> dict[str, str]:
        """Why tools are missing, by the provider that could not be listed."""
        found: dict[str, str] = await self._connection.ask("tools.failures")
        return found


class RemotePolicy:
    """The rules of a server; see PolicyPort."""

    def __init__(self, connection: Connection) -> None:
        """Ask over `connection`."""
        self._connection = connection

    async def explain(
        self,
        tool: str,
        args: dict[str, Any],
        *,
        principal: str,
        kind: CallerKind = "session",
        recipe: str = "",
        given: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """What policy says to a call; an empty `principal` is the token's."""
        body = ExplainBody(tool=tool, args=args, principal=principal, kind=kind, recipe=recipe, given=dict(given or {}))
        found: Explanation = await self._connection.ask("policy.explain", body=body)
        return found


class RemoteSessions:
    """The sessions of a server, and calls in the session that it keeps for the token; see SessionsPort."""

    def __init__(self, connection: Connection) -> None:
        """Ask over `connection`."""
        self._connection = connection

    async def rows(self, *, limit: int = 20) -> list[SessionRow]:
        """Sessions, newest first."""
        found: list[SessionRow] = await self._connection.ask("sessions.page", query=SessionQuery(limit=limit))
        return found

    async def call(
        self, tool: str, args: dict[str, Any] | None = None, *, key: str = "", timeout_s: float | None = None
    ) -> OutcomeView:
        """Call a tool through the server's gate. With an idempotency `key` the call is made once."""
        limit = max(round(timeout_s * 1_000), 1) if timeout_s is not None else None
        body = ExecuteBody(tool_name=wire_name(tool), args=args or {}, timeout_ms=limit)
        held_s = timeout_s if timeout_s is not None else _LONGEST_S
        outcome: OutcomeView = await self._connection.ask(
            "tools.execute", body=body, answer=OutcomeView, key=key, held_s=held_s
        )
        return outcome
