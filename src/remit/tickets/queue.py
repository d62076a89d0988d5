"""What a runner needs of the tickets it works on, in this process or behind a server."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from remit.journal.leases import LeaseProof
from remit.tickets.derivation import Derived
from remit.tickets.ticket import Kind, Leased, Ticket


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """A completed ticket, and what was derived from it."""

    ticket: Ticket
    derived: Derived | None = None
    changed: bool = True
    """Whether it was completed now; if it was done before, its earlier outputs stay."""


class TicketQueue(Protocol):
    """Tickets that are leased, worked on, and ended under the lease's proof."""

    async def free(self, kind: Kind, *, wait_s: float = 0.0) -> bool:
        """Whether a ticket of this kind can be leased, now or within `wait_s` seconds. Leases nothing."""
        ...

    async def lease(self, kind: Kind, *, owner: str, limit: int, lease_sec: int) -> list[Leased]:
        """Lease the oldest tickets of a kind that are free."""
        ...

    async def renew(self, ticket: str, proof: LeaseProof, lease_sec: int) -> str:
        """Prolong a lease; return the time it ends. Raise StateError (lease_owner_mismatch) if it was lost."""
        ...

    async def release(self, ticket: str, proof: LeaseProof, reason: str = "") -> Ticket:
        """Return a leased ticket. Raise StateError as `renew` does."""
        ...

    async def fill(self, ticket: str, outputs: Any, *, proof: LeaseProof | None = None, by: str = "") -> Filled:
        """Complete a ticket with its outputs, then derive what follows. Raise StateError as `renew` does.

        `by` is a way in, not a person.
        """
        ...

    async def fail(self, ticket: str, proof: LeaseProof, *, code: str, reason: str, outputs: Any = None) -> Ticket:
        """Record that the work on a leased ticket failed. Raise StateError as `renew` does."""
        ...

    async def block(
        self, ticket: str, *, code: str, reason: str, source: str, proof: LeaseProof | None = None, outputs: Any = None
    ) -> Ticket:
        """Record why a ticket cannot go on. Raise StateError as `renew` does."""
        ...
