from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from remit.codes import Code
from remit.errors import JournalError
from remit.journal import watch as watching
from remit.journal.watch import FileBell, JournalMarks
from tests.patience import PATIENCE_S


class Others:
    """A storage that others write to as well."""

    def __init__(self) -> None:
        self.version: int | None = 1
        self.error: JournalError | None = None
        self.looked = asyncio.Event()

    def __call__(self) -> int | None:
        self.looked.set()
        if self.error is not None:
            raise self.error
        return self.version


async def waiting(watch: JournalMarks, mark: int) -> asyncio.Task[int]:
    """A task that waits by now."""
    task = asyncio.create_task(watch.changed(mark))
    await asyncio.sleep(0)  # noqa: TID251 - lets it begin, and waits for nothing
    assert not task.done()
    return task


async def test_the_newest_mark_waits_and_an_older_one_does_not() -> None:
    watch = JournalMarks()
    mark = await watch.changed(0)
    task = await waiting(watch, mark)
    watch.notify(heads=False)
    assert await task == mark + 1
    assert await watch.changed(mark) == mark + 1
    await watch.close()


async def test_what_others_wrote_while_nobody_waited_ends_the_next_wait() -> None:
    others = Others()
    watch = JournalMarks(others)
    mark = await watch.changed(0)
    others.version = 2
    task = asyncio.create_task(watch.changed(mark))
    await asyncio.sleep(0)  # noqa: TID251 - lets it begin, and waits for nothing
    assert task.done(), "at once"
    assert await task > mark
    await watch.close()


async def test_what_others_write_during_a_wait_ends_it() -> None:
    others = Others()
    watch = JournalMarks(others)
    task = await waiting(watch, await watch.changed(0))
    others.version = 2
    assert await asyncio.wait_for(task, PATIENCE_S) > 1
    await watch.close()


async def test_our_own_write_ends_one_wait() -> None:
    watch = JournalMarks(Others())
    task = await waiting(watch, await watch.changed(0))
    watch.notify(heads=False)
    again = await waiting(watch, await task)
    again.cancel()
    await asyncio.wait([again])
    await watch.close()


async def test_nobody_looks_while_nobody_waits() -> None:
    others = Others()
    watch = JournalMarks(others)
    task = await waiting(watch, await watch.changed(0))
    watch.notify(heads=False)
    await task
    others.looked.clear()
    await asyncio.wait_for(_silence(others), PATIENCE_S)
    await watch.close()


async def _silence(others: Others) -> None:
    """Return once the poller has looked no more for several of its periods."""
    while True:
        others.looked.clear()
        try:
            await asyncio.wait_for(others.looked.wait(), 0.05)
        except TimeoutError:
            return


async def test_a_storage_that_cannot_tell_now_is_asked_again() -> None:
    others = Others()
    watch = JournalMarks(others)
    mark = await watch.changed(0)
    others.version = None
    task = await waiting(watch, mark)
    others.looked.clear()
    await others.looked.wait()
    assert not task.done()
    others.version = 2
    assert await asyncio.wait_for(task, PATIENCE_S) > mark
    await watch.close()


async def test_a_failing_storage_is_told_to_whoever_waits_and_whoever_comes() -> None:
    others = Others()
    watch = JournalMarks(others)
    mark = await watch.changed(0)
    task = await waiting(watch, mark)
    others.error = JournalError("the disk is gone", code=Code.JOURNAL_IO)
    for waits in (task, watch.changed(mark)):
        with pytest.raises(JournalError, match="gone"):
            await asyncio.wait_for(waits, PATIENCE_S)
    watch.notify(heads=False)
    others.error = None
    others.version = 3
    assert await watch.changed(mark) > mark, "it works again"
    await watch.close()


async def test_closing_ends_every_wait() -> None:
    watch = JournalMarks(Others())
    mark = await watch.changed(0)
    tasks = [await waiting(watch, mark) for _ in range(3)]
    await watch.close()
    await watch.close()
    for waits in (*tasks, watch.changed(0)):
        with pytest.raises(JournalError) as refusal:
            await waits
        assert refusal.value.code is Code.JOURNAL_CLOSED


