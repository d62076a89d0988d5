"""Tickets: create, look at, lease, fill, and what follows once one is done (contract: tickets)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec.structs import replace

from remit.codes import Code
from remit.errors import AppendConflictError, UsageError
from remit.http.access import Access
from remit.journal.leases import LeaseProof
from remit.operation import Body, By, Document, Flat, FromKey, JsonObject, Wire, operation
from remit.tickets.derivation import Derived
from remit.tickets.derive import derive_tool_from_triage_on_fill, maybe_derive_reply_from_tool_on_fill
from remit.tickets.execution import request_of
from remit.tickets.leasing import LEASE_SEC, MAX_LEASE_SEC, MAX_LEASED
from remit.tickets.reading import Filled
from remit.tickets.report import RunReport
from remit.tickets.runner import Runner, RunnerConfig
from remit.tickets.runs import TicketRuns
from remit.tickets.ticket import Kind, Leased, Status, Ticket

if TYPE_CHECKING:
    from remit.service.jobs import Jobs
    from remit.service.parts import Worker
    from remit.service.service import Service
    from remit.tickets.desk import Desk
    from remit.tickets.execution import ToolExecutor

_log: Final = logging.getLogger("remit.tickets")
_ONE: Final = "/v1/tickets/{ticket}"
_HELD: Final = (Code.not_found, Code.lease_owner_mismatch, Code.lease_conflict)
_MESSAGE: Final = {"type": "message", "thread_id": "t1", "content": "Is the build green?"}
Seconds = Annotated[int, msgspec.Meta(ge=1, le=MAX_LEASE_SEC)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
_FORM: Final = Flat({"owner": ("lease_owner", Name), "token": ("lease_token", Name)})
ProofForm = Annotated[LeaseProof, _FORM]
Outputs = Annotated[Any, Wire(type=dict[str, Any] | None)]


class Renewed(msgspec.Struct, frozen=True):
    """When a lease ends now."""

    lease_expires: str


async def _check_steps(_: Tickets, access: Access, arguments: Mapping[str, Any]) -> None:
    """Raise Problem if a token that may not call, or only some tools, would have a worker make a document's calls."""
    document = arguments.get("document") or arguments.get("outputs") or {}
    if document.get("type") == "TOOL" or document.get("tool_steps"):
        access.require("call")
        access.require_all_tools("the steps of a ticket")


async def may_retry(tickets: Tickets, access: Access, arguments: Mapping[str, Any]) -> None:
    """Raise Problem if a token that may not call, or only some tools, would have a ticket's calls made again."""
    access.require_all_tools("the ticket")
    if (await tickets.get(arguments["ticket"])).type == "TOOL":
        access.require("call")


