"""Commits that the event loop writes itself, and those it leaves to the thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.commit import CommitThread
from remit.journal.event import Commit
from tests.journal.script import Script, answered
from tests.patience import PATIENCE_S


class Fast(Script):
    """One that can be written at once, unless somebody else holds its lock."""

    def __init__(self) -> None:
        super().__init__()
        self.locked = False
        self.on: list[str] = []
        """The thread each group was written on."""

    def at_once(self, group: Sequence[Commit]) -> Sequence[JournalError | None] | None:
        return None if self.locked else self.write(group)

    def write(self, group: Sequence[Commit]) -> Sequence[JournalError | None]:
        self.on.append(threading.current_thread().name)
        return super().write(group)


HERE = threading.main_thread().name


@pytest.fixture(autouse=True)
def _nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread comes when it is called."""
    monkeypatch.setattr("remit.journal.commit._LOOK_S", 60)


async def awake(script: Fast) -> CommitThread:
    """A thread that has done something before."""
    thread = CommitThread("t", script.write, script.notice, script.at_once)
    await thread.run(lambda: None)
    free(thread)
    return thread


def free(thread: CommitThread) -> None:
    """Return once the thread does nothing: it tells of what it did a moment before it is done with it."""
    with thread._working:
        pass


async def test_who_waits_alone_is_written_at_once_with_whatever_came_before() -> None:
    script = Fast()
    thread = await awake(script)
    thread.submit(Commit(appends=(), at=1, synced=False))
    commit, done = answered(2)
    thread.submit(commit)
    assert await done is None
    assert (script.groups, script.on, script.notices) == ([[1, 2]], [HERE], 1)
    assert thread.backlog == 0
    await thread.close()


class Rounds:
    """Counts how often the event loop came round."""

    def __init__(self) -> None:
        self.count = 0
        self._loop = asyncio.get_running_loop()
        self._loop.call_soon(self._again)

    def _again(self) -> None:
        self.count += 1
        self._loop.call_soon(self._again)


class Stepping:
    """A clock that goes on by one step whenever it is read."""

    def __init__(self, step: float) -> None:
        self.step = step
        self._now = 0.0

    def __call__(self) -> float:
        self._now += self.step
        return self._now


async def wait_for(thread: CommitThread, numbers: range) -> None:
    for number in numbers:
        commit, done = answered(number)
        thread.submit(commit)
        assert await done is None


async def test_a_task_that_has_long_waited_alone_is_not_sent_round_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Stepping(0.0)
    monkeypatch.setattr("remit.journal.commit.monotonic", clock)
    script = Fast()
    thread, rounds = await awake(script), Rounds()
    await wait_for(thread, range(20))
    before = rounds.count
    await wait_for(thread, range(20, 200))
    assert (rounds.count, set(script.on)) == (before, {HERE})
    clock.step = 0.001
    await wait_for(thread, range(200, 260))
    assert rounds.count > before, "after a while others get their turn"
    assert [number for group in script.groups for number in group] == list(range(260))
    await thread.close()


async def test_tasks_that_wait_by_turns_share_groups() -> None:
    script = Fast()
    thread = await awake(script)
    await wait_for(thread, range(20))
    await asyncio.gather(wait_for(thread, range(20, 40)), wait_for(thread, range(40, 60)))
    assert any(len(group) > 1 for group in script.groups)
    await thread.close()


async def test_several_who_wait_share_a_group_of_the_thread() -> None:
    script = Fast()
    thread = await awake(script)
    commits = [answered(number) for number in range(5)]
    for commit, _ in commits:
        thread.submit(commit)
    await asyncio.gather(*(done for _, done in commits))
    assert (script.groups, script.on) == ([[0, 1, 2, 3, 4]], ["t"])
    await thread.close()


async def test_a_lock_of_somebody_else_is_waited_for_on_the_thread() -> None:
    script = Fast()
    thread = await awake(script)
    script.locked = True
    commit, done = answered(1)
    thread.submit(commit)
    assert await done is None
    assert (script.groups, script.on) == ([[1]], ["t"])
    await thread.close()


