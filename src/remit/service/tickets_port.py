"""The port of tickets; see remit.service.ports."""

from __future__ import annotations

from typing import Any, Protocol

from remit.tickets.execution import ToolExecutor
from remit.tickets.queue import Filled
from remit.tickets.report import RunReport
from remit.tickets.runner import Runner, RunnerConfig
from remit.tickets.ticket import Kind, Leased, Proof, Status, Ticket


class TicketsPort(Protocol):
    """Tickets."""

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

    async def free(self, kind: Kind, *, wait_s: float = 0.0) -> bool:
        """Whether a ticket of this kind can be leased, now or within `wait_s` seconds."""
        ...

    async def create(self, document: Any) -> Ticket:
        """Create a ticket from JSON."""
        ...

    async def lease(self, kind: Kind, *, owner: str, limit: int, lease_sec: int) -> list[Leased]:
        """Lease the oldest tickets of a kind that are free."""
        ...

    async def lease_by_id(self, ticket: str, *, owner: str, lease_sec: int) -> Leased:
        """Lease one ticket."""
        ...

    async def renew(self, ticket: str, proof: Proof, lease_sec: int) -> str:
        """Prolong a lease; return the time it ends."""
        ...

    async def release(self, ticket: str, proof: Proof, reason: str = "") -> Ticket:
        """Return a leased ticket."""
        ...

    async def fill(self, ticket: str, outputs: Any, *, proof: Proof | None = None, by: str = "") -> Filled:
        """Complete a ticket with its outputs, then derive what follows. `by` is a way in, not a person."""
        ...

    async def fail(self, ticket: str, proof: Proof, *, code: str, reason: str, outputs: Any = None) -> Ticket:
        """Record that the work on a leased ticket failed."""
        ...

    async def block(
        self, ticket: str, *, code: str, reason: str, source: str, proof: Proof | None = None, outputs: Any = None
    ) -> Ticket:
        """Record why a ticket cannot go on."""
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
