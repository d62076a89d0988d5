"""Tickets on SQLite."""

from pathlib import Path
from typing import Any

import pytest

from remit.journal.event import Event
from remit.journal.leases import LeaseProof
from remit.parts.tickets.store import TicketStore
from remit.parts.tickets.ticket import NewTicket
from remit.randomness import SystemRandomSource
from remit_testing.clock import ManualClock
from remit_testing.tickets import TICKET_CHECKS, Check
from tests.journal.storages import KEYS, SqliteStorage


@pytest.mark.whole
@pytest.mark.parametrize("check", TICKET_CHECKS, ids=lambda check: check.__name__)
async def test_tickets_in_memory_keep_the_contract(check: Check) -> None:
    await check(SqliteStorage())


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("check", TICKET_CHECKS, ids=lambda check: check.__name__)
async def test_tickets_in_a_file_keep_the_contract(check: Check, tmp_path: Path, key: str) -> None:
    await check(SqliteStorage(tmp_path / "journal.db", KEYS[key]))


async def test_a_ticket_is_read_once_from_its_lease_to_what_follows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    async with SqliteStorage().open(ManualClock()) as journal:
        plain = journal.read

        async def read(stream: str, *rest: Any) -> list[Event]:
            reads.append(stream)
            return await plain(stream, *rest)

        store = TicketStore(journal, SystemRandomSource())
        await store.create(NewTicket(type="TOOL", event={"type": "message", "thread_id": "t", "content": "x"}))
        monkeypatch.setattr(journal, "read", read)
        (leased,) = await store.lease("TOOL", owner="worker")
        proof = LeaseProof(owner="worker", token=leased.lease_token)
        await store.renew(leased.ticket.id, proof)
        await store.complete(leased.ticket.id, {"tool_verdict": "PROCEED"}, proof=proof)
        last = await store.derived(leased.ticket.id, "gate_tool_only_mode")
        assert reads == [f"ticket/{leased.ticket.id}"]
        assert await store.get(leased.ticket.id) == last