async def test_a_group_with_an_unfit_record_is_written_one_by_one_on_the_thread() -> None:
    script = Fast()
    thread = await awake(script)
    script.unfit = {1}
    thread.submit(Commit(appends=(), at=1, synced=False))
    commit, done = answered(2)
    thread.submit(commit)
    assert await done is None
    assert (script.groups, script.on) == ([[2]], [HERE, "t", "t", "t"])
    await thread.close()


async def test_more_than_a_moment_s_bytes_are_written_on_the_thread() -> None:
    script = Fast()
    thread = await awake(script)
    for size in (1_000, 1_000_000, 1_000):
        commit, done = answered(1, size)
        thread.submit(commit)
        assert await done is None
        free(thread)
    assert script.on == [HERE, "t", HERE]
    await thread.close()


async def test_a_slow_disk_is_waited_for_on_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Fast()
    thread = await awake(script)
    clock = Stepping(0.5)
    monkeypatch.setattr("remit.journal.commit.monotonic", clock)
    for number in range(2):
        commit, done = answered(number)
        thread.submit(commit)
        await done
    assert script.on == [HERE, "t"]
    clock.step = 0.0
    for number in range(60):  # it was slow for a while only
        commit, done = answered(number)
        thread.submit(commit)
        await done
    assert script.on[-1] == HERE
    await thread.close()


async def test_a_failure_at_once_is_told_like_any_other() -> None:
    script = Fast()
    thread = await awake(script)
    script.error = JournalError("the disk is gone", code=Code.JOURNAL_IO)
    commit, done = answered(1)
    thread.submit(commit)
    assert await done is script.error
    await thread.close()


async def test_nobody_is_told_before_those_who_came_first(monkeypatch: pytest.MonkeyPatch) -> None:
    script, order = Fast(), list[int]()
    monkeypatch.setattr("remit.journal.commit._LOOK_S", 0.01)
    thread = await awake(script)
    thread.submit(Commit(appends=(), at=-1, synced=False, on_error=lambda _error: order.append(1)))
    before = thread.run(lambda: None)
    # The thread writes it meanwhile; this loop does not hear of it.
    assert script.wrote.wait(PATIENCE_S)
    commit, done = answered(2)
    done.add_done_callback(lambda _done: order.append(2))
    thread.submit(commit)
    await asyncio.gather(before, done)
    assert order == [1, 2]
    await thread.close()


async def test_a_loop_that_does_not_come_round_keeps_nothing_from_being_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("remit.journal.commit._LOOK_S", 0.01)
    script = Fast()
    thread = await awake(script)
    thread.submit(Commit(appends=(), at=1, synced=False))
    assert script.wrote.wait(PATIENCE_S), "meanwhile nothing else runs on this loop"
    assert script.on == ["t"]
    await thread.close()


async def test_what_nobody_waits_for_is_written_soon() -> None:
    script = Fast()
    thread = await awake(script)
    refused = asyncio.Event()
    for number in (1, 2, -3):
        thread.submit(Commit(appends=(), at=number, synced=False, on_error=lambda _error: refused.set()))
    await refused.wait()
    assert (script.groups, script.on) == ([[1, 2, -3]], ["t"])
    await thread.close()


async def test_what_came_after_a_group_is_kept_back_anew_and_written_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remit.journal.commit._LINGER_S", 60)
    script = Fast()
    thread = await awake(script)
    thread.submit(Commit(appends=(), at=1, synced=False))
    commit, done = answered(2)
    await asyncio.sleep(0)  # noqa: TID251 - the first is kept back, and waits for nothing
    thread.submit(commit)
    await done
    refused = asyncio.Event()
    thread.submit(Commit(appends=(), at=-3, synced=False, on_error=lambda _error: refused.set()))
    monkeypatch.setattr("remit.journal.commit._LINGER_S", 0)
    assert thread._lingering is not None
    thread._lingering._run()  # the first one's time is up
    await refused.wait()
    assert (script.groups, script.on) == ([[1, 2], [-3]], [HERE, "t"])
    await thread.close()