class Tickets:
    """The tickets of one journal."""

    def __init__(self, desk: Desk, jobs: Jobs, principal: str, worker: Worker) -> None:
        self._desk = desk
        self._store = desk.store
        self._jobs = jobs
        self._principal = principal
        self._worker = worker

    # --- queries

    @operation("tickets.view", f"GET {_ONE}", "tickets", "Show a ticket.", codes=(Code.not_found,))
    async def get(self, ticket: str) -> Ticket:
        """Show a ticket.

        Raise NotFoundError (not_found).
        """
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
        return await self._store.free(kind, wait_s=wait_s)

    @operation(
        "tickets.report",
        f"GET {_ONE}/report",
        "tickets",
        "Show the report of a ticket's run.",
        codes=(Code.not_found, Code.INVALID_TOOL_STEP, Code.INVALID_BUDGET),
    )
    async def report(self, ticket: str) -> RunReport | None:
        """Show the report of a TOOL ticket's newest run; null if none has begun.

        Raise NotFoundError or UsageError.
        """
        return await self._runs().report(request_of(await self._store.get(ticket)))

    # --- commands

    @operation(
        "tickets.create",
        "POST /v1/tickets",
        "tickets",
        "Create a ticket.",
        status=201,
        codes=(Code.SCHEMA_VALIDATION_FAILED,),
        invalid=Code.SCHEMA_VALIDATION_FAILED,
        check=_check_steps,
        example={"type": "TRIAGE", "event": _MESSAGE},
    )
    async def create(
        self, document: Document, *, principal: By = "", identifier: Annotated[str, FromKey("tkt")] = ""
    ) -> Ticket:
        """Create a ticket of any kind.

        Find the one of this identifier, if it was created before. Raise UsageError (SCHEMA_VALIDATION_FAILED) in strict
        mode.
        """
        new, _ = self._desk.intake.new(document)
        try:
            return await self._store.create(new, principal=principal or self._principal, identifier=identifier)
        except AppendConflictError:
            if not identifier:
                raise
            return await self._store.get(identifier)

    @operation(
        "tickets.lease",
        "POST /v1/tickets/lease",
        "work",
        "Lease tickets of a kind.",
        body=Body("LeaseBody", "Which tickets to lease, and for whom."),
        codes=(Code.USAGE,),
        example={"kind": "TRIAGE", "owner": "triage-1"},
    )
    async def lease(
        self,
        kind: Kind,
        *,
        owner: Name,
        limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_LEASED)] = 1,
        lease_sec: Seconds = LEASE_SEC,
    ) -> list[Leased]:
        """Lease the oldest tickets of a kind that are free. Each token is shown here and nowhere else.

        What a process that died has left underived is derived first: it may be what is leased.
        """
        if kind != "TRIAGE":
            await self.follow_up()
        leases = await self._store.lease(kind, owner=owner, limit=limit, lease_sec=lease_sec)
        for leased in leases:
            self._desk.cutover.leased(leased.ticket)
        return leases

    @operation(
        "tickets.lease_one",
        f"POST {_ONE}/lease",
        "work",
        "Lease one ticket.",
        body=Body("LeaseOneBody", "For whom to lease the ticket."),
        codes=(Code.not_found, Code.lease_conflict, Code.USAGE),
        example={"owner": "triage-1"},
    )
    async def lease_by_id(self, ticket: str, *, owner: Name, lease_sec: Seconds = LEASE_SEC) -> Leased:
        """Lease one ticket.

        Raise NotFoundError (not_found) or StateError (lease_conflict).
        """
        leased = await self._store.lease_by_id(ticket, owner=owner, lease_sec=lease_sec)
        self._desk.cutover.leased(leased.ticket)
        return leased

    @operation(
        "tickets.renew",
        f"POST {_ONE}/renew",
        "work",
        "Prolong a lease.",
        body=Body("RenewBody", "The proof of a lease, and how long it is to last from now on."),
        answer=Renewed,
        codes=(*_HELD, Code.USAGE),
    )
    async def renew(self, ticket: str, proof: ProofForm, lease_sec: Seconds = LEASE_SEC) -> str:
        """Prolong a lease.

        Return the time it ends.
        """
        return await self._store.renew(ticket, proof, lease_sec)

    @operation(
        "tickets.release",
        f"POST {_ONE}/release",
        "work",
        "Return a leased ticket.",
        body=Body("ProofBody", "The proof of a lease, and why the ticket is returned."),
        codes=_HELD,
    )
    async def release(self, ticket: str, proof: ProofForm, reason: str = "") -> Ticket:
        return await self._store.release(ticket, proof, reason)

    @operation(
        "tickets.fill",
        f"POST {_ONE}/fill",
        "work",
        "Complete a ticket.",
        body=Body(
            "FillBody",
            "What a ticket is completed with, and by whom: under a lease, or `by` someone who may fill it directly.",
        ),
        codes=(
            *_HELD,
            Code.direct_fill_missing_by,
            Code.direct_fill_not_allowed,
            Code.SCHEMA_VALIDATION_FAILED,
        ),
        invalid=Code.SCHEMA_VALIDATION_FAILED,
        check=_check_steps,
        repeatable="proof",
        example={"outputs": {"triage": "look"}, "by": "http_fill"},
    )
    async def fill(
        self, ticket: str, outputs: JsonObject, *, proof: Annotated[LeaseProof | None, _FORM] = None, by: str = ""
    ) -> Filled:
        """Complete a ticket, and derive what follows. A ticket that is done is returned unchanged.

        A derivation that was broken off is then made up for; see TicketStore.complete.
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

    @operation(
        "tickets.fail",
        f"POST {_ONE}/fail",
        "work",
        "Record that the work on a ticket failed.",
        body=Body("FailBody", "Why the work on a ticket failed."),
        codes=_HELD,
    )
    async def fail(self, ticket: str, proof: ProofForm, *, code: Name, reason: str, outputs: Outputs = None) -> Ticket:
        """Record that the work on a leased ticket failed.

        `outputs` are those that there are.
        """
        return await self._store.fail(ticket, proof, code=code, reason=reason, outputs=outputs)

    @operation(
        "tickets.block",
        f"POST {_ONE}/block",
        "work",
        "Record why a ticket cannot go on.",
        body=Body("BlockBody", "Why a ticket cannot go on."),
        codes=(*_HELD, Code.USAGE),
        example={"code": "MCP_REQUIRED_UNAVAILABLE", "reason": "the server is down", "source": "ann"},
    )
    async def block(
        self,
        ticket: str,
        *,
        code: Name,
        reason: Name,
        source: Name,
        proof: Annotated[LeaseProof | None, _FORM] = None,
        outputs: Outputs = None,
    ) -> Ticket:
        """Record why a pending or leased ticket cannot go on.

        `outputs` are those that there are.
        """
        return await self._store.block(ticket, code=code, reason=reason, source=source, proof=proof, outputs=outputs)

    @operation(
        "tickets.retry",
        f"POST {_ONE}/retry",
        "tickets",
        "Make a failed or blocked ticket pending again.",
        body=Body("TicketRetryBody", "Whether calls that took effect, or may have, are made again.", optional=True),
        codes=(Code.not_found, Code.lease_conflict, Code.lease_owner_mismatch, Code.RETRY_REPEATS),
        check=may_retry,
    )
    async def retry(self, ticket: str, *, repeat: bool = False, by: By = "") -> Ticket:
        """Make a failed or blocked ticket pending again; what was done stays done.

        Calls that took effect, or may have, and whose result was of no use, are made again only with `repeat`. Raise
        NotFoundError, or StateError (lease_conflict, RETRY_REPEATS).
        """
        if not repeat:
            await self._check_repeats(await self._store.get(ticket))
        return await self._store.retry(ticket, repeat=repeat, by=by or self._principal)

    async def _check_repeats(self, ticket: Ticket) -> None:
        if ticket.status not in {"failed", "blocked"}:
            return
        try:
            request = request_of(ticket)
        except UsageError:  # no run of it was ever begun
            return
        await self._runs().check_repeats(replace(request, attempt=request.attempt + 1))

    # --- work

    def executor(self) -> ToolExecutor:
        """Run steps as jobs (path Z)."""
        return self._runs()

    def _runs(self) -> TicketRuns:
        return TicketRuns(self._desk, self._jobs, self._worker)

    def runner(self, config: RunnerConfig, executor: ToolExecutor) -> Runner:
        """A worker on TOOL tickets."""
        if self._desk.settings.no_mcp:
            config = replace(config, no_mcp=True)
        return Runner(self, executor, self._desk.journal.clock, config)


def tickets_of(service: Service) -> Tickets:
    """Return the tickets of a service. Raise AttributeError if it is without this part."""
    tickets: Tickets = service.tickets
    return tickets