async def test_one_who_leaves_disturbs_nobody() -> None:
    watch = JournalMarks(Others())
    mark = await watch.changed(0)
    leaving, staying = await waiting(watch, mark), await waiting(watch, mark)
    leaving.cancel()
    await asyncio.wait([leaving])
    watch.notify(heads=False)
    assert await staying == mark + 1
    await watch.close()


async def test_appends_of_our_own_are_no_news_of_heads() -> None:
    watch = JournalMarks()
    mark = await watch.heads_changed(0)
    task = asyncio.create_task(watch.heads_changed(mark))
    await asyncio.sleep(0)  # noqa: TID251 - lets it begin, and waits for nothing
    watch.notify(heads=False)
    assert await watch.changed(1) > 1
    assert not task.done()
    watch.notify(heads=True)
    assert await task > mark
    await watch.close()


async def test_what_others_write_may_have_changed_heads() -> None:
    others = Others()
    watch = JournalMarks(others)
    mark = await watch.heads_changed(0)
    task = asyncio.create_task(watch.heads_changed(mark))
    await asyncio.sleep(0)  # noqa: TID251 - lets it begin, and waits for nothing
    watch.notify(heads=False)
    others.version = 2
    assert await asyncio.wait_for(task, PATIENCE_S) > mark
    await watch.close()


class Bell(FileBell):
    """Rings when a test says so, or not at all."""

    def __init__(self, *, works: bool = True) -> None:
        self.works = works
        self.armed = asyncio.Event()
        self.ring: Callable[[], None] | None = None

    def arm(self, ring: Callable[[], None]) -> bool:
        self.ring = ring
        self.armed.set()
        return self.works

    def disarm(self) -> None:
        self.ring = None

    def close(self) -> None:
        """Nothing is kept for it."""


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal counts as quiet from the beginning, and slow looks come after the test."""
    monkeypatch.setattr(watching, "_QUIET_S", -1.0)
    monkeypatch.setattr(watching, "_SLOW_POLL_S", 10 * PATIENCE_S)


@pytest.mark.usefixtures("quiet")
async def test_a_quiet_journal_is_not_looked_at_until_the_bell_rings() -> None:
    others, bell = Others(), Bell()
    watch = JournalMarks(others, bell)
    task = await waiting(watch, await watch.changed(0))
    async with asyncio.timeout(PATIENCE_S):
        await bell.armed.wait()
        others.looked.clear()
        for _ in range(20):
            await asyncio.sleep(0)  # noqa: TID251 - time for a look, had there been one
        assert not others.looked.is_set()
        others.version = 2
        assert bell.ring is not None
        bell.ring()
        await task
    await watch.close()


@pytest.mark.usefixtures("quiet")
async def test_what_was_written_before_the_bell_was_armed_is_seen() -> None:
    others = Others()

    class Late(Bell):
        def arm(self, ring: Callable[[], None]) -> bool:
            others.version = 2
            return super().arm(ring)

    watch = JournalMarks(others, Late())
    async with asyncio.timeout(PATIENCE_S):
        await watch.changed(await watch.changed(0))
    await watch.close()


@pytest.mark.parametrize("works", [False, True])
async def test_a_write_that_rings_no_bell_is_seen_all_the_same(monkeypatch: pytest.MonkeyPatch, *, works: bool) -> None:
    monkeypatch.setattr(watching, "_QUIET_S", -1.0)
    monkeypatch.setattr(watching, "_SLOW_POLL_S", 0.01)
    others, bell = Others(), Bell(works=works)
    watch = JournalMarks(others, bell)
    task = await waiting(watch, await watch.changed(0))
    async with asyncio.timeout(PATIENCE_S):
        await bell.armed.wait()
        others.version = 2
        await task
    await watch.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of writes to a file")
async def test_the_kernel_rings_once_for_the_next_write(tmp_path: Path) -> None:
    file = tmp_path / "journal.db-wal"
    bell, rung = FileBell(str(file)), list[int]()
    assert not bell.arm(lambda: rung.append(0)), "there is no such file"
    file.touch()
    heard = asyncio.Event()
    for number in (1, 2):
        heard.clear()

        def ring(number: int = number) -> None:
            rung.append(number)
            heard.set()

        assert bell.arm(ring)
        with file.open("ab") as log:
            log.write(b"one")
            log.flush()
            log.write(b"two")
        async with asyncio.timeout(PATIENCE_S):
            await heard.wait()
    assert rung == [1, 2]
    bell.close()
    bell.close()
