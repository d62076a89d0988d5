from __future__ import annotations

import asyncio
import threading
from typing import cast

import pytest

from remit.codes import Code
from remit.errors import AppendConflictError, JournalError
from remit.journal.commit import GROUP_LIMIT, CommitThread, taken
from remit.journal.event import Append, Commit, Lease
from tests.journal.script import Script, answered
from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def _nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread comes when it is called."""
    monkeypatch.setattr("remit.journal.commit._LOOK_S", 60)


async def test_a_lone_commit_is_written_at_once() -> None:
    script = Script()
    thread = CommitThread("t", script.write, script.notice)
    commit, done = answered(1)
    thread.submit(commit)
    assert await done is None
    assert (script.groups, script.notices) == ([[1]], 1)
    await thread.close()


async def test_the_storage_may_be_looked_at_while_nothing_is_written() -> None:
    script = Script()
    thread = CommitThread("t", script.write, script.notice)
    assert thread.meanwhile(lambda: 5) == 5
    with thread._working:
        assert thread.meanwhile(lambda: 5) is None
    await thread.close()


async def test_a_reader_of_a_stream_waits_only_for_what_may_change_it() -> None:
    script = Script()
    thread = CommitThread("t", script.write, script.notice)
    assert not thread.concerns("job/1")
    append = Append(stream="job/1", kind="job", expect_seq=0, expect_hash=b"", epoch=0, events=(), at=1)
    thread.submit(Commit(appends=(append,), at=1, wakes=("job/2",), synced=False))
    assert [thread.concerns(f"job/{number}") for number in (1, 2, 3)] == [True, True, False]
    with thread._working:
        assert thread.concerns("job/3"), "a group is being written, and nobody knows what is in it"
    script.gate.clear()
    done = thread.run(lambda: None)
    assert thread.concerns("job/3"), "a claim changes heads"
    script.gate.set()
    await done
    assert not thread.concerns("job/1")
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
    assert told.wait(PATIENCE_S), "the thread has tried to tell of the first commit"
    closing = threading.Thread(target=lambda: asyncio.run(thread.close()), daemon=True)
    closing.start()
    closing.join(PATIENCE_S)
    hangs = closing.is_alive()
    thread._bell.put(None)  # so that a failure of this test is one, and does not hang all the others
    assert not hangs
    assert script.groups == [[1]], "what was submitted is written though nobody can be told"


async def test_leases_are_given_back_however_often_the_claimer_is_cancelled() -> None:
    taking: asyncio.Future[list[Lease]] = asyncio.get_running_loop().create_future()
    lease = cast("Lease", object())
    begun, go, returned = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def give_back(leases: list[Lease]) -> None:
        assert leases == [lease]
        begun.set()
        await go.wait()
        returned.set()

    claiming = asyncio.create_task(taken(taking, give_back))
    await asyncio.sleep(0)  # noqa: TID251 - lets it begin, and waits for nothing
    claiming.cancel()
    taking.set_result([lease])
    await begun.wait()
    claiming.cancel()
    await asyncio.wait([claiming])
    assert claiming.cancelled()
    go.set()
    await returned.wait()
