"""Tickets: create, look at, lease, fill, and what follows once one is done (contract: tickets)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from remit.errors import AppendConflictError
from remit.service.ticket_runs import TicketRuns, Worker
from remit.tickets.derivation import Derived
from remit.tickets.derive import derive_tool_from_triage_on_fill, maybe_derive_reply_from_tool_on_fill
from remit.tickets.execution import RunRequest, policy_of
from remit.tickets.queue import Filled
from remit.tickets.runner import Runner, RunnerConfig
from remit.tickets.steps import steps_of
from remit.tickets.ticket import Kind, Leased, Proof, Status, Ticket

if TYPE_CHECKING:
    from remit.service.jobs import Jobs
    from remit.tickets.desk import Desk
    from remit.tickets.execution import ToolExecutor
    from remit.tickets.report import RunReport

_log: Final = logging.getLogger("remit.tickets")


class Tickets:
    """The tickets of one journal."""

    def __init__(self, desk: Desk, jobs: Jobs, principal: str, worker: Worker) -> None:
        """Run steps as jobs, on which `worker` works; `principal` acts if a call names no one else."""
        self._desk = desk
        self._store = desk.store
        self._jobs = jobs
        self._principal = principal
        self._worker = worker
        self.runs = worker.runs
        """Streams of the runs that executors of this process wait for; an engine may work on these alone."""

    # --- queries

    async def get(self, ticket: str) -> Ticket:
        """A ticket. Raise NotFoundError (not_found)."""
        return await self._store.get(ticket)

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
        return await self._store.page(kind=kind, states=states, thread=thread, before=before, limit=limit)

    async def free(self, kind: Kind, *, wait_s: float = 0.0) -> bool:
        """Whether a ticket of this kind can be leased, now or within `wait_s` seconds."""
        return await self._store.free(kind, wait_s=wait_s)

    async def report(self, ticket: str) -> RunReport | None:
        """The report of a TOOL ticket's newest run; None if none has begun. Raise NotFoundError or UsageError."""
        found = await self._store.get(ticket)
        steps = steps_of(found.metadata.tool_input, found.tool_steps)
        request = RunRequest(
            ticket_id=found.id,
            attempt=found.metadata.retry_count,
            tool_steps=steps,
            tool_policy=policy_of(found.metadata.tool_input),
        )
        return await TicketRuns(self._desk, self._jobs, self._worker).report(request)

    # --- commands

    async def create(self, document: Any, *, principal: str = "", identifier: str = "") -> Ticket:
        """Create a ticket from JSON, or find the one of this identifier, if it was created before.

        Raise UsageError (SCHEMA_VALIDATION_FAILED) in strict mode.
        """
        new, _ = self._desk.intake.new(document)
        try:
            return await self._store.create(new, principal=principal or self._principal, identifier=identifier)
        except AppendConflictError:
            if not identifier:
                raise
            return await self._store.get(identifier)

    async def lease(self, kind: Kind, *, owner: str, limit: int, lease_sec: int) -> list[Leased]:
        """Lease the oldest tickets of a kind that are free.

        What a process that died has left underived is derived first: it may be what is leased.
        """
        if kind != "TRIAGE":
            await self.follow_up()
        leases = await self._store.lease(kind, owner=owner, limit=limit, lease_sec=lease_sec)
        for leased in leases:
            self._desk.cutover.leased(leased.ticket)
        return leases

    async def lease_by_id(self, ticket: str, *, owner: str, lease_sec: int) -> Leased:
        """Lease one ticket. Raise NotFoundError (not_found) or StateError (lease_conflict)."""
        leased = await self._store.lease_by_id(ticket, owner=owner, lease_sec=lease_sec)
        self._desk.cutover.leased(leased.ticket)
        return leased

    async def renew(self, ticket: str, proof: Proof, lease_sec: int) -> str:
        """Prolong a lease; return the time it ends."""
        return await self._store.renew(ticket, proof, lease_sec)

    async def release(self, ticket: str, proof: Proof, reason: str = "") -> Ticket:
        """Return a leased ticket."""
        return await self._store.release(ticket, proof, reason)

    async def fill(self, ticket: str, outputs: Any, *, proof: Proof | None = None, by: str = "") -> Filled:
        """Complete a ticket with its outputs, then derive what follows; see TicketStore.complete.

        Once the ticket is done, return it unchanged; a derivation that was broken off is then made up for.
        """
        done, changed = await self._store.fill(
            ticket, outputs, proof=proof, by=by, check=lambda kind: self._desk.intake.outputs(kind, outputs, ticket)
        )
        return Filled(ticket=done, derived=await self.follow(done), changed=changed)

    async def follow(self, done: Ticket) -> Derived | None:
        """Derive what follows a completed ticket; what goes wrong is recorded and never undoes the completion."""
        outputs = done.metadata.final_outputs
        if done.type == "TRIAGE":
            return await derive_tool_from_triage_on_fill(done, outputs, self._store, _log)
        if done.type == "TOOL":
            return await maybe_derive_reply_from_tool_on_fill(done, outputs, self._store, _log)
        return None

    async def follow_up(self, limit: int = 100) -> int:
        """Derive what follows tickets whose process died after completing them; return how many there were."""
        left = await self._store.unfollowed(limit)
        for ticket in left:
            await self.follow(ticket)
        return len(left)

    async def fail(self, ticket: str, proof: Proof, *, code: str, reason: str, outputs: Any = None) -> Ticket:
        """Record that the work on a leased ticket failed, with the outputs that there are."""
        return await self._store.fail(ticket, proof, code=code, reason=reason, outputs=outputs)

    async def block(
        self, ticket: str, *, code: str, reason: str, source: str, proof: Proof | None = None, outputs: Any = None
    ) -> Ticket:
        """Record why a ticket cannot go on, with the outputs that there are."""
        return await self._store.block(ticket, code=code, reason=reason, source=source, proof=proof, outputs=outputs)

    async def retry(self, ticket: str, *, by: str = "") -> Ticket:
        """Make a failed or blocked ticket pending again."""
        return await self._store.retry(ticket, by=by or self._principal)

    # --- work

    def executor(self) -> ToolExecutor:
        """Run steps as jobs (path Z)."""
        return TicketRuns(self._desk, self._jobs, self._worker)

    def runner(self, config: RunnerConfig, executor: ToolExecutor) -> Runner:
        """A worker on TOOL tickets."""
        if self._desk.settings.no_mcp:
            config = replace(config, no_mcp=True)
        return Runner(self, executor, self._desk.journal.clock, config)
