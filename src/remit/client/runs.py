"""Runs a ticket's steps on a server (path Y): one request for each run."""

from __future__ import annotations

from typing import Final

from remit.api.routes.tools import ExecuteBody
from remit.client.connection import Connection
from remit.client.person import only_oneself
from remit.tickets.execution import RunRequest
from remit.tickets.report import RunReport
from remit.tickets.steps import written

_LONGEST_S: Final = 86_400.0
"""Seconds that a run may take; it continues at the server after the client has gone."""


class RemoteRuns:
    """Runs steps through the gateway of a server; see ToolExecutor."""

    def __init__(self, connection: Connection) -> None:
        """Ask over `connection`."""
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
