"""Leases on tickets: who holds one, and the proof of it (contract: tickets, "States").

The proof carries the fencing token (the head's epoch) and a secret whose digest is recorded with the lease. A lease
that merely ran out still counts until another worker has taken the ticket.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeGuard

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import AppendConflictError, ChainBrokenError, RemitError, StateError, UsageError
from remit.journal import kinds as k
from remit.journal.blobs import Packed
from remit.journal.event import NO_PATCH, Blob, HeadPatch, Lease, LeaseClaim
from remit.journal.leases import LeaseProof, LeaseTerms, Owner
from remit.parts.tickets import kinds
from remit.parts.tickets.reader import KeptRecords, TicketReader, TicketRecord
from remit.parts.tickets.ticket import STREAM_KIND, Kind, Leased, Ticket, moment
from remit.redact import line

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.randomness import RandomSource

LEASE_SEC: Final = 300
MAX_LEASE_SEC: Final = 86_400
MAX_LEASED: Final = 100
"""Tickets leased by one request."""
REASON: Final = 1_000
"""Characters that are kept of a reason."""
_LEASABLE: Final = ("pending", "running", "failed")
"""States of a ticket that can be leased. A failed one is due only if who leased it by its identifier died on the way.

A lease leaves `failed` in the head (OPEN_STATES): the event of the lease changes it, and seals it.
"""
_LOOK: Final = "`remit tickets show ID` says what state it is in."

Rejected = Callable[[Code, str], None]
"""Called with the code and the action of every write that was refused."""


def uncounted(_code: Code, _action: str) -> None:
    """Count nothing."""


class TicketLeases(TicketReader):
    """Leases tickets, and proves who holds one."""

    def __init__(self, journal: Journal, chance: RandomSource, rejected: Rejected) -> None:
        super().__init__(journal)
        self._chance = chance
        self._rejected = rejected
        self._records = KeptRecords()

    # --- lease

    async def lease(self, kind: Kind, *, owner: str, limit: int = 1, lease_sec: int = LEASE_SEC) -> list[Leased]:
        """Lease the oldest pending tickets of a kind, and those whose lease ran out, or whose process is dead here.

        One that cannot be read is told of in the log, and passed over until its lease ran out.
        """
        _check_lease(owner, limit, lease_sec)
        held: list[Leased] = []
        while len(held) < limit:
            claim = self._claim(owner, lease_sec, routes=(kind,), limit=limit - len(held))
            leases = await self.journal.claim(claim) or await self._left_by_the_dead(claim)
            ends = await asyncio.gather(
                *(self._record_lease(leased, owner) for leased in leases), return_exceptions=True
            )
            held += [end for end in ends if isinstance(end, Leased)]
            failures = {lease.head.stream: end for lease, end in zip(leases, ends, strict=True) if _failed(end)}
            for stream, error in failures.items():
                if not isinstance(error, ChainBrokenError):
                    await self._give_back(held, owner)
                    raise error
                self.pass_over(stream, error)
            if not failures:
                break
        return held

    async def lease_by_id(self, ticket: str, *, owner: str, lease_sec: int = LEASE_SEC) -> Leased:
        """Lease one ticket. Raise NotFoundError (not_found) or StateError (lease_conflict)."""
        _check_lease(owner, 1, lease_sec)
        ticket_read = await self.load(ticket)
        lease = None
        if ticket_read.history.status in _LEASABLE:
            lease = await self.journal.acquire(ticket_read.head.stream, self._claim(owner, lease_sec), None)
        leased = await self._record_lease(lease, owner) if lease is not None else None
        if leased is None:
            raise self._refusal(Code.lease_conflict, "lease", f"{ticket} is {await self._standing(ticket)}")
        return leased

    async def renew(self, ticket: str, proof: LeaseProof, lease_sec: int = LEASE_SEC) -> str:
        _check_lease(proof.owner, 1, lease_sec)
        ticket_read = self._records.leased(ticket, proof) or self._proven(await self.load(ticket), proof, "renew")
        until = self.journal.clock.now() + lease_sec * SECOND
        if not await self.journal.renew(((ticket_read.head.stream, ticket_read.head.epoch),), until):
            raise self._lost(ticket, "renew")
        return moment(until)

    async def release(self, ticket: str, proof: LeaseProof, reason: str = "") -> Ticket:
        released = kinds.TicketReleased(owner=proof.owner, reason=line(reason, REASON) if reason else "")
        ticket_read = await self._held(ticket, proof, "release")
        patch = HeadPatch(state="pending", due_at=self.journal.clock.now(), release=True)
        return await self._written(ticket_read, released, patch, "release")

    # --- common

    async def _left_by_the_dead(self, claim: LeaseClaim) -> list[Lease]:
        """Take over what processes of this machine held when they died."""
        taken: list[Lease] = []
        for head in await self.journal.leases(STREAM_KIND):
            holder = Owner.parse(head.lease_owner or "")
            if len(taken) < claim.limit and head.route in claim.routes and holder is not None and holder.dead():
                lease = await self.journal.acquire(head.stream, claim, over=head.lease_owner)
                taken += [lease] if lease is not None else []
        return taken

    def _claim(self, owner: str, lease_sec: int, *, routes: tuple[str, ...] = (), limit: int = 1) -> LeaseClaim:
        terms = LeaseTerms(kind=STREAM_KIND, owner=owner, seconds=lease_sec, states=_LEASABLE, state="running")
        return terms.claim(self.journal.clock.now(), limit=limit, routes=routes)

    async def _record_lease(self, lease: Lease, owner: str) -> Leased | None:
        """Record a lease; None if the ticket was filled directly at the same moment."""
        proof = LeaseProof.drawn(lease.head, self._chance)
        until = lease.head.lease_until or 0
        leased = kinds.TicketLeased(owner=owner, token_hash=proof.digest, expires_at=until)
        record = await self.record(lease.head)
        again = record.history.status == "failed"
        events = (kinds.TicketRetried(by=owner, retry_count=record.history.retries + 1), leased) if again else (leased,)
        patch = HeadPatch(state="running") if again else NO_PATCH
        try:
            ticket = await self._append(record, *events, patch=patch)
        except AppendConflictError:
            return None
        self._records.put(record)
        return Leased(ticket=ticket, lease_owner=owner, lease_token=proof.token, lease_expires=moment(until))

    async def _give_back(self, held: Sequence[Leased], owner: str) -> None:
        """Release what was leased beside a ticket whose lease failed; what cannot be released lapses by itself."""
        for leased in held:
            with contextlib.suppress(RemitError):
                await self.release(leased.ticket.id, LeaseProof(owner=owner, token=leased.lease_token))

    def _leased_here(self, ticket: str, proof: LeaseProof | None) -> TicketRecord | None:
        """The ticket as this process left it when it leased it, if this is the proof of that lease."""
        if proof is None or self._records.leased(ticket, proof) is None:
            return None
        return self._records.take(ticket)

    async def _held(self, ticket: str, proof: LeaseProof, action: str) -> TicketRecord:
        return self._leased_here(ticket, proof) or self._proven(await self.load(ticket), proof, action)

    def _proven(self, record: TicketRecord, proof: LeaseProof | None, action: str) -> TicketRecord:
        if not record.proven_by(proof):
            raise self._lost(record.id, action)
        return record

    async def _written(
        self, record: TicketRecord, payload: k.Payload, patch: HeadPatch, action: str, packed: Packed | None = None
    ) -> Ticket:
        try:
            return await self._append(record, payload, patch=patch, blobs=packed.blobs if packed else ())
        except AppendConflictError:
            raise self._lost(record.id, action) from None

    async def _append(
        self, record: TicketRecord, *payloads: k.Payload, patch: HeadPatch = NO_PATCH, blobs: Sequence[Blob] = ()
    ) -> Ticket:
        at = await self.journal.append(record.writer, *payloads, synced=True, patch=patch, blobs=blobs)
        record.wrote(payloads, at, patch)
        return await self.ticket(record)

    async def _standing(self, ticket: str) -> str:
        ticket_read = await self.load(ticket)
        running = ticket_read.head.lease_owner and ticket_read.history.status == "running"
        return f"leased by {ticket_read.head.lease_owner}" if running else ticket_read.history.status

    def _lost(self, ticket: str, action: str) -> StateError:
        reason = f"the lease proof does not match the lease of {ticket}"
        return self._refusal(Code.lease_owner_mismatch, action, reason)

    def _state(self, ticket: str, status: str, action: str) -> StateError:
        return self._refusal(Code.lease_conflict, action, f"{ticket} is {status}; it cannot {action} now")

    def _refusal(self, code: Code, action: str, reason: str) -> StateError:
        self._rejected(code, action)
        return StateError(reason, code=code, remedy=_LOOK)


def _failed(end: Leased | BaseException | None) -> TypeGuard[BaseException]:
    return isinstance(end, BaseException)


def _check_lease(owner: str, limit: int, lease_sec: int) -> None:
    if not owner:
        raise UsageError("a lease needs an owner", remedy="Name the owner of the lease.")
    if not 1 <= limit <= MAX_LEASED:
        raise UsageError(f"a limit of {limit} is not between 1 and {MAX_LEASED}")
    if not 1 <= lease_sec <= MAX_LEASE_SEC:
        raise UsageError(f"a lease of {lease_sec} s is not between 1 and {MAX_LEASE_SEC} s")
