from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal

import pytest

from remit.cli.errors import InterruptedByUserError
from remit.cli.runner import SignalStop, run_async


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


async def forever() -> None:
    await asyncio.Event().wait()


def test_what_the_coroutine_returns_is_returned() -> None:
    async def work(_stop: SignalStop) -> int:
        return 7

    assert run_async(work) == 7


def test_the_first_signal_cancels_and_lets_everything_unwind() -> None:
    unwound = []

    async def work(_stop: SignalStop) -> None:
        asyncio.get_running_loop().call_soon(interrupt)
        try:
            await forever()
        finally:
            unwound.append(True)

    with pytest.raises(InterruptedByUserError):
        run_async(work)
    assert unwound == [True]


def test_the_second_signal_hurries_what_unwinding_waits_for() -> None:
    async def work(stop: SignalStop) -> None:
        hurried = asyncio.Event()

        async def hurry() -> None:
            hurried.set()

        stop.hurry = hurry
        asyncio.get_running_loop().call_soon(interrupt)
        try:
            await forever()
        finally:
            asyncio.get_running_loop().call_soon(interrupt)
            await hurried.wait()

    with pytest.raises(InterruptedByUserError):
        run_async(work)


def test_the_third_signal_gets_through_whatever_happens() -> None:
    async def work(_stop: SignalStop) -> None:
        for _ in range(2):
            interrupt()
        with contextlib.suppress(asyncio.CancelledError):
            await forever()
        while True:
            interrupt()  # as a person would whose program blocks the loop

    with pytest.raises(KeyboardInterrupt):
        run_async(work)


def test_gentle_means_that_the_first_signal_only_asks() -> None:
    async def work(stop: SignalStop) -> str:
        asyncio.get_running_loop().call_soon(interrupt)
        await stop.requested.wait()
        return "ended by itself"

    assert run_async(work, gentle=True) == "ended by itself"


def test_handlers_are_put_back_and_ignored_signals_stay_ignored() -> None:
    before = signal.getsignal(signal.SIGINT)
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:

        async def work(_stop: SignalStop) -> tuple[object, object]:
            return signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGHUP)

        inside, hangup = run_async(work)
        assert inside is not before
        assert hangup is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGHUP, ignored)


def test_tasks_left_behind_are_ended() -> None:
    ended = []

    async def left() -> None:
        try:
            await forever()
        finally:
            ended.append(True)

    async def work(_stop: SignalStop) -> None:
        started = asyncio.create_task(left())
        await asyncio.wait([started], timeout=0)

    run_async(work)
    assert ended == [True]


def test_garbage_is_looked_for_as_usual_once_a_command_stays_up(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gc.get_threshold()
    monkeypatch.setattr("remit.cli.runner._START_S", 0.0)

    async def work(_stop: SignalStop) -> None:
        later = asyncio.Event()
        asyncio.get_running_loop().call_later(0, later.set)
        await later.wait()

    gc.set_threshold(200_000)
    try:
        run_async(work)
        assert gc.get_threshold() == (700, 10, 10)
    finally:
        gc.set_threshold(*before)
