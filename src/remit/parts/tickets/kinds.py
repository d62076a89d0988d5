"""Events of a ticket's stream (contract: tickets). All of these kinds are ours."""

from __future__ import annotations

from typing import ClassVar, Literal

from remit.clock import isoformat
from remit.journal.kinds.payload import UNSET, OptionalRaw, OptionalRef, Payload
from remit.record.step import joined, shown

TicketKind = Literal["TRIAGE", "TOOL", "REPLY"]


class TicketCreated(Payload, frozen=True, kw_only=True):
    """Ours, first in a ticket's stream: what is asked, exactly as it came."""

    KIND: ClassVar[str] = "ticket_created"
    ticket: str
    type: TicketKind
    document: OptionalRaw = UNSET
    document_blob: OptionalRef = UNSET
    parent_ticket_id: str = ""
    triage_ticket_id: str = ""
    principal: str = ""

    def words(self) -> str:
        return joined(self.type, f"by {self.principal}" if self.principal else "")


class TicketLeased(Payload, frozen=True, kw_only=True):
    """Ours: a worker holds the ticket. The token itself is not recorded."""

    KIND: ClassVar[str] = "ticket_leased"
    owner: str
    token_hash: str
    """SHA-256 of the lease token, hexadecimal."""
    expires_at: int

    def words(self) -> str:
        return f"by {self.owner} until {isoformat(self.expires_at)}"


class TicketReleased(Payload, frozen=True, kw_only=True):
    """Ours: the worker gave the ticket back unfinished."""

    KIND: ClassVar[str] = "ticket_released"
    owner: str
    reason: str = ""

    def words(self) -> str:
        return joined(f"by {self.owner}", self.reason)


class TicketCompleted(Payload, frozen=True, kw_only=True):
    """Ours: the ticket is done."""

    KIND: ClassVar[str] = "ticket_completed"
    by: str
    """`http_fill`, `system` or `manual`; a worker with a lease: its name."""
    outputs: OptionalRaw = UNSET
    outputs_blob: OptionalRef = UNSET
    direct: bool = False
    """Completed while pending, without a lease."""

    def words(self) -> str:
        return joined(f"by {self.by}", shown(self.outputs, self.outputs_blob))


class TicketFailed(Payload, frozen=True, kw_only=True):
    """Ours: the ticket's work failed."""

    KIND: ClassVar[str] = "ticket_failed"
    code: str
    reason: str = ""
    by: str = ""
    outputs: OptionalRaw = UNSET
    outputs_blob: OptionalRef = UNSET

    def words(self) -> str:
        return joined(f"{self.code}:", self.reason, f"by {self.by}" if self.by else "")


class TicketBlocked(Payload, frozen=True, kw_only=True):
    """Ours: the ticket cannot go on before something outside it changes."""

    KIND: ClassVar[str] = "ticket_blocked"
    code: str
    reason: str
    source: str
    outputs: OptionalRaw = UNSET
    outputs_blob: OptionalRef = UNSET

    def words(self) -> str:
        return joined(f"{self.code}:", self.reason, f"by {self.source}")


class TicketRetried(Payload, frozen=True, kw_only=True):
    """Ours: a failed or blocked ticket is pending again."""

    KIND: ClassVar[str] = "ticket_retried"
    by: str = ""
    retry_count: int
    repeat: bool = False
    """Calls that took effect, or may have, are made again in this attempt."""

    def words(self) -> str:
        again = "repeating what took effect" if self.repeat else ""
        return joined(f"retry {self.retry_count}", again, f"by {self.by}" if self.by else "")


class TicketDerived(Payload, frozen=True, kw_only=True):
    """Ours, in the parent's stream: what deriving the next ticket ended with."""

    KIND: ClassVar[str] = "ticket_derived"
    reason: str
    """A reason of the contract (tickets, "TOOL → REPLY"), or DERIVE_FAILED."""
    ticket: str = ""
    """The derived ticket; empty if nothing was derived."""
    message: str = ""

    def words(self) -> str:
        return joined(self.reason, self.ticket, self.message)
