"""The port of tickets; see remit.service.ports."""

from __future__ import annotations

from typing import Any, Protocol

from remit.tickets.execution import ToolExecutor
from remit.tickets.queue import TicketQueue
from remit.tickets.report import RunReport
from remit.tickets.runner import Runner, RunnerConfig
from remit.tickets.ticket import Kind, Leased, Status, Ticket


class TicketsPort(TicketQueue, Protocol):
    """Tickets: those that a runner works on, and what else faces do with them."""

    async def get(self, ticket: str) -> Ticket:
        """A ticket."""
        ...

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
        ...

    async def report(self, ticket: str) -> RunReport | None:
        """The report of a TOOL ticket's newest run; None if none has begun."""
        ...

    async def create(self, document: Any) -> Ticket:
        """Create a ticket from JSON."""
        ...

    async def lease_by_id(self, ticket: str, *, owner: str, lease_sec: int) -> Leased:
        """Lease one ticket."""
        ...

    async def retry(self, ticket: str, *, by: str = "") -> Ticket:
        """Make a failed or blocked ticket pending again."""
        ...

    def executor(self) -> ToolExecutor:
        """What runs a ticket's steps where the tools are."""
        ...

    def runner(self, config: RunnerConfig, executor: ToolExecutor) -> Runner:
        """A worker on TOOL tickets."""
        ...
