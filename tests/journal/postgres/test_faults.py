"""The server goes away, or the line to it: what was acknowledged is there, and nothing is there twice."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import asyncpg
import pytest

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import AppendConflictError, JournalError
from remit.journal.event import HeadPatch
from remit.journal.journal import Journal
from remit.journal.postgres import server as connecting
from remit.journal.postgres.store import PostgresStore
from remit_testing.journal.storage import head_of, holder, job, note, noted, numbers, refused
from tests.journal.postgres.relay import Cut, Relay
from tests.journal.postgres.server import PostgresServer


@pytest.mark.parametrize("how", ["before", "after"])
async def test_what_became_of_a_commit_is_found_out(journal: Journal, line: Relay, how: Cut) -> None:
    writer = await job(journal, "job/a")
    for number in range(2, 12):
        line.cut = how
        await journal.append(writer, note(number), synced=True)
    assert line.cuts == 10
    assert await numbers(journal) == list(range(1, 12))
    assert await journal.verify("job/a") == 11


@pytest.mark.parametrize("how", ["before", "after"])
async def test_a_commit_without_events_is_found_out_too(journal: Journal, line: Relay, how: Cut) -> None:
    writer = await job(journal, "job/a", HeadPatch(due_at=None))
    line.cut = how
    await journal.wake("job/a")
    line.cut = how
    assert not await journal.park(writer, HeadPatch(state="parked"), seen_wakes=0)
    line.cut = how
    assert await journal.park(writer, HeadPatch(state="parked"), seen_wakes=1)
    head = await head_of(journal)
    assert (head.wakes, head.state, line.cuts) == (1, "parked", 3)


@pytest.mark.parametrize("how", ["before", "after"])
async def test_a_refusal_is_found_out_too(journal: Journal, line: Relay, how: Cut) -> None:
    await job(journal, "job/a")
    one, other = journal.writer("job/a", "job", await head_of(journal)), await holder(journal)
    await journal.append(other, note(2), synced=True)
    line.cut = how
    with refused():
        await journal.append(one, note(2), synced=True)
    line.cut = how
    with refused():
        await journal.create("job/a", "job", note(1))
    assert (line.cuts, await numbers(journal)) == (2, [1, 2])


async def test_a_group_that_arrives_late_is_refused(journal: Journal, line: Relay) -> None:
    writer = await job(journal, "job/a")
    for number in range(2, 6):
        line.cut = "held"
        await journal.append(writer, note(number), synced=True)
        await journal.wake("job/a")
        await line.release()
    assert await journal.verify("job/a") == 5
    # Held groups of wake-ups would count twice.
    line.cut = "held"
    await journal.wake("job/a")
    await line.release()
    await journal.append(writer, note(6), synced=True)
    assert (await head_of(journal)).wakes == 5


async def test_a_commit_of_unknown_outcome_is_not_taken_for_the_next(
    journal: Journal, line: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "PATIENCE_S", 0.05)
    doubtful, other = await job(journal, "job/a"), await job(journal, "job/b")
    line.cut, line.refusing = "after", True
    with refused(Code.JOURNAL_IO):
        await journal.append(doubtful, note(2), synced=True)
    line.refusing = False
    await journal.append(other, note(2), synced=True)
    assert (line.cuts, await numbers(journal), await numbers(journal, "job/b")) == (1, [1, 2], [1, 2])
    await journal.append(other, note(3), synced=True)
    assert await journal.verify("job/b") == 3


async def test_a_commit_that_still_waits_when_it_is_asked_about_is_written_once(
    journal: Journal, line: Relay, postgres: PostgresServer, schema: str
) -> None:
    one, part, other = [await job(journal, stream) for stream in ("job/a", "job/a/b", "job/c")]
    busy = await asyncpg.connect(postgres.url)
    async with busy.transaction():
        await busy.execute(f"SELECT 1 FROM {schema}.heads WHERE stream = 'job/a' FOR UPDATE")
        writing = asyncio.create_task(journal.commit(one.draft(note(2)), part.draft(note(2)), synced=True))
        await waiting(busy, 1)
        line.cut_all()
        await waiting(busy, 2)
    await writing
    await busy.close()
    await journal.append(other, note(2), synced=True)
    assert [await journal.verify(stream) for stream in ("job/a", "job/a/b", "job/c")] == [2, 2, 2]


async def waiting(connection: asyncpg.Connection, sessions: int) -> None:
    """Return once so many sessions of the server wait for a lock."""
    while await connection.fetchval("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted") != sessions:
        pass


async def test_many_writers_notice_nothing_of_lost_connections(journal: Journal, line: Relay) -> None:
    writers = [await job(journal, f"job/{number}") for number in range(10)]

    async def write(index: int) -> None:
        for number in range(2, 40):
            await journal.append(writers[index], note(number), synced=number % 3 == 0)

    tasks = [asyncio.create_task(write(index)) for index in range(10)]
    for number in range(10):
        await job(journal, f"job/other/{number}")
        line.cut_all()
    await asyncio.gather(*tasks)
    assert {await journal.verify(f"job/{number}") for number in range(10)} == {39}


async def test_a_reader_asks_again(journal: Journal, line: Relay) -> None:
    await job(journal, "job/a")
    for _ in range(5):
        assert await numbers(journal) == [1]
        line.cut_all()


async def test_who_waits_for_news_hears_them_over_a_new_connection(journal: Journal, line: Relay) -> None:
    writer = await job(journal, "job/a")
    mark = await journal.changed(0)
    for number in range(2, 6):
        waiting = asyncio.create_task(journal.changed(mark))
        line.cut_all()
        await journal.append(writer, note(number), synced=True)
        mark = max(await waiting, await journal.changed(0))


async def test_a_server_that_stays_away_is_an_error(
    journal: Journal, line: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "PATIENCE_S", 0.05)
    writer = await job(journal, "job/a")
    line.refusing = True
    line.cut_all()
    with pytest.raises(JournalError) as error:
        await journal.append(writer, note(2), synced=True)
    assert error.value.code is Code.JOURNAL_IO
    assert "unknown" in error.value.remedy
    with refused(Code.JOURNAL_IO):
        await numbers(journal)
    line.refusing = False
    # This writer does not know where it is; whoever reads the stream does.
    with refused(Code.JOURNAL_IO):
        await journal.append(writer, note(3), synced=True)
    again = journal.writer("job/a", "job", await head_of(journal))
    await journal.append(again, *noted(3, 4), synced=True)
    assert await numbers(journal) == [1, 2, 3]


@pytest.fixture(scope="module")
def mortal() -> Iterator[PostgresServer]:
    """A server that may be ended."""
    with PostgresServer.running(fsync="on") as server:
        yield server


@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGINT])
async def test_a_restarted_server_is_waited_for(mortal: PostgresServer, how: signal.Signals, schema: str) -> None:
    journal = Journal(PostgresStore(f"{mortal.url}&schema={schema}", SystemClock()))
    told: dict[int, int] = {}
    try:
        writers = [await job(journal, f"job/{number}") for number in range(4)]

        async def write(index: int) -> None:
            for number in range(2, 10_000):
                await journal.append(writers[index], note(number), synced=True)
                told[index] = number
                if ending.is_set():
                    return

        ending = asyncio.Event()
        tasks = [asyncio.create_task(write(index)) for index in range(4)]
        for _ in range(3):
            before = sum(told.values())
            while sum(told.values()) < before + 20 and not any(task.done() for task in tasks):
                await journal.changed(0)
                await journal.head("job/0")
            await asyncio.to_thread(mortal.stop, how)
            await asyncio.to_thread(mortal.start)
        ending.set()
        await asyncio.gather(*tasks)
        for index in range(4):
            assert await journal.verify(f"job/{index}") == told[index]
    finally:
        await journal.close()


async def test_what_was_synced_survives_the_server(mortal: PostgresServer, schema: str) -> None:
    journal = Journal(PostgresStore(f"{mortal.url}&schema={schema}", SystemClock()))
    try:
        writer = await job(journal, "job/a")
        for number in range(2, 31):
            await journal.append(writer, note(number), synced=number == 30)
        mortal.stop()  # a crash: nothing is flushed any more
        mortal.start()
        assert await numbers(journal) == list(range(1, 31))
        # What was not synced may be gone; then its writer is refused rather than leaving a gap.
        for number in range(31, 35):
            await journal.append(writer, note(number), synced=False)
        await journal.drained()
        mortal.stop()
        mortal.start()
        try:
            await journal.append(writer, note(35), synced=True)
        except AppendConflictError:
            assert await numbers(journal) == list(range(1, len(await numbers(journal)) + 1))
        assert await journal.verify("job/a") >= 30
    finally:
        await journal.close()
