"""Tickets as the journal holds them now, brought up to date by each write of this process: nothing is read twice."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import ChainBrokenError, NotFoundError
from remit.journal.event import UNSET, Event, HeadPatch, HeadQuery, StreamHead
from remit.journal.leases import LeaseProof, heads_changed_within
from remit.journal.values import is_pruned
from remit.parts.tickets.history import Derived, TicketHistory
from remit.parts.tickets.ticket import STREAM_KIND, Kind, Leased, Status, Ticket, stream_of
from remit.redact import line

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.journal.kinds import Payload
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
    """Records of leased tickets, each until its lease ends.

    If another process writes meanwhile, the kept record is out of date, and a write from it is refused, like the write
    of any writer that comes too late. Who takes one has it alone.
    """

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


_log: Final = logging.getLogger("remit.tickets")
FOLLOW: Final = "follow"
"""Label of a ticket that is done, while what follows it is still to be derived."""


class TicketReader:
    """Loads and lists tickets."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._unreadable = set[str]()
        """Streams that were passed over, and told of in the log."""

    async def get(self, ticket: str) -> Ticket:
        """A ticket as it is now. Raise NotFoundError (not_found)."""
        return await self.ticket(await self.load(ticket))

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
        labels = {name: value for name, value in (("type", kind or ""), ("thread", thread)) if value}
        query = HeadQuery(
            kind=STREAM_KIND, states=states, labels=labels, before=stream_of(before) if before else None, limit=limit
        )
        heads = await self.journal.heads(query)
        return list(await asyncio.gather(*(self._at(head) for head in heads if not is_pruned(head))))

    async def unfollowed(self, limit: int) -> list[Ticket]:
        """Tickets that are done and whose successor was not derived: the process that completed them died.

        One that cannot be read is told of in the log, once, and left out.
        """
        query = HeadQuery(kind=STREAM_KIND, states=("done",), labels={FOLLOW: "due"}, limit=limit)
        tickets = []
        for head in await self.journal.heads(query):
            try:
                record = await self.record(head)
                if record.writer.doubt is not None:
                    raise record.writer.doubt
                tickets.append(await self.ticket(record))
            except ChainBrokenError as error:
                self.pass_over(head.stream, error)
        return tickets

    def pass_over(self, stream: str, error: ChainBrokenError) -> None:
        """Say why a ticket is left out of a queue, once."""
        if stream not in self._unreadable:
            self._unreadable.add(stream)
            _log.error("%s is passed over: %s -> %s", stream, error, error.remedy or "Run `remit verify`.")

    async def free(self, kind: Kind, *, wait_s: float = 0.0) -> bool:
        """Return whether a ticket of this kind can be leased, now or within `wait_s` seconds."""
        clock = self.journal.clock
        end = clock.now() + round(wait_s * SECOND)
        mark = await self.journal.heads_changed(0)
        while True:
            now = clock.now()
            due = await self.journal.next_due(STREAM_KIND, (kind,))
            if due is not None and due <= now:
                return True
            if now >= end:
                return False
            until = min(end, due) if due is not None else end
            mark = await heads_changed_within(self.journal, mark, (until - now) / SECOND)

    async def load(self, ticket: str) -> TicketRecord:
        """A ticket as it is now. Raise NotFoundError (not_found)."""
        head = await self.journal.head(stream_of(ticket))
        if head is None or head.kind != STREAM_KIND:
            raise NotFoundError(f"no ticket {line(ticket)}", code=Code.not_found, remedy="`remit tickets list`")
        return await self.record(head)

    async def record(self, head: StreamHead) -> TicketRecord:
        """A ticket up to this head."""
        writer = self.journal.writer(head.stream, STREAM_KIND, head)
        return TicketRecord(head, await self.journal.read(head.stream), writer)

    async def ticket(self, record: TicketRecord) -> Ticket:
        """The ticket, with the values that its events refer to."""
        created, ended = record.history.created, record.history.outputs
        document = await self.journal.value(created.document, created.document_blob) if created else None
        outputs = await self.journal.value(ended.outputs, ended.outputs_blob) if ended else None
        return record.history.ticket(
            record.head,
            msgspec.json.decode(document) if document is not None else {},
            msgspec.json.decode(outputs) if outputs is not None else None,
        )

    async def _at(self, head: StreamHead) -> Ticket:
        return await self.ticket(await self.record(head))


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """A completed ticket, and what was derived from it."""

    ticket: Ticket
    derived: Derived | None = None
    changed: bool = True
    """Whether it was completed now; if it was done before, its earlier outputs stay."""


class TicketQueue(Protocol):
    """Tickets that are leased, worked on, and ended under the lease's proof."""

    async def free(self, kind: Kind, *, wait_s: float = 0.0) -> bool:
        """Return whether a ticket of this kind can be leased, now or within `wait_s` seconds. Lease nothing."""
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
