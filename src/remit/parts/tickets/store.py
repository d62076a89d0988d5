"""Tickets in the journal: create, list, and every way that work on one ends (contract: tickets, "States").

Each write compares the ticket's head in the transaction that writes, so two writers cannot both succeed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.canonical import as_json
from remit.codes import Code
from remit.errors import AppendConflictError, UsageError
from remit.journal.blobs import Packed, pack
from remit.journal.event import HeadPatch
from remit.journal.leases import LeaseProof
from remit.journal.sharded.placement import new_identifier
from remit.parts.tickets import kinds
from remit.parts.tickets.history import NO_DERIVATION, Derivation, TicketHistory
from remit.parts.tickets.leases import REASON, Rejected, TicketLeases, uncounted
from remit.parts.tickets.reader import FOLLOW, TicketRecord
from remit.parts.tickets.ticket import PREFIX, STREAM_KIND, Kind, NewTicket, Ticket, stream_of
from remit.redact import line

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.randomness import RandomSource

DIRECT: Final = frozenset({"http_fill", "system", "manual"})
"""The sources that may complete a ticket that is pending (contract: tickets, "States")."""
_TITLE: Final = 80
_ATTEMPTS: Final = 100

Check = Callable[[Kind], object]


def _unchecked(_new: NewTicket) -> str:
    """Find nothing wrong."""
    return ""


def _anything(_kind: Kind) -> None:
    """Refuse nothing."""


class TicketStore(TicketLeases):
    """Creates tickets and moves them from state to state; every method may be called from any process.

    Tickets stand in `journal`; `chance` draws lease tokens. `derivation` says which tickets are derived, and `problems`
    what is wrong with one that is to be.
    """

    def __init__(
        self,
        journal: Journal,
        chance: RandomSource,
        *,
        rejected: Rejected = uncounted,
        derivation: Derivation = NO_DERIVATION,
        problems: Callable[[NewTicket], str] = _unchecked,
    ) -> None:
        super().__init__(journal, chance, rejected)
        self.derivation = derivation
        self.problems = problems

    # --- create

    async def create(self, new: NewTicket, *, principal: str = "", identifier: str = "") -> Ticket:
        """Create a ticket durably. Raise AppendConflictError if one with this identifier exists."""
        ticket = identifier or await new_identifier(PREFIX, STREAM_KIND, self.journal.answers)
        document = {"event": new.event, "tool_input": new.tool_input, "assigned_to": new.assigned_to}
        if new.tool_steps is not msgspec.UNSET:
            document["tool_steps"] = new.tool_steps
        packed = pack(as_json(document))
        created = kinds.TicketCreated(
            ticket=ticket,
            type=new.type,
            document=packed.inline,
            document_blob=packed.ref,
            parent_ticket_id=new.parent_ticket_id,
            triage_ticket_id=new.triage_ticket_id,
            principal=principal,
        )
        patch = HeadPatch(
            state="pending",
            due_at=self.journal.clock.now(),
            priority=new.priority,
            route=new.type,
            title=_title(new.event),
            labels=_labels(new),
        )
        await self.journal.create(stream_of(ticket), STREAM_KIND, created, patch=patch, blobs=packed.blobs)
        return await self.get(ticket)

    # --- ways a lease ends

    async def complete(
        self, ticket: str, outputs: Any, *, proof: LeaseProof | None = None, by: str = "", check: Check = _anything
    ) -> Ticket:
        """Finish a ticket with its outputs; once it is done, return it unchanged.

        A running ticket needs the lease proof. A pending one needs `by` to be `http_fill`, `system` or `manual`.
        `check` is called with the ticket's kind before anything is written, and may refuse the outputs.
        Raise StateError or UsageError (direct_fill_not_allowed, direct_fill_missing_by, lease_owner_mismatch).
        """
        return (await self.fill(ticket, outputs, proof=proof, by=by, check=check))[0]

    async def fill(
        self, ticket: str, outputs: Any, *, proof: LeaseProof | None = None, by: str = "", check: Check = _anything
    ) -> tuple[Ticket, bool]:
        """As `complete`; also whether the ticket was completed now, and not before."""
        ticket_read = self._leased_here(ticket, proof) or await self.load(ticket)
        for _ in range(_ATTEMPTS):
            history = ticket_read.history
            if history.status == "done":
                return await self.ticket(ticket_read), False
            if history.created is not None:
                check(history.created.type)
            direct = self._completes_directly(ticket_read, proof, by)
            packed = pack(as_json(outputs))
            completed = kinds.TicketCompleted(
                by=by or (proof.owner if proof else ""), outputs=packed.inline, outputs_blob=packed.ref, direct=direct
            )
            followed = _is_followed(history, outputs)
            labels = {**ticket_read.head.labels, FOLLOW: "due"} if followed else ticket_read.head.labels
            patch = HeadPatch(state="done", due_at=None, closed=True, release=not direct, labels=labels)
            try:
                done = await self._append(ticket_read, completed, patch=patch, blobs=packed.blobs)
            except AppendConflictError:  # completed at the same moment, or leased by another: the next look tells
                ticket_read = await self.load(ticket)
                continue
            if followed:
                self._records.put(ticket_read)
            return done, True
        raise self._refusal(Code.lease_conflict, "complete", f"{ticket}: too many writers at the same moment")

    async def fail(self, ticket: str, proof: LeaseProof, *, code: str, reason: str, outputs: Any = None) -> Ticket:
        """Record that the work on a running ticket failed."""
        ticket_read = await self._held(ticket, proof, "fail")
        packed = _packed(outputs)
        failed = kinds.TicketFailed(
            code=code, reason=line(reason, REASON), by=proof.owner, outputs=packed.inline, outputs_blob=packed.ref
        )
        patch = HeadPatch(state="failed", due_at=None, release=True)
        return await self._written(ticket_read, failed, patch, "fail", packed)

    async def block(
        self, ticket: str, *, code: str, reason: str, source: str, proof: LeaseProof | None = None, outputs: Any = None
    ) -> Ticket:
        """Record why a pending ticket, or a running one with the lease proof, cannot go on."""
        if not (code and reason and source):
            raise UsageError("a block needs code, reason and source", remedy="Give all three.")
        ticket_read = self._leased_here(ticket, proof) or await self.load(ticket)
        status = ticket_read.history.status
        if status == "running":
            self._proven(ticket_read, proof, "block")
        elif status != "pending":
            raise self._state(ticket, status, "block")
        packed = _packed(outputs)
        blocked = kinds.TicketBlocked(
            code=code,
            reason=line(reason, REASON),
            source=line(source),
            outputs=packed.inline,
            outputs_blob=packed.ref,
        )
        patch = HeadPatch(state="blocked", due_at=None, release=status == "running")
        return await self._written(ticket_read, blocked, patch, "block", packed)

    async def retry(self, ticket: str, *, repeat: bool = False, by: str = "") -> Ticket:
        """Make a failed or blocked ticket pending again; with `repeat`, its next attempt does again what was done."""
        ticket_read = await self.load(ticket)
        if ticket_read.history.status not in {"failed", "blocked"}:
            raise self._state(ticket, ticket_read.history.status, "retry")
        retried = kinds.TicketRetried(by=by, retry_count=ticket_read.history.retries + 1, repeat=repeat)
        patch = HeadPatch(state="pending", due_at=self.journal.clock.now())
        return await self._written(ticket_read, retried, patch, "retry")

    async def derived(self, ticket: str, reason: str, *, child: str = "", message: str = "") -> Ticket:
        """Record what deriving the next ticket ended with."""
        note = kinds.TicketDerived(reason=reason, ticket=child, message=line(message, REASON) if message else "")
        ticket_read = self._records.take(ticket) or await self.load(ticket)
        for _ in range(_ATTEMPTS):
            known = ticket_read.history.derived
            if known is not None and known.ticket == child and child:
                return await self.ticket(ticket_read)
            labels = {name: text for name, text in ticket_read.head.labels.items() if name != FOLLOW}
            try:
                return await self._append(ticket_read, note, patch=HeadPatch(labels=labels))
            except AppendConflictError:
                ticket_read = await self.load(ticket)
        raise self._refusal(Code.lease_conflict, "derive", f"{ticket}: too many writers at the same moment")

    # --- common

    def _completes_directly(self, record: TicketRecord, proof: LeaseProof | None, by: str) -> bool:
        """Say whether a ticket is completed without a lease. Raise StateError or UsageError if it may not be so."""
        status = record.history.status
        if status == "pending" and proof is None:
            self._check_direct(by)
            return True
        if status == "running" or proof is not None:
            self._proven(record, proof, "complete")
            return False
        raise self._state(record.id, status, "complete")

    def _check_direct(self, by: str) -> None:
        if not by:
            raise self._refusal(
                Code.direct_fill_missing_by, "complete", "`by` is required to complete a pending ticket"
            )
        if by not in DIRECT:
            reason = f"{line(by)!r} may not complete a pending ticket; {', '.join(sorted(DIRECT))} may"
            raise self._refusal(Code.direct_fill_not_allowed, "complete", reason)


def _is_followed(history: TicketHistory, outputs: Any) -> bool:
    """Return whether another ticket may have to be derived once this one is done."""
    if history.created is None or history.created.type == "REPLY":
        return False
    return history.created.type == "TOOL" or (isinstance(outputs, dict) and bool(outputs.get("tool_steps")))


def _packed(outputs: Any) -> Packed:
    return pack(as_json(outputs)) if outputs is not None else Packed(msgspec.UNSET, msgspec.UNSET, ())


def _title(event: Any) -> str:
    content = event.get("content") if isinstance(event, dict) else None
    return line(content, _TITLE) if isinstance(content, str) else ""


def _labels(new: NewTicket) -> dict[str, str]:
    labels: dict[str, str] = {"type": new.type}
    thread = new.event.get("thread_id") if isinstance(new.event, dict) else None
    if isinstance(thread, str) and thread:
        labels["thread"] = line(thread)
    if new.parent_ticket_id:
        labels["parent"] = new.parent_ticket_id
    return labels
