"""The kinds of streams that the promises of a lease are tried on: a plain one, a job, and a ticket."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from remit.codes import Code
from remit.errors import AppendConflictError, StateError
from remit.gateway.confirmations import Confirmations
from remit.jobs.execution import LeasedJob
from remit.journal.event import HeadPatch
from remit.journal.journal import Journal
from remit.journal.kinds import JobCreated
from remit.journal.leases import HeldLease, LeaseProof, LeaseTerms, renew_all
from remit.parts.tickets.store import TicketStore
from remit.parts.tickets.ticket import NewTicket
from remit.randomness import SystemRandomSource
from remit_testing.journal.storage import due, note
from remit_testing.leases import LEASE_S, Make

STREAM: Final = "job/a"


class StreamHolder:
    """A lease on a plain stream."""

    def __init__(self, held: HeldLease) -> None:
        self.held = held

    async def renew(self) -> bool:
        journal = self.held.journal
        return not await renew_all(journal, [self.held], TERMS.until(journal.clock.now()))

    async def release(self) -> bool:
        try:
            return await self.give_up()
        except AppendConflictError:
            return False

    async def give_up(self) -> bool:
        patch = HeadPatch(state="pending", due_at=self.held.journal.clock.now())
        await self.held.release(note(2), patch=patch)
        return True


class JobHolder(StreamHolder):
    """A lease on a job, which is left as if it waited for a time that has come."""

    def __init__(self, leased: LeasedJob) -> None:
        super().__init__(leased)
        self.leased = leased

    async def give_up(self) -> bool:
        return await self.leased.wait(self.leased.journal.clock.now(), "waiting", "a timer")


TERMS: Final = LeaseTerms(kind="job", owner="", seconds=LEASE_S, state="running")


class PlainStream:
    """A stream that is held by nothing but its lease."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    async def lease(self, owner: str) -> StreamHolder | None:
        terms = LeaseTerms(kind="job", owner=owner, seconds=LEASE_S, state="running")
        lease = await self.journal.acquire(STREAM, terms.claim(self.journal.clock.now()))
        return StreamHolder(HeldLease(self.journal, lease.head)) if lease is not None else None


class JobStream(PlainStream):
    """A job."""

    async def lease(self, owner: str) -> JobHolder | None:
        terms = LeaseTerms(kind="job", owner=owner, seconds=LEASE_S, state="running")
        leases = await self.journal.claim(terms.claim(self.journal.clock.now()))
        return JobHolder(LeasedJob(self.journal, Confirmations(self.journal), leases[0])) if leases else None


class TicketHolder:
    """The proof of a lease on a ticket."""

    def __init__(self, store: TicketStore, ticket: str, proof: LeaseProof) -> None:
        self.store = store
        self.ticket = ticket
        self.proof = proof

    async def renew(self) -> bool:
        return await accepted(self.store.renew(self.ticket, self.proof, LEASE_S))

    async def release(self) -> bool:
        return await accepted(self.store.release(self.ticket, self.proof))


async def accepted(write: Awaitable[object]) -> bool:
    """Whether a write on a ticket was taken for its holder's."""
    try:
        await write
    except StateError as error:
        if error.code is not Code.lease_owner_mismatch:
            raise
        return False
    return True


class TicketStream:
    """A ticket."""

    def __init__(self, store: TicketStore) -> None:
        self.store = store

    async def lease(self, owner: str) -> TicketHolder | None:
        leases = await self.store.lease("TOOL", owner=owner, lease_sec=LEASE_S)
        if not leases:
            return None
        (leased,) = leases
        return TicketHolder(self.store, leased.ticket.id, LeaseProof(owner=owner, token=leased.lease_token))


async def a_stream(journal: Journal) -> PlainStream:
    await journal.create(STREAM, "job", note(1), patch=due(journal.clock.now(), state="pending"))
    return PlainStream(journal)


async def a_job(journal: Journal) -> JobStream:
    patch = due(journal.clock.now(), state="pending")
    await journal.create(STREAM, "job", JobCreated(kind="recipe", name="r"), patch=patch)
    return JobStream(journal)


async def a_ticket(journal: Journal) -> TicketStream:
    store = TicketStore(journal, SystemRandomSource())
    await store.create(NewTicket(type="TOOL", event={"type": "message", "thread_id": "t", "content": "x"}))
    return TicketStream(store)


KINDS: Final[dict[str, Make]] = {"stream": a_stream, "job": a_job, "ticket": a_ticket}
