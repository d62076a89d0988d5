"""Tickets of a server: those of its operations that a request does not say by itself."""

from __future__ import annotations

from typing import Final

from remit.client.connection import ServerConnection, only_oneself
from remit.client.twin import Twin
from remit.parts.tickets.report import RunReport
from remit.parts.tickets.routes import ExecuteBody, Free, FreeQuery, TicketPage, TicketQuery
from remit.parts.tickets.run import RunRequest, ToolExecutor
from remit.parts.tickets.runner import RunnerConfig, TicketRunner
from remit.parts.tickets.steps import written
from remit.parts.tickets.ticket import Kind, Status, Ticket
from remit.parts.tickets.tickets import Tickets

_LONGEST_S: Final = 86_400.0
"""Seconds that a run may take; it continues at the server after the client has gone."""


class RemoteRuns:
    """Runs steps through the gateway of a server; see ToolExecutor."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    async def execute(self, run: RunRequest) -> RunReport:
        """Run the steps, or continue this run.

        A request that was lost is sent again: the same ticket and attempt is the same run.
        """
        only_oneself(run.principal)
        body = ExecuteBody(
            ticket_id=run.ticket_id,
            attempt=run.attempt,
            tool_steps=[written(step) for step in run.tool_steps],
            tool_policy=run.tool_policy,
        )
        report: RunReport = await self._connection.ask(
            "tools.execute", body=body, answer=RunReport, held_s=_LONGEST_S, repeatable=True
        )
        return report


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
        query = TicketQuery(type=kind, state=states, thread=thread, before=before, limit=limit)
        page: TicketPage = await self._connection.ask("tickets.page", query=query)
        return page.items

    async def free(self, kind: Kind, *, wait_s: float = 0.0) -> bool:
        query = FreeQuery(type=kind, wait=wait_s)
        answer: Free = await self._connection.ask("tickets.free", query=query, held_s=wait_s)
        return answer.free

    def executor(self) -> ToolExecutor:
        return RemoteRuns(self._connection)

    def runner(self, config: RunnerConfig, executor: ToolExecutor) -> TicketRunner:
        return TicketRunner(self, executor, self._connection.clock, config)
