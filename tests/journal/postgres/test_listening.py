"""News of other processes: whatever they did while nobody listened, or while the line was gone."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator

import asyncpg
import pytest

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import JournalError
from remit.journal.journal import Journal
from remit.journal.postgres import queries
from remit.journal.postgres import server as connecting
from remit.journal.postgres.server import Address, connect
from remit_testing.clock import START, ManualClock
from remit_testing.journal.storage import LEASE, head_of, holder, job, note, numbers, refused, terms
from tests.journal.postgres.relay import Relay
from tests.journal.postgres.server import PostgresServer
from tests.journal.storages import PostgresStorage
from tests.patience import PATIENCE_S


async def until_it_fails(journal: Journal, mark: int) -> int:
    """Wait for news until there can be none; the last mark."""
    while True:
        try:
            mark = await journal.changed(mark)
        except JournalError:
            return mark


async def test_what_was_written_while_the_line_was_gone_is_no_secret(
    journal: Journal, line: Relay, storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "PATIENCE_S", 0.05)
    async with storage.open(SystemClock()) as other:
        writer = await job(other, "job/a")
        mark = await journal.changed(0)
        line.refusing = True
        line.cut_all()
        # A waiter is told once the server was away for too long. From then on nobody looks for it.
        mark = await until_it_fails(journal, mark)
        await other.append(writer, note(2), synced=True)
        line.refusing = False
        assert await journal.changed(mark) > mark
        assert (await head_of(journal)).seq == 2


async def test_a_lost_connection_is_no_silence(
    journal: Journal, line: Relay, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: asyncio.Queue[str] = asyncio.Queue()
    log = logging.getLogger("remit.journal")
    monkeypatch.setattr(log, "warning", lambda text, *values: said.put_nowait(text % values))
    await journal.changed(0)
    line.cut_all()
    async with asyncio.timeout(PATIENCE_S):
        told = [await said.get(), await said.get()]
    where = f"postgresql://{line.folder}/postgres?schema={schema}"
    assert told == [f"{where}: connection lost; trying again for up to 30 s", f"{where}: connected again"]


async def test_leases_taken_and_given_back_are_news_and_renewals_are_none(
    postgres: PostgresServer, schema: str, storage: PostgresStorage
) -> None:
    connection = await asyncpg.connect(postgres.url)
    heard: asyncio.Queue[str] = asyncio.Queue()
    async with storage.open(ManualClock()) as journal:
        for stream in ("job/a", "job/b", "job/c"):
            await job(journal, stream)
        await connection.add_listener(f"{schema}_changed", lambda *news: heard.put_nowait(str(news[-1])))
        leases = await journal.claim(terms(limit=2))
        await holder(journal, "job/c")
        held = [(lease.head.stream, lease.head.epoch) for lease in leases]
        assert len(await journal.renew(held, START + 2 * LEASE)) == 2
        session = await connect(Address.parse(storage.url))
        await queries.give_back(session, leases[:1], START)
        await session.close()
    await connection.execute(f"NOTIFY {schema}_changed, 'end'")
    assert [await heard.get() for _ in range(4)] == ["heads", "heads", "heads", "end"]
    await connection.close()


@pytest.fixture
def forgetful() -> Iterator[PostgresServer]:
    """A server that keeps few notifications for those who do not listen to them."""
    with PostgresServer.running(max_notify_queue_pages="64") as server:
        yield server


async def test_a_server_that_can_notify_no_more_can_be_mended(forgetful: PostgresServer) -> None:
    async def fill(notification: str) -> None:
        with contextlib.suppress(asyncpg.ProgramLimitExceededError):
            while True:
                await other.execute(f"SELECT pg_notify('x', {notification}) FROM generate_series(1, 8) AS n")

    deaf, other = await asyncpg.connect(forgetful.url), await asyncpg.connect(forgetful.url)
    async with PostgresStorage(forgetful.url).open(SystemClock()) as journal:
        await job(journal, "job/a")
        await deaf.execute("LISTEN x")
        async with deaf.transaction():
            await fill("repeat('x', 7000) || n")
            await fill("n::text")
            with refused(Code.JOURNAL_IO):
                await journal.create("job/b", "job", note(1))
        while await deaf.fetchval("SELECT pg_notification_queue_usage()") > 0:
            pass
        await journal.create("job/b", "job", note(1))
        assert await numbers(journal, "job/b") == [1]
    for one in (deaf, other):
        await one.close()
