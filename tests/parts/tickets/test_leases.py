"""One ticket that cannot be leased, and those beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import JournalError
from remit.journal.copy import seal_all
from remit.journal.event import Append, Event, LeaseClaim, StreamHead, link
from remit.journal.journal import Journal
from remit.journal.leases import LeaseProof
from remit.parts.tickets.reader import TicketRecord
from remit.parts.tickets.store import TicketStore
from remit.parts.tickets.ticket import STREAM_KIND, NewTicket, stream_of
from remit.randomness import SystemRandomSource
from remit_testing.clock import ManualClock
from tests.journal.storages import KEYS, SqliteStorage

EVENT = {"type": "message", "thread_id": "t", "content": "x"}


class FlakyStore(TicketStore):
    """Cannot read one of its tickets, because the disk fails."""

    bad = ""

    async def record(self, head: StreamHead) -> TicketRecord:
        if head.stream == stream_of(self.bad):
            raise JournalError("the disk failed", code=Code.JOURNAL_IO)
        return await super().record(head)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=KEYS)
async def store(request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path) -> AsyncIterator[FlakyStore]:
    async with SqliteStorage(tmp_path / "journal.db", KEYS[request.param]).open(clock) as journal:
        yield FlakyStore(journal, SystemRandomSource())


async def created(store: TicketStore) -> str:
    return (await store.create(NewTicket(type="TOOL", event=EVENT))).id


async def spoil(journal: Journal, stream: str) -> None:
    """Append an event that is chained as it should be, and cannot be read."""
    head = await journal.head(stream)
    assert head is not None
    chained = link(head.hash, head.seq + 1, head.updated_at, "ticket_blocked", b"{")
    event = Event(stream, head.seq + 1, "ticket_blocked", head.updated_at, b"{", chained)
    await journal.replicate(
        Append(
            stream=stream,
            kind=head.kind,
            expect_seq=head.seq,
            expect_hash=head.hash,
            epoch=head.epoch,
            events=(event,),
            at=head.updated_at,
        )
    )


async def test_a_ticket_that_cannot_be_read_is_passed_over_and_told_of_once(
    store: FlakyStore, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    bad, first, last = [await created(store) for _ in range(3)]
    await spoil(store.journal, stream_of(bad))
    one = await store.lease("TOOL", owner="worker", lease_sec=10)
    two = await store.lease("TOOL", owner="worker", lease_sec=10)
    assert [held.ticket.id for held in (*one, *two)] == [first, last]
    assert await store.lease("TOOL", owner="worker", lease_sec=10) == []
    clock.advance(11)
    assert [held.ticket.id for held in await store.lease("TOOL", owner="worker", limit=3)] == [first, last]
    (record,) = caplog.records
    assert (record.levelname, bad in record.getMessage()) == ("ERROR", True)


async def test_what_follows_a_ticket_that_cannot_be_read_does_not_hold_up_the_others(store: FlakyStore) -> None:
    bad, good = [await created(store) for _ in range(2)]
    for ticket in (bad, good):
        await store.complete(ticket, {}, by="system")
    await spoil(store.journal, stream_of(bad))
    assert [ticket.id for ticket in await store.unfollowed(10)] == [good]


async def test_if_the_journal_fails_what_was_leased_beside_it_is_given_back(store: FlakyStore) -> None:
    first, bad, last = [await created(store) for _ in range(3)]
    store.bad = bad
    with pytest.raises(JournalError) as raised:
        await store.lease("TOOL", owner="worker", limit=3)
    assert raised.value.code is Code.JOURNAL_IO
    assert [(await store.get(ticket)).status for ticket in (first, last)] == ["pending", "pending"]
    assert [held.ticket.id for held in await store.lease("TOOL", owner="other", limit=3)] == [first, last]


async def test_a_failed_ticket_that_an_older_remit_leased_is_set_back_by_sealing(
    clock: ManualClock, tmp_path: Path
) -> None:
    """It changed the state in the head, which the seal covers, and wrote no other seal."""
    async with SqliteStorage(tmp_path / "journal.db", KEYS["sealed"]).open(clock) as journal:
        store = TicketStore(journal, SystemRandomSource())
        ticket, other = await created(store), await created(store)
        (leased,) = await store.lease("TOOL", owner="worker")
        await store.fail(
            ticket, LeaseProof(owner="worker", token=leased.lease_token), code="TOOL_FAILED", reason="boom"
        )
        await lease_as_before(journal, stream_of(ticket), clock.now())
        clock.advance(10)
        with pytest.raises(JournalError) as raised:
            await journal.verify(stream_of(ticket))
        assert raised.value.code is Code.HEAD_FORGED
        assert "remit journal seal" in raised.value.remedy
        assert [held.ticket.id for held in await store.lease("TOOL", owner="worker", lease_sec=1)] == [other]
        clock.advance(2)
        sealed = await seal_all(journal)
        assert (sealed.sealed, sealed.unsealed, sealed.problems) == (1, (), ())
        await journal.verify(stream_of(ticket))
        assert (await store.page(states=("failed",)))[0].id == ticket
        assert (await store.lease_by_id(ticket, owner="worker")).ticket.metadata.retry_count == 1
        await journal.verify(stream_of(ticket))


async def lease_as_before(journal: Journal, stream: str, now: int) -> None:
    terms = LeaseClaim(kind=STREAM_KIND, owner="older", now=now, lease_until=now + SECOND)
    assert await journal.acquire(stream, terms) is not None
    await journal._store._in_transaction(  # type: ignore[attr-defined] # what no writer does any more
        lambda db: db.execute("UPDATE heads SET state = 'running' WHERE stream = ?", (stream,)).fetchall()
    )
