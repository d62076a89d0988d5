"""A journal that moves, or is backed up: at every moment at most one of the two runs jobs."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.copy import Copied, activate, back_up, move
from remit.journal.event import Commit
from remit.journal.journal import Journal
from remit.journal.retirement import BACKUP, COPYING, LIVE, MOVED, CopyState, refusal, standing_of
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import holder, job, note, numbers, refused, terms
from tests.journal.storages import KEYS, SqliteStorage

SERVER = "postgresql://db/agents?schema=remit"


class BrokenOffError(Exception):
    """Stands for the death of the process."""


class Two:
    """A source with two jobs, and a target."""

    def __init__(self, source: Journal, target: Journal) -> None:
        self.source = source
        self.target = target

    async def states(self) -> tuple[str, str]:
        return (await standing_of(self.source)).state, (await standing_of(self.target)).state

    async def live(self) -> list[Journal]:
        """Those in which a job can be leased."""
        found = []
        for journal in (self.source, self.target):
            with suppress(JournalError):
                if await journal.claim(terms(f"worker {journal.url}", journal.clock.now())):
                    found.append(journal)
        return found


@asynccontextmanager
async def opened(folder: Path, clock: ManualClock, key: str = "plain") -> AsyncIterator[Two]:
    async with (
        SqliteStorage(folder / "source.db", KEYS[key]).open(clock) as source,
        SqliteStorage(folder / "target.db").open(clock) as target,
    ):
        yield Two(source, target)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[Two]:
    async with opened(tmp_path, ManualClock()) as both:
        for name in "ab":
            await job(both.source, f"job/{name}")
        yield both


async def test_a_journal_that_moved_runs_jobs_where_it_moved_to_and_nowhere_else(two: Two) -> None:
    assert await move(two.source, two.target) == Copied(streams=2, events=2, blobs=0, added=2)
    assert await two.states() == (MOVED, LIVE)
    assert await two.live() == [two.target]
    assert (await standing_of(two.source)).place == two.target.url
    with refused(Code.JOURNAL_MOVED):
        await move(two.source, two.target)
    for journal in (two.source, two.target):
        assert [await journal.verify(stream) > 0 for stream in ("job/a", "journal")] == [True, True]


@pytest.mark.parametrize("state", [COPYING, BACKUP, MOVED])
def test_what_a_retired_journal_is_refused_with_asks_for_the_login_of_a_server(state: str) -> None:
    for url, place, login in (("a.db", "b.db", False), ("a.db", SERVER, True), (SERVER, "b.db", True)):
        assert ("user and password" in refusal(url, state, place).remedy) is login


async def test_a_sealed_journal_that_moved_is_sealed_to_its_end(tmp_path: Path) -> None:
    async with opened(tmp_path, ManualClock(), "sealed") as two:
        await job(two.source, "job/a")
        await move(two.source, two.target)
        assert [await two.source.verify(stream) for stream in ("job/a", "journal")] == [1, 1]


async def test_a_backup_runs_no_jobs_until_it_is_activated(two: Two) -> None:
    await back_up(two.source, two.target)
    assert await two.states() == (LIVE, BACKUP)
    with refused(Code.JOURNAL_BACKUP):
        await job(two.target, "job/c")
    await job(two.source, "job/c")
    assert (await back_up(two.source, two.target)).added == 1, "a later copy brings it up to date"
    with refused(Code.JOURNAL_BACKUP):
        await move(two.target, two.source)
    assert await activate(two.target, "ann") == CopyState(BACKUP, two.source.url)
    assert await activate(two.target, "ann") == CopyState(LIVE)
    await holder(two.target)


async def test_a_journal_moves_back(two: Two) -> None:
    await move(two.source, two.target)
    await job(two.target, "job/c")
    await move(two.target, two.source)
    assert await two.states() == (LIVE, MOVED)
    assert await numbers(two.source, "job/c") == [1]
    assert await two.live() == [two.source]


async def test_what_is_written_to_the_source_during_the_move_is_in_the_target(two: Two) -> None:
    written = []

    def write(what: str, done: int, _all: int) -> None:
        if (what, done) == ("prove", 0):
            append = two.source.writer("job/late", "job").stage(note(1))
            two.source._store.submit(Commit(appends=(append,), at=append.at))
            written.append(append)

    copied = await move(two.source, two.target, write)
    assert written
    assert (copied.streams, copied.added) == (3, 3)
    assert await numbers(two.target, "job/late") == [1]


async def test_a_source_in_which_someone_works_stays_as_it_is(two: Two) -> None:
    await holder(two.source)
    with refused(Code.JOURNAL_LOCKED):
        await move(two.source, two.target)
    assert await two.states() == (LIVE, LIVE)


async def test_a_copy_that_was_broken_off_is_not_activated_by_mistake(two: Two, tmp_path: Path) -> None:
    def stop(_what: str, _done: int, _all: int) -> None:
        raise BrokenOffError

    with pytest.raises(BrokenOffError):
        await move(two.source, two.target, stop)
    with refused(Code.JOURNAL_BACKUP):
        await activate(two.target, "ann")
    assert (await activate(two.target, "ann", unfinished=True)).place == str(tmp_path / "source.db")


def move_until_killed(folder: Path, writes: int) -> None:
    """Entry point of a process that moves the journal, and is killed before its next write after so many."""
    plain, left = Journal._written, writes

    async def written(journal: Journal, commit: Commit, *rest: object) -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        await plain(journal, commit, *rest)  # type: ignore[arg-type] # as it was called

    async def run() -> None:
        async with opened(folder, ManualClock()) as two:
            await move(two.source, two.target)

    setattr(Journal, "_written", written)  # noqa: B010 - in this process alone; its type differs
    asyncio.run(run())


@pytest.mark.slow
async def test_wherever_a_move_breaks_off_one_journal_at_most_runs_jobs_and_the_same_command_ends_it(
    tmp_path: Path,
) -> None:
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.journal.test_moving"])
    killed, writes = -signal.SIGKILL, 0
    while killed:
        folder = tmp_path / str(writes)
        async with opened(folder, ManualClock()) as two:
            for name in "ab":
                await job(two.source, f"job/{name}")
        process = processes.Process(target=move_until_killed, args=(folder, writes))
        process.start()
        process.join()
        killed = process.exitcode or 0
        clock = ManualClock()
        async with opened(folder, clock) as two:
            live = await two.live()
            assert len(live) <= 1, f"killed after {writes} writes"
            clock.advance(60)  # what was leased here is free again
            if await two.states() != (MOVED, LIVE):
                await move(two.source, two.target)
            assert await two.states() == (MOVED, LIVE), f"killed after {writes} writes"
            assert [await numbers(two.target, f"job/{name}") for name in "ab"] == [[1], [1]]
            assert await two.live() == [two.target]
        writes += 1
    assert writes > 8
