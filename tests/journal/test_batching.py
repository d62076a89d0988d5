from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from remit.codes import Code
from remit.errors import AppendConflictError, JournalError
from remit.journal.batching import GROUP_LIMIT, CommitThread
from remit.journal.event import Blob, Commit


class Script:
    """A storage that remembers its groups and fails where it is told to."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.unfit: set[int] = set()
        self.error: Exception | None = None
        self.notices = 0
        self.gate = threading.Event()
        self.gate.set()
        self.wrote = threading.Event()

    def write(self, group: Sequence[Commit]) -> Sequence[JournalError | None]:
        self.gate.wait(10)
        numbers = [commit.at for commit in group]
        if self.error is not None:
            raise self.error
        if self.unfit & set(numbers):
            raise OverflowError("too large")
        self.groups.append(numbers)
        self.wrote.set()
        return [AppendConflictError("refused") if number < 0 else None for number in numbers]

    def notice(self, _heads: bool) -> None:
        self.notices += 1


def answered(number: int, size: int = 0) -> tuple[Commit, asyncio.Future[JournalError | None]]:
    future: asyncio.Future[JournalError | None] = asyncio.get_running_loop().create_future()
    commit = Commit(appends=(), at=number, blobs=(Blob("", b"x" * size),), on_done=future.set_result)
    return commit, future


async def test_a_lone_commit_is_written_at_once() -> None:
    script = Script()
    thread = CommitThread("t", script.write, script.notice)
    commit, done = answered(1)
    thread.submit(commit)
    assert await done is None
    assert (script.groups, script.notices) == ([[1]], 1)
    await thread.close()


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
    monkeypatch.setattr("remit.journal.batching._LOOK_S", 60)


async def awake(script: Fast) -> CommitThread:
    """A thread that has done something before."""
    thread = CommitThread("t", script.write, script.notice, script.at_once)
    await thread.run(lambda: None)
    with thread._working:  # it tells of what it did a moment before it is done with it
        return thread


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


async def wait_for(thread: CommitThread, numbers: range) -> None:
    for number in numbers:
        commit, done = answered(number)
        thread.submit(commit)
        assert await done is None


async def test_a_task_that_has_long_waited_alone_is_not_sent_round_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    now, step = 0.0, 0.0

    def clock() -> float:
        nonlocal now
        now += step
        return now

    monkeypatch.setattr("remit.journal.batching.monotonic", clock)
    script = Fast()
    thread, rounds = await awake(script), Rounds()
    await wait_for(thread, range(20))
    before = rounds.count
    await wait_for(thread, range(20, 200))
    assert (rounds.count, set(script.on)) == (before, {HERE})
    step = 0.001
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


async def test_a_slow_disk_is_waited_for_on_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Fast()
    thread = await awake(script)
    now, step = 0.0, 0.5

    def clock() -> float:
        nonlocal now
        now += step
        return now

    monkeypatch.setattr("remit.journal.batching.monotonic", clock)
    for number in range(2):
        commit, done = answered(number)
        thread.submit(commit)
        await done
    assert script.on == [HERE, "t"]
    step = 0.0
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
    monkeypatch.setattr("remit.journal.batching._LOOK_S", 0.01)
    thread = await awake(script)
    thread.submit(Commit(appends=(), at=-1, synced=False, on_error=lambda _error: order.append(1)))
    before = thread.run(lambda: None)
    # The thread writes it meanwhile; this loop does not hear of it.
    assert script.wrote.wait(10)
    commit, done = answered(2)
    done.add_done_callback(lambda _done: order.append(2))
    thread.submit(commit)
    await asyncio.gather(before, done)
    assert order == [1, 2]
    await thread.close()


async def test_a_loop_that_does_not_come_round_keeps_nothing_from_being_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("remit.journal.batching._LOOK_S", 0.01)
    script = Fast()
    thread = await awake(script)
    thread.submit(Commit(appends=(), at=1, synced=False))
    assert script.wrote.wait(10), "meanwhile nothing else runs on this loop"
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


async def test_what_came_after_a_group_is_kept_back_anew_and_written_soon() -> None:
    script = Fast()
    thread = await awake(script)
    thread.submit(Commit(appends=(), at=1, synced=False))
    commit, done = answered(2)
    await asyncio.sleep(0)  # noqa: TID251 - the first is kept back, and waits for nothing
    thread.submit(commit)
    await done
    refused = asyncio.Event()
    thread.submit(Commit(appends=(), at=-3, synced=False, on_error=lambda _error: refused.set()))
    await refused.wait()
    assert (script.groups, script.on) == ([[1, 2], [-3]], [HERE, "t"])
    await thread.close()


async def test_the_storage_may_be_looked_at_while_nothing_is_written() -> None:
    script = Script()
    thread = CommitThread("t", script.write, script.notice)
    assert thread.meanwhile(lambda: 5) == 5
    with thread._working:
        assert thread.meanwhile(lambda: 5) is None
    await thread.close()


async def test_what_waits_is_written_together_and_in_order() -> None:
    script = Script()
    thread = CommitThread("t", script.write, script.notice)
    script.gate.clear()
    commits = [answered(number) for number in range(100)]
    for commit, _ in commits:
        thread.submit(commit)
    script.gate.set()
    await asyncio.gather(*(done for _, done in commits))
    assert [number for group in script.groups for number in group] == list(range(100))
    assert len(script.groups) <= 2
    await thread.close()


async def test_a_group_has_a_limit() -> None:
    script = Script()
    thread = CommitThread("t", script.write, script.notice)
    script.gate.clear()
    for number in range(GROUP_LIMIT * 2):
        thread.submit(Commit(appends=(), at=number))
    script.gate.set()
    await thread.close()
    assert max(map(len, script.groups)) <= GROUP_LIMIT
    assert sum(map(len, script.groups)) == GROUP_LIMIT * 2


async def test_a_task_runs_after_what_was_submitted_before_it_and_before_the_rest() -> None:
    script = Script()
    thread = CommitThread("t", script.write, script.notice)
    script.gate.clear()
    thread.submit(Commit(appends=(), at=1))
    seen = thread.run(lambda: list(script.groups))
    thread.submit(Commit(appends=(), at=2))
    script.gate.set()
    assert await seen == [[1]]
    await thread.close()
    assert script.groups == [[1], [2]]


async def test_a_task_that_raises_raises_where_it_is_awaited() -> None:
    script = Script()
    thread = CommitThread("t", script.write, script.notice)
    with pytest.raises(ZeroDivisionError):
        await thread.run(lambda: 1 / 0)
    assert await thread.run(lambda: 7) == 7
    await thread.close()


async def test_a_cancelled_task_disturbs_nobody() -> None:
    script = Script()
    thread = CommitThread("t", script.write, script.notice)
    script.gate.clear()
    thread.submit(Commit(appends=(), at=1))
    thread.run(lambda: 1).cancel()
    script.gate.set()
    assert await thread.run(lambda: 2) == 2
    await thread.close()


async def test_a_refusal_is_told_first_to_the_writer_and_then_to_who_waits() -> None:
    script, told = Script(), list[str]()
    thread = CommitThread("t", script.write, script.notice)
    commit, done = answered(-1)
    commit.on_error = lambda error: told.append(f"error {error.code}")
    commit.on_done = lambda error: (told.append("done"), done.set_result(error))[0]  # type: ignore[func-returns-value]
    thread.submit(commit)
    assert isinstance(await done, AppendConflictError)
    assert told == ["error APPEND_CONFLICT", "done"]
    await thread.close()


async def test_one_unfit_record_fails_alone() -> None:
    script = Script()
    script.unfit = {3}
    thread = CommitThread("t", script.write, script.notice)
    script.gate.clear()
    commits = [answered(number) for number in range(6)]
    for commit, _ in commits:
        thread.submit(commit)
    script.gate.set()
    errors = await asyncio.gather(*(done for _, done in commits))
    assert [error.code if error else None for error in errors] == [None, None, None, Code.RECORD_INVALID, None, None]
    assert isinstance(errors[3].__cause__ if errors[3] else None, OverflowError)
    assert [number for group in script.groups for number in group] == [0, 1, 2, 4, 5]
    await thread.close()


async def test_a_failure_of_the_storage_fails_the_group_and_not_the_thread() -> None:
    script = Script()
    script.error = JournalError("full", code=Code.JOURNAL_FULL)
    thread = CommitThread("t", script.write, script.notice)
    commits = [answered(number) for number in range(3)]
    for commit, _ in commits:
        thread.submit(commit)
    assert await asyncio.gather(*(done for _, done in commits)) == [script.error] * 3
    script.error = None
    commit, done = answered(4)
    thread.submit(commit)
    assert await done is None
    await thread.close()


async def test_the_backlog_is_what_was_not_written_yet() -> None:
    script = Script()
    thread = CommitThread("t", script.write, script.notice)
    assert thread.backlog == 0
    script.gate.clear()
    commit, done = answered(1, size=1_000)
    thread.submit(commit)
    assert thread.backlog >= 1_000
    patch = Commit(appends=(), at=2)
    before = thread.backlog
    thread.submit(patch)
    assert thread.backlog > before, "a commit without events waits as well"
    script.gate.set()
    await done
    await thread.run(lambda: None)
    assert thread.backlog == 0
    await thread.close()


async def test_after_closing_everything_is_refused_at_once() -> None:
    script = Script()
    thread = CommitThread("t", script.write, script.notice)
    await thread.close()
    assert thread.closed
    commit, done = answered(1)
    thread.submit(commit)
    assert done.done()
    error = await done
    assert error is not None
    assert error.code is Code.JOURNAL_CLOSED
    with pytest.raises(JournalError):
        await thread.run(lambda: None)
    await thread.close()
    assert script.groups == []


async def test_closing_writes_what_was_submitted() -> None:
    script = Script()
    thread = CommitThread("t", script.write, script.notice)
    script.gate.clear()
    for number in range(10):
        thread.submit(Commit(appends=(), at=number))
    closing = [asyncio.ensure_future(thread.close()) for _ in range(2)]
    script.gate.set()
    await asyncio.gather(*closing)
    assert [number for group in script.groups for number in group] == list(range(10))


def test_a_loop_that_ended_first_does_not_keep_the_thread_from_ending() -> None:
    script = Script()

    async def forgetful() -> CommitThread:
        thread = CommitThread("t", script.write, script.notice)
        script.gate.clear()
        thread.submit(Commit(appends=(), at=1))
        thread.run(told.set).cancel()
        return thread

    told = threading.Event()
    thread = asyncio.run(forgetful())
    script.gate.set()
    assert told.wait(10), "the thread has tried to tell of the first commit"
    closing = threading.Thread(target=lambda: asyncio.run(thread.close()), daemon=True)
    closing.start()
    closing.join(10)
    hangs = closing.is_alive()
    thread._bell.put(None)  # so that a failure of this test is one, and does not hang all the others
    assert not hangs
    assert script.groups == [[1]], "what was submitted is written though nobody can be told"
