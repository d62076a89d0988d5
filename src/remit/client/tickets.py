"""Tickets of a server."""

from __future__ import annotations

from typing import Any

from remit.api.routes.leases import Free, FreeQuery, LeaseBody, LeaseOneBody, ProofBody, RenewBody, Renewed
from remit.api.routes.tickets import BlockBody, FailBody, FillBody, TicketPage, TicketQuery
from remit.client.connection import Connection
from remit.client.person import only_oneself
from remit.client.runs import RemoteRuns
from remit.codes import Code
from remit.errors import UsageError
from remit.service.values import encoded
from remit.tickets.execution import ToolExecutor
from remit.tickets.queue import Filled
from remit.tickets.report import RunReport
from remit.tickets.runner import Runner, RunnerConfig
from remit.tickets.ticket import Kind, Leased, Proof, Status, Ticket


class RemoteTickets:
    """The tickets of a server; see TicketsPort."""

    def __init__(self, connection: Connection) -> None:
        """Ask over `connection`."""
        self._connection = connection

    # --- queries

    async def get(self, ticket: str) -> Ticket:
        """A ticket."""
        return await self._ticket("view", ticket)

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

    async def report(self, ticket: str) -> RunReport | None:
        """The report of a TOOL ticket's newest run; None if none has begun."""
        report: RunReport | None = await self._connection.ask("tickets.report", ticket)
        return report

    async def free(self, kind: Kind, *, wait_s: float = 0.0) -> bool:
        """Whether a ticket of this kind can be leased, now or within `wait_s` seconds."""
        query = FreeQuery(type=kind, wait=wait_s)
        found: Free = await self._connection.ask("tickets.free", query=query, held_s=wait_s)
        return found.free

    # --- commands

    async def create(self, document: Any) -> Ticket:
        """Create a ticket from JSON."""
        if not isinstance(document, dict):
            raise UsageError("a ticket is a JSON object", code=Code.SCHEMA_VALIDATION_FAILED)
        encoded(document, Code.SCHEMA_VALIDATION_FAILED)
        return await self._ticket("create", body=document)

    async def lease(self, kind: Kind, *, owner: str, limit: int, lease_sec: int) -> list[Leased]:
        """Lease the oldest tickets of a kind that are free."""
        body = LeaseBody(kind=kind, owner=owner, limit=limit, lease_sec=lease_sec)
        leased: list[Leased] = await self._connection.ask("tickets.lease", body=body)
        return leased

    async def lease_by_id(self, ticket: str, *, owner: str, lease_sec: int) -> Leased:
        """Lease one ticket."""
        body = LeaseOneBody(owner=owner, lease_sec=lease_sec)
        leased: Leased = await self._connection.ask("tickets.lease_one", ticket, body=body)
        return leased

    async def renew(self, ticket: str, proof: Proof, lease_sec: int) -> str:
        """Prolong a lease; return the time it ends."""
        body = RenewBody(lease_owner=proof.owner, lease_token=proof.token, lease_sec=lease_sec)
        renewed: Renewed = await self._connection.ask("tickets.renew", ticket, body=body)
        return renewed.lease_expires

    async def release(self, ticket: str, proof: Proof, reason: str = "") -> Ticket:
        """Return a leased ticket."""
        body = ProofBody(lease_owner=proof.owner, lease_token=proof.token, reason=reason)
        return await self._ticket("release", ticket, body=body)

    async def fill(self, ticket: str, outputs: Any, *, proof: Proof | None = None, by: str = "") -> Filled:
        """Complete a ticket with its outputs, then derive what follows."""
        if not isinstance(outputs, dict):
            raise UsageError("outputs are a JSON object", code=Code.SCHEMA_VALIDATION_FAILED)
        encoded(outputs, Code.SCHEMA_VALIDATION_FAILED)
        body = FillBody(outputs=outputs, by=by, **_held(proof))
        # Under its proof a ticket is completed once, however often that is asked for.
        filled: Filled = await self._connection.ask("tickets.fill", ticket, body=body, repeatable=proof is not None)
        return filled

    async def fail(self, ticket: str, proof: Proof, *, code: str, reason: str, outputs: Any = None) -> Ticket:
        """Record that the work on a leased ticket failed, with the outputs that there are."""
        body = FailBody(code=code, reason=reason, lease_owner=proof.owner, lease_token=proof.token, outputs=outputs)
        return await self._ticket("fail", ticket, body=body)

    async def block(
        self, ticket: str, *, code: str, reason: str, source: str, proof: Proof | None = None, outputs: Any = None
    ) -> Ticket:
        """Record why a ticket cannot go on, with the outputs that there are."""
        body = BlockBody(code=code, reason=reason, source=source, outputs=outputs, **_held(proof))
        return await self._ticket("block", ticket, body=body)

    async def retry(self, ticket: str, *, by: str = "") -> Ticket:
        """Make a failed or blocked ticket pending again."""
        only_oneself(by)
        return await self._ticket("retry", ticket)

    # --- work

    def executor(self) -> ToolExecutor:
        """Run steps on the server (path Y)."""
        return RemoteRuns(self._connection)

    def runner(self, config: RunnerConfig, executor: ToolExecutor) -> Runner:
        """A worker on TOOL tickets."""
        return Runner(self, executor, self._connection.clock, config)

    async def _ticket(self, operation: str, *path: str, body: Any = None) -> Ticket:
        ticket: Ticket = await self._connection.ask(f"tickets.{operation}", *path, body=body)
        return ticket


def _held(proof: Proof | None) -> dict[str, Any]:
    return {"lease_owner": proof.owner, "lease_token": proof.token} if proof is not None else {}
