"""A client's session, through whatever happens to its storage."""

from __future__ import annotations

import asyncio

import pytest

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.journal import Journal
from remit.journal.sqlite.store import MEMORY, SqliteStore
from remit.mcp_server.client import Client
from remit.testing.clock import ManualClock
from remit.testing.journal.storage import note


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded before", "nothing recorded"])
async def test_a_session_goes_on_once_the_storage_is_mended(recorded: bool) -> None:
    clock = ManualClock()
    journal = Journal(SqliteStore(MEMORY, clock), clock)
    client = Client(journal, principal="alice", name="editor", version="1", transport="stdio")
    stream = f"session/{client.session}"
    failed = await client.writer() if recorded else journal.writer(stream, "session")
    client._writer = failed
    await journal.drained()
    failed.fail(JournalError("full", code=Code.JOURNAL_FULL))
    one, other = await asyncio.gather(client.writer(), client.writer())
    assert one is other is await client.writer()
    await journal.append(one, note(1), synced=True)
    assert [event.kind for event in await journal.read(stream)] == ["session_opened", note(1).KIND]
    assert (await journal.verify(stream)) == 2
    await journal.close()
