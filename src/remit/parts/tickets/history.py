"""A ticket, folded from its events. Only events say what state it is in; the head adds who leases it. Pure.

Which tickets are derived from others, and what deriving one ended with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final

import msgspec

from remit.codes import Code
from remit.journal import kinds as k
from remit.journal.event import Event, StreamHead
from remit.parts.tickets import kinds
from remit.parts.tickets.ticket import Block, Metadata, Status, Ticket, moment


class TicketHistory:
    """Everything recorded of a ticket."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.created: kinds.TicketCreated | None = None
        self.status: Status = "pending"
        self.lease: kinds.TicketLeased | None = None
        """The newest lease; None once it was given up."""
        self.outputs: kinds.TicketCompleted | kinds.TicketFailed | kinds.TicketBlocked | None = None
        """The newest event that may carry outputs."""
        self.block: Block | None = None
        self.failure: Block | None = None
        self.retries = 0
        self.repeats = set[int]()
        """Attempts that a person let do again what was done."""
        self.derived: kinds.TicketDerived | None = None
        self.updated_at = 0
        for event in events:
            self.add(k.decode(event.kind, event.data), event.at)

    def add(self, payload: k.Payload | None, at: int) -> None:
        """Take in one more event."""
        fold = self._folds.get(type(payload))
        if fold is not None:
            fold(self, payload)
            self.updated_at = at

    def ticket(self, head: StreamHead, document: Any, outputs: Any) -> Ticket:
        """The ticket as faces show it, with the values that its events refer to."""
        created = self.created
        if created is None:
            msg = f"{head.stream} holds no ticket_created event"
            raise AssertionError(msg)
        leased = head.lease_owner is not None and self.lease is not None and self.status == "running"
        return Ticket(
            id=created.ticket,
            type=created.type,
            status=self.status,
            event=document.get("event"),
            tool_steps=document.get("tool_steps", msgspec.UNSET),
            metadata=Metadata(
                created_at=moment(head.created_at),
                updated_at=moment(self.updated_at),
                kind=created.type,
                assigned_to=document.get("assigned_to", ""),
                lease_owner=(head.lease_owner or "") if leased else "",
                lease_expires=moment(head.lease_until) if leased else "",
                retry_count=self.retries,
                parent_ticket_id=created.parent_ticket_id,
                triage_ticket_id=created.triage_ticket_id,
                tool_input=document.get("tool_input"),
                final_outputs=outputs,
                block=self.block,
                failure=self.failure,
                derived_ticket_id=self.derived.ticket if self.derived else "",
                derive_reason=self.derived.reason if self.derived else "",
            ),
        )

    # --- one method per kind

    def _created(self, payload: kinds.TicketCreated) -> None:
        self.created = payload

    def _leased(self, payload: kinds.TicketLeased) -> None:
        self.status, self.lease = "running", payload

    def _released(self, _payload: kinds.TicketReleased) -> None:
        self.status, self.lease = "pending", None

    def _completed(self, payload: kinds.TicketCompleted) -> None:
        self.status, self.lease, self.outputs = "done", None, payload
        self.block = self.failure = None

    def _failed(self, payload: kinds.TicketFailed) -> None:
        self.status, self.lease, self.outputs = "failed", None, payload
        self.failure = Block(code=payload.code, reason=payload.reason, source=payload.by)

    def _blocked(self, payload: kinds.TicketBlocked) -> None:
        self.status, self.lease, self.outputs = "blocked", None, payload
        self.block = Block(code=payload.code, reason=payload.reason, source=payload.source)

    def _retried(self, payload: kinds.TicketRetried) -> None:
        self.status, self.lease, self.retries = "pending", None, payload.retry_count
        self.block = self.failure = None
        if payload.repeat:
            self.repeats.add(payload.retry_count)

    def _derived(self, payload: kinds.TicketDerived) -> None:
        self.derived = payload

    _folds: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        kinds.TicketCreated: _created,
        kinds.TicketLeased: _leased,
        kinds.TicketReleased: _released,
        kinds.TicketCompleted: _completed,
        kinds.TicketFailed: _failed,
        kinds.TicketBlocked: _blocked,
        kinds.TicketRetried: _retried,
        kinds.TicketDerived: _derived,
    }


class Derivation(msgspec.Struct, frozen=True, kw_only=True):
    """Which tickets are derived."""

    replies: bool = False
    """Derive REPLY tickets (`ENABLE_REPLY_DERIVATION`)."""
    tool_only: bool = False
    """Stop after TOOL tickets, whatever their verdict."""


NO_DERIVATION: Final = Derivation()


class Derived(msgspec.Struct, frozen=True, kw_only=True):
    """What deriving ended with."""

    reason: str
    """Name of the code: one of the contract's reasons, or DERIVE_FAILED."""
    ticket: str = ""

    @property
    def ok(self) -> bool:
        """Return whether the derived ticket exists now."""
        return self.reason in _DERIVED


_DERIVED: Final = frozenset({Code.created.name, Code.idempotent.name, Code.recovered_orphan.name})
