"""A ticket as it was read, brought up to date by each write of this process, so that nothing is read twice.

The record of a leased ticket is kept until the lease ends. If another process writes meanwhile, the kept record is
out of date, and a write from it is refused, like the write of any writer that comes too late.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from remit.journal.event import UNSET, Event, HeadPatch, StreamHead
from remit.parts.tickets.history import TicketHistory

if TYPE_CHECKING:
    from remit.journal.kinds import Payload
    from remit.journal.leases import LeaseProof
    from remit.journal.writer import StreamWriter

_KEPT: Final = 1_000
"""Leased tickets of which one process keeps the record."""


class TicketRecord:
    """A ticket's head, its history, and the writer that continues from there."""

    def __init__(self, head: StreamHead, events: Iterable[Event], writer: StreamWriter) -> None:
        self.head = head
        self.history = TicketHistory(event for event in events if event.seq <= head.seq)
        self.writer = writer

    @property
    def id(self) -> str:
        """The ticket."""
        return self.head.stream.partition("/")[2]

    def proven_by(self, proof: LeaseProof | None) -> bool:
        """Return whether this is the proof of the lease that the ticket is running under."""
        lease = self.history.lease
        return (
            proof is not None
            and lease is not None
            and self.history.status == "running"
            and proof.proves(self.head, lease.owner, lease.token_hash)
        )

    def wrote(self, payloads: Iterable[Payload], at: int, patch: HeadPatch) -> None:
        """Take in what was written."""
        for payload in payloads:
            self.history.add(payload, at)
        if patch.release:
            self.head = replace(self.head, lease_owner=None, lease_until=None)
        if patch.labels is not UNSET:
            self.head = replace(self.head, labels=patch.labels)


class KeptRecords:
    """Records of tickets that this process leased or has just completed. Who takes one has it alone."""

    def __init__(self) -> None:
        self._records: OrderedDict[str, TicketRecord] = OrderedDict()

    def put(self, record: TicketRecord) -> None:
        """Keep a record; the oldest makes room for it."""
        self._records[record.id] = record
        if len(self._records) > _KEPT:
            self._records.popitem(last=False)

    def take(self, ticket: str) -> TicketRecord | None:
        """The record of a ticket, which is no longer kept then."""
        return self._records.pop(ticket, None)

    def leased(self, ticket: str, proof: LeaseProof) -> TicketRecord | None:
        """The record of a ticket if this is the proof of its lease; it stays kept."""
        record = self._records.get(ticket)
        return record if record is not None and record.proven_by(proof) else None
