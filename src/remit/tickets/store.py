"""Tickets in the journal: create, list, lease, and every way a lease ends (contract: tickets, "States").

Each write compares the ticket's head in the transaction that writes, so two writers cannot both succeed. The lease
proof carries the fencing token (the head's epoch) and a secret whose digest is recorded with the lease. A lease that
merely ran out still counts until another worker has taken the ticket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import AppendConflictError, StateError, UsageError
from remit.journal import kinds as k
from remit.journal.blobs import Packed, pack
from remit.journal.event import NO_PATCH, Blob, Claim, HeadPatch, Lease
from remit.redact import line
from remit.tickets.derivation import NO_DERIVATION, Derivation
from remit.tickets.history import History
from remit.tickets.reading import FOLLOW, TicketReader
from remit.tickets.record import Kept, TicketRecord
from remit.tickets.ticket import (
    STREAM_KIND,
    Kind,
    Leased,
    NewTicket,
    Proof,
    Ticket,
    moment,
    new_ticket_id,
    stream_of,
    token_hash,
)

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.randomness import RandomSource

LEASE_SEC: Final = 300
MAX_LEASE_SEC: Final = 86_400
MAX_LEASED: Final = 100
"""Tickets leased by one request."""
DIRECT: Final = frozenset({"http_fill", "system", "manual"})
"""Who may complete a ticket that is pending (contract: tickets, "States")."""
_REASON: Final = 1_000
_TITLE: Final = 80
_ATTEMPTS: Final = 100
_LEASABLE: Final = frozenset({"pending", "running", "failed"})
"""States of a ticket that can be leased by its identifier; to lease a failed one counts as a retry."""
_LOOK: Final = "`remit tickets show ID` says what state it is in."

Check = Callable[[Kind], object]
Rejected = Callable[[Code, str], None]
"""Called with the code and the action of every write that was refused."""


def _uncounted(_code: Code, _action: str) -> None:
    """Count nothing."""


def _unchecked(_new: NewTicket) -> str:
    """Find nothing wrong."""
    return ""


def _anything(_kind: Kind) -> None:
    """Refuse nothing."""


class TicketStore(TicketReader):
    """Creates tickets and moves them from state to state; every method may be called from any process."""

    def __init__(
        self,
        journal: Journal,
        chance: RandomSource,
        *,
        rejected: Rejected = _uncounted,
        derivation: Derivation = NO_DERIVATION,
        problems: Callable[[NewTicket], str] = _unchecked,
    ) -> None:
        """Keep tickets in `journal`; `chance` draws lease tokens.

        `derivation` says which tickets are derived, and `problems` what is wrong with one that is to be.
        """
        super().__init__(journal)
        self._chance = chance
        self._rejected = rejected
        self.derivation = derivation
        self.problems = problems
        self._kept = Kept()

    # --- create

    async def create(self, new: NewTicket, *, principal: str = "", identifier: str = "") -> Ticket:
        """Create a ticket durably. Raise AppendConflictError if one with this identifier exists."""
        ticket = identifier or new_ticket_id()
        document = {"event": new.event, "tool_input": new.tool_input, "assigned_to": new.assigned_to}
        if new.tool_steps is not msgspec.UNSET:
            document["tool_steps"] = new.tool_steps
        packed = pack(msgspec.json.encode(document))
        created = k.TicketCreated(
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

    # --- lease

    async def lease(self, kind: Kind, *, owner: str, limit: int = 1, lease_sec: int = LEASE_SEC) -> list[Leased]:
        """Lease the oldest pending tickets of a kind, and those whose lease ran out; at most `limit`."""
        _check_lease(owner, limit, lease_sec)
        claim = self._claim(owner, lease_sec, routes=(kind,), limit=limit)
        leases = await self.journal.claim(claim)
        recorded = await asyncio.gather(*(self._record_lease(lease, owner) for lease in leases))
        return [leased for leased in recorded if leased is not None]

    async def lease_by_id(self, ticket: str, *, owner: str, lease_sec: int = LEASE_SEC) -> Leased:
        """Lease one ticket. Raise NotFoundError (not_found) or StateError (lease_conflict)."""
        _check_lease(owner, 1, lease_sec)
        found = await self.load(ticket)
        lease = None
        if found.history.status in _LEASABLE:
            lease = await self.journal.acquire(found.head.stream, self._claim(owner, lease_sec), None)
        leased = await self._record_lease(lease, owner) if lease is not None else None
        if leased is None:
            raise self._refusal(Code.lease_conflict, "lease", f"{ticket} is {await self._standing(ticket)}")
        return leased

    async def renew(self, ticket: str, proof: Proof, lease_sec: int = LEASE_SEC) -> str:
        """Prolong a lease; return the time it ends. Raise StateError (lease_owner_mismatch) if it was lost."""
        _check_lease(proof.owner, 1, lease_sec)
        found = self._kept.leased(ticket, proof) or self._proven(await self.load(ticket), proof, "renew")
        until = self.journal.clock.now() + lease_sec * SECOND
        if not await self.journal.renew(((found.head.stream, found.head.epoch),), until):
            raise self._lost(ticket, "renew")
        return moment(until)

    # --- ways a lease ends

    async def release(self, ticket: str, proof: Proof, reason: str = "") -> Ticket:
        """Give a ticket back: it is pending again."""
        released = k.TicketReleased(owner=proof.owner, reason=line(reason, _REASON) if reason else "")
        found = await self._held(ticket, proof, "release")
        patch = HeadPatch(state="pending", due_at=self.journal.clock.now(), release=True)
        return await self._written(found, released, patch, "release")

    async def complete(
        self, ticket: str, outputs: Any, *, proof: Proof | None = None, by: str = "", check: Check = _anything
    ) -> Ticket:
        """Finish a ticket with its outputs; once it is done, return it unchanged.

        A running ticket needs the lease proof. A pending one needs `by` to be `http_fill`, `system` or `manual`.
        `check` is called with the ticket's kind before anything is written, and may refuse the outputs.
        Raise StateError or UsageError (direct_fill_not_allowed, direct_fill_missing_by, lease_owner_mismatch).
        """
        found = self._leased_here(ticket, proof) or await self.load(ticket)
        for _ in range(_ATTEMPTS):
            history = found.history
            if history.status == "done":
                return await self.ticket(found)
            if history.created is not None:
                check(history.created.type)
            direct = self._completes_directly(found, proof, by)
            packed = pack(msgspec.json.encode(outputs))
            completed = k.TicketCompleted(
                by=by or (proof.owner if proof else ""), outputs=packed.inline, outputs_blob=packed.ref, direct=direct
            )
            followed = _is_followed(history, outputs)
            labels = {**found.head.labels, FOLLOW: "due"} if followed else found.head.labels
            patch = HeadPatch(state="done", due_at=None, closed=True, release=not direct, labels=labels)
            try:
                done = await self._append(found, completed, patch=patch, blobs=packed.blobs)
            except AppendConflictError:  # completed at the same moment, or leased by another: the next look tells
                found = await self.load(ticket)
                continue
            if followed:
                self._kept.put(found)
            return done
        raise self._refusal(Code.lease_conflict, "complete", f"{ticket}: too many writers at the same moment")

    async def fail(self, ticket: str, proof: Proof, *, code: str, reason: str, outputs: Any = None) -> Ticket:
        """Record that the work on a running ticket failed."""
        found = await self._held(ticket, proof, "fail")
        packed = _packed(outputs)
        failed = k.TicketFailed(
            code=code, reason=line(reason, _REASON), by=proof.owner, outputs=packed.inline, outputs_blob=packed.ref
        )
        patch = HeadPatch(state="failed", due_at=None, release=True)
        return await self._written(found, failed, patch, "fail", packed)

    async def block(
        self, ticket: str, *, code: str, reason: str, source: str, proof: Proof | None = None, outputs: Any = None
    ) -> Ticket:
        """Record why a pending ticket, or a running one with the lease proof, cannot go on."""
        if not (code and reason and source):
            raise UsageError("a block needs code, reason and source", remedy="Give all three.")
        found = self._leased_here(ticket, proof) or await self.load(ticket)
        status = found.history.status
        if status == "running":
            self._proven(found, proof, "block")
        elif status != "pending":
            raise self._state(ticket, status, "block")
        packed = _packed(outputs)
        blocked = k.TicketBlocked(
            code=code,
            reason=line(reason, _REASON),
            source=line(source),
            outputs=packed.inline,
            outputs_blob=packed.ref,
        )
        patch = HeadPatch(state="blocked", due_at=None, release=status == "running")
        return await self._written(found, blocked, patch, "block", packed)

    async def retry(self, ticket: str, *, by: str = "") -> Ticket:
        """Make a failed or blocked ticket pending again."""
        found = await self.load(ticket)
        if found.history.status not in {"failed", "blocked"}:
            raise self._state(ticket, found.history.status, "retry")
        retried = k.TicketRetried(by=by, retry_count=found.history.retries + 1)
        patch = HeadPatch(state="pending", due_at=self.journal.clock.now())
        return await self._written(found, retried, patch, "retry")

    async def derived(self, ticket: str, reason: str, *, child: str = "", message: str = "") -> Ticket:
        """Record what deriving the next ticket ended with."""
        note = k.TicketDerived(reason=reason, ticket=child, message=line(message, _REASON) if message else "")
        found = self._kept.take(ticket) or await self.load(ticket)
        for _ in range(_ATTEMPTS):
            known = found.history.derived
            if known is not None and known.ticket == child and child:
                return await self.ticket(found)
            labels = {name: text for name, text in found.head.labels.items() if name != FOLLOW}
            try:
                return await self._append(found, note, patch=HeadPatch(labels=labels))
            except AppendConflictError:
                found = await self.load(ticket)
        raise self._refusal(Code.lease_conflict, "derive", f"{ticket}: too many writers at the same moment")

    # --- common

    def _claim(self, owner: str, lease_sec: int, *, routes: tuple[str, ...] = (), limit: int = 1) -> Claim:
        now = self.journal.clock.now()
        return Claim(
            kind=STREAM_KIND,
            owner=owner,
            now=now,
            lease_until=now + lease_sec * SECOND,
            limit=limit,
            states=("pending", "running"),
            state="running",
            routes=routes,
        )

    async def _record_lease(self, lease: Lease, owner: str) -> Leased | None:
        """Record a lease; None if the ticket was filled directly at the same moment."""
        token = f"{lease.head.epoch}.{self._chance.uuid().hex}"
        until = lease.head.lease_until or 0
        leased = k.TicketLeased(owner=owner, token_hash=token_hash(token), expires_at=until)
        found = await self.record(lease.head)
        again = found.history.status == "failed"
        events = (k.TicketRetried(by=owner, retry_count=found.history.retries + 1), leased) if again else (leased,)
        try:
            ticket = await self._append(found, *events)
        except AppendConflictError:
            return None
        self._kept.put(found)
        return Leased(ticket=ticket, lease_owner=owner, lease_token=token, lease_expires=moment(until))

    def _leased_here(self, ticket: str, proof: Proof | None) -> TicketRecord | None:
        """The ticket as this process left it when it leased it, if this is the proof of that lease."""
        if proof is None or self._kept.leased(ticket, proof) is None:
            return None
        return self._kept.take(ticket)

    async def _held(self, ticket: str, proof: Proof, action: str) -> TicketRecord:
        return self._leased_here(ticket, proof) or self._proven(await self.load(ticket), proof, action)

    def _proven(self, found: TicketRecord, proof: Proof | None, action: str) -> TicketRecord:
        if not found.proven_by(proof):
            raise self._lost(found.id, action)
        return found

    def _completes_directly(self, found: TicketRecord, proof: Proof | None, by: str) -> bool:
        """Whether a ticket is completed without a lease. Raise StateError or UsageError for who may not complete it."""
        status = found.history.status
        if status == "pending" and proof is None:
            self._check_direct(by)
            return True
        if status == "running" or proof is not None:
            self._proven(found, proof, "complete")
            return False
        raise self._state(found.id, status, "complete")

    def _check_direct(self, by: str) -> None:
        if not by:
            raise self._refusal(
                Code.direct_fill_missing_by, "complete", "`by` is required to complete a pending ticket"
            )
        if by not in DIRECT:
            why = f"{line(by)!r} may not complete a pending ticket; {', '.join(sorted(DIRECT))} may"
            raise self._refusal(Code.direct_fill_not_allowed, "complete", why)

    async def _written(
        self, found: TicketRecord, payload: k.Payload, patch: HeadPatch, action: str, packed: Packed | None = None
    ) -> Ticket:
        try:
            return await self._append(found, payload, patch=patch, blobs=packed.blobs if packed else ())
        except AppendConflictError:
            raise self._lost(found.id, action) from None

    async def _append(
        self, found: TicketRecord, *payloads: k.Payload, patch: HeadPatch = NO_PATCH, blobs: Sequence[Blob] = ()
    ) -> Ticket:
        at = await self.journal.append(found.writer, *payloads, synced=True, patch=patch, blobs=blobs)
        found.wrote(payloads, at, patch)
        return await self.ticket(found)

    async def _standing(self, ticket: str) -> str:
        found = await self.load(ticket)
        running = found.head.lease_owner and found.history.status == "running"
        return f"leased by {found.head.lease_owner}" if running else found.history.status

    def _lost(self, ticket: str, action: str) -> StateError:
        why = f"the lease proof does not match the lease of {ticket}"
        return self._refusal(Code.lease_owner_mismatch, action, why)

    def _state(self, ticket: str, status: str, action: str) -> StateError:
        return self._refusal(Code.lease_conflict, action, f"{ticket} is {status}; it cannot {action} now")

    def _refusal(self, code: Code, action: str, why: str) -> StateError:
        self._rejected(code, action)
        return StateError(why, code=code, remedy=_LOOK)


def _is_followed(history: History, outputs: Any) -> bool:
    """Whether another ticket may have to be derived once this one is done."""
    if history.created is None or history.created.type == "REPLY":
        return False
    return history.created.type == "TOOL" or (isinstance(outputs, dict) and bool(outputs.get("tool_steps")))


def _packed(outputs: Any) -> Packed:
    return pack(msgspec.json.encode(outputs)) if outputs is not None else Packed(msgspec.UNSET, msgspec.UNSET, ())


def _check_lease(owner: str, limit: int, lease_sec: int) -> None:
    if not owner:
        raise UsageError("a lease needs an owner", remedy="Name the owner of the lease.")
    if not 1 <= limit <= MAX_LEASED:
        raise UsageError(f"a limit of {limit} is not between 1 and {MAX_LEASED}")
    if not 1 <= lease_sec <= MAX_LEASE_SEC:
        raise UsageError(f"a lease of {lease_sec} s is not between 1 and {MAX_LEASE_SEC} s")


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
