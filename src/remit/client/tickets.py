"""Tickets of a server: those of its operations that a request does not say by itself."""

from __future__ import annotations

from remit.api.routes.tickets import Free, FreeQuery, TicketPage, TicketQuery
from remit.client.runs import RemoteRuns
from remit.client.twin import Twin
from remit.service.tickets import Tickets
from remit.tickets.execution import ToolExecutor
from remit.tickets.runner import Runner, RunnerConfig
from remit.tickets.ticket import Kind, Status, Ticket


class RemoteTickets(Twin, Tickets):
    """The tickets of a server."""

    async def page(
        self,
        *,
        kind: Kind | None = None,
        states: tuple[Status, ...] = (),
        thread: str = "",
        before: str = "",
        limit: int = 20,
    ) -> list[Ticket]:
        """Tickets, newest first; `before` continues after the last one of an earlier page."""
        query = TicketQuery(type=kind, state=states, thread=thread, before=before, limit=limit)
        page: TicketPage = await self._connection.ask("tickets.page", query=query)
        return page.items

    async def free(self, kind: Kind, *, wait_s: float = 0.0) -> bool:
        query = FreeQuery(type=kind, wait=wait_s)
        answer: Free = await self._connection.ask("tickets.free", query=query, held_s=wait_s)
        return answer.free

    def executor(self) -> ToolExecutor:
        return RemoteRuns(self._connection)

    def runner(self, config: RunnerConfig, executor: ToolExecutor) -> Runner:
        return Runner(self, executor, self._connection.clock, config)
