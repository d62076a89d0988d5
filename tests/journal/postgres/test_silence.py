"""A line that falls silent, with nobody being told that the other end is gone."""

from __future__ import annotations

import asyncio
import socket

import pytest

from remit.clock import SystemClock
from remit.errors import JournalError
from remit.journal.journal import Journal
from remit.journal.postgres import groups as committing
from remit.journal.postgres import server as connecting
from remit.journal.postgres import store as listening
from remit.journal.postgres.server import Address
from remit.journal.postgres.store import PostgresStore
from remit_testing.journal.storage import head_of, job, note, numbers
from tests.journal.postgres.relay import Relay
from tests.journal.storages import PostgresStorage

ANSWER_S = 0.5


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_PING_S", 0.01)
    monkeypatch.setattr(connecting, "LONG_ANSWER_S", ANSWER_S)
    for module in (connecting, committing, listening):
        monkeypatch.setattr(module, "ANSWER_S", ANSWER_S)


async def test_a_commit_on_a_silent_line_is_written_once_over_another(journal: Journal, line: Relay) -> None:
    writer = await job(journal, "job/a")
    for number in range(2, 4):
        line.silence()
        await journal.append(writer, note(number), synced=True)
    line.silence()
    assert await numbers(journal) == [1, 2, 3]


async def test_a_commit_whose_answer_is_silence_is_written_once(journal: Journal, line: Relay) -> None:
    writer = await job(journal, "job/a")
    line.cut = "silent"
    await journal.append(writer, note(2), synced=True)
    assert (line.cuts, await numbers(journal)) == (1, [1, 2])


async def test_who_waits_for_news_on_a_silent_line_hears_them_over_another(
    journal: Journal, line: Relay, storage: PostgresStorage
) -> None:
    async def until(seq: int, mark: int) -> None:
        while (await head_of(journal)).seq < seq:
            mark = await journal.changed(mark)

    async with storage.open(SystemClock()) as other:
        writer = await job(other, "job/a")
        waiting = asyncio.create_task(until(2, await journal.changed(0)))
        await journal.head("job/a")
        line.silence()
        await other.append(writer, note(2), synced=True)
        await waiting


async def test_a_journal_is_closed_however_silent_the_line(
    journal: Journal, line: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "_CLOSE_S", ANSWER_S)
    await job(journal, "job/a")
    await numbers(journal)
    line.silence()
    await journal.close()


async def test_a_journal_whose_server_never_says_a_word_is_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "_CONNECT_S", 3_600)
    there = asyncio.Event()

    async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(says_nothing, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        journal = Journal(PostgresStore(f"postgresql://127.0.0.1:{port}/none?sslmode=disable", SystemClock()))
        waiting = asyncio.create_task(journal.head("job/a"))
        await there.wait()
        await journal.close()
        with pytest.raises(JournalError, match="closed"):
            await waiting
        with pytest.raises(JournalError, match="closed"):
            await job(journal, "job/a")


async def test_the_system_looks_after_connections_on_which_nothing_is_said(line: Relay) -> None:
    async with await asyncio.start_server(line.serve, "127.0.0.1", 0) as listening_there:
        port = listening_there.sockets[0].getsockname()[1]
        connection = await connecting.connect(Address.parse(f"postgresql://remit@127.0.0.1:{port}/postgres"))
        end = connection._transport.get_extra_info("socket")
        assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        await connection.close()
