from __future__ import annotations

import asyncio
import gc
import os
import threading
from pathlib import Path

import pytest

from remit import threads as module
from remit.codes import Code
from remit.errors import ProviderError
from remit.threads import StopEvent, StoppedError, Threads, wait_for_lock
from tests.patience import PATIENCE_S


async def test_work_runs_in_another_thread_and_gives_its_result() -> None:
    assert await Threads().stoppable(lambda _: threading.current_thread()) is not threading.current_thread()


async def test_what_work_raises_is_raised() -> None:
    def fail(_: StopEvent) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await Threads().stoppable(fail)


async def test_a_cancellation_stops_the_work_and_waits_for_its_end() -> None:
    started, ended = threading.Event(), threading.Event()

    def work(stop: StopEvent) -> None:
        started.set()
        stop.wait()
        ended.set()
        stop.check()

    call = asyncio.ensure_future(Threads().stoppable(work))
    await asyncio.to_thread(started.wait)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert ended.is_set()


async def test_work_that_does_not_stop_holds_its_caller_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GRACE_S", 0.0)
    started, release = threading.Event(), threading.Event()

    def work(_: StopEvent) -> None:
        started.set()
        release.wait()

    call = asyncio.ensure_future(Threads().stoppable(work))
    await asyncio.to_thread(started.wait)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    release.set()


async def test_work_that_was_cancelled_before_it_began_is_never_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GRACE_S", 0.0)
    monkeypatch.setattr(module, "_LOST_PER_SLOT", 1)
    threads = Threads(1)
    threads._most = 2  # one more than there are threads
    began, release, done = threading.Event(), threading.Event(), threading.Event()

    def works(_: StopEvent) -> None:
        began.set()
        release.wait()

    first = asyncio.ensure_future(threads.stoppable(works))
    second = asyncio.ensure_future(threads.stoppable(lambda _: done.set()))
    await asyncio.to_thread(began.wait)
    assert threads._busy == 2
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    release.set()
    await first
    assert not done.is_set()


async def test_threads_that_calls_have_left_behind_are_given_up_until_too_many_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_LOST_PER_SLOT", 2)
    threads, release = Threads(1), threading.Event()
    for _ in range(2):
        began = threading.Event()

        def hangs(began: threading.Event = began) -> None:
            began.set()
            release.wait()

        lost = asyncio.ensure_future(threads.run(hangs))
        await asyncio.to_thread(began.wait)
        lost.cancel()
        with pytest.raises(asyncio.CancelledError):
            await lost
    with pytest.raises(ProviderError) as refused:
        await threads.run(list)
    assert (refused.value.code, refused.value.cause) == (Code.TOOL_UNAVAILABLE, Code.SpawnFailed)
    release.set()
    await asyncio.to_thread(threads._executor.shutdown)
    await asyncio.sleep(0)  # noqa: TID251 - what ended is counted, and nothing waited for
    assert threads._busy == 0


@pytest.mark.slow
async def test_how_cancelled_work_ended_is_not_reported_as_forgotten() -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))
    started = threading.Event()

    def work(stop: StopEvent) -> None:
        started.set()
        stop.wait()
        stop.check()

    call = asyncio.ensure_future(Threads().stoppable(work))
    await asyncio.to_thread(started.wait)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    del call
    gc.collect()
    assert reported == []


def test_a_lock_is_waited_for_until_its_holder_is_gone(tmp_path: Path) -> None:
    holder, waiter = (os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR) for _ in range(2))
    wait_for_lock(holder, StopEvent())
    taken = threading.Thread(target=wait_for_lock, args=(waiter, StopEvent()))
    taken.start()
    os.close(holder)
    taken.join(PATIENCE_S)
    assert not taken.is_alive()
    os.close(waiter)


def test_waiting_for_a_lock_ends_when_nobody_waits_for_the_work(tmp_path: Path) -> None:
    holder, waiter = (os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR) for _ in range(2))
    wait_for_lock(holder, StopEvent())
    stop = StopEvent()
    stop.set()
    with pytest.raises(StoppedError):
        wait_for_lock(waiter, stop)
    os.close(holder)
    os.close(waiter)
