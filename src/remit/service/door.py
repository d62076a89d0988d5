"""The gate as providers have it whose programs ask for something while a call is under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from remit.tools.door import DoorOutcome

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.service.service import Service

_LOOK_S: Final = 30.0
"""Seconds after which a question is looked at again, for it may have expired."""


class SessionDoor:
    """The gate of this process, behind sessions."""

    def __init__(self, journal: Journal, service: Callable[[], Service]) -> None:
        self._journal = journal
        self._service = service

    async def open(self, principal: str, client: str) -> str:
        return await self._service().sessions.open("mcp", principal=principal, client=client)

    async def call(self, session: str, tool: str, args: dict[str, Any]) -> DoorOutcome:
        from remit.service.calls import LiveCaller  # noqa: PLC0415 - a list of tools makes a door, and no call

        outcome = await self._service().sessions.call(session, tool, args, live=LiveCaller(ask=self.decided))
        return DoorOutcome(outcome.ok, outcome.value, outcome.code, outcome.reason)

    async def decided(self, confirmation: str) -> bool:
        from remit.journal.leases import heads_changed_within  # noqa: PLC0415 - as above

        confirmations = self._service().confirmations
        mark = await self._journal.heads_changed(0)
        while (await confirmations.view(confirmation)).state == "pending":
            mark = await heads_changed_within(self._journal, mark, _LOOK_S)
        return True
