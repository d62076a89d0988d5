"""The promises of an engine to the jobs of several worker processes, as checks that any test suite can run.

    @pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
    async def test_contract(check, tmp_path):
        await check(Fleet(tmp_path, {"journal.url": URL, "jobs.engine": "mine"}))

Workers are real processes, which are killed, frozen, revived and told to stop while they work. Their effects reach this
process over a socket, before anything is recorded of them: what it saw is compared with what the journal says.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final, NamedTuple

from remit import CallContext, Job, Remit, Run, recipe, tool
from remit.codes import Code
from remit.errors import JournalError
from remit.ids import new_id
from remit.settings import load
from remit_testing.journal.storage import note
from remit_testing.suite import checks_in

_GATE: Final[list[int]] = []
"""The port of the fleet's gate, in a worker."""
_STEPS: Final = 3
_STOPPING: Final = "stopping"
_DRAIN_S: Final = 60.0
"""The bound of a call's end; it is not waited for where all is well."""


@tool("suite.mark", level="L1", idempotent=True)
async def _mark(ctx: CallContext) -> int:
    """An effect that may happen again, with the same key; returns the process that did it."""
    return await _happened(ctx.idempotency_key)


@tool("suite.pay", level="L1")
async def _pay(ctx: CallContext) -> int:
    """An effect that must not happen twice."""
    return await _happened(ctx.idempotency_key)


async def _happened(key: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", _GATE[-1])
    writer.write(f"{key} {os.getpid()}\n".encode())
    await reader.readline()
    writer.close()
    return os.getpid()


@recipe("suite_marks")
async def _marks(run: Run) -> int:
    """Have some effects, one after the other."""
    return len([await run.call("suite.mark") for _ in range(_STEPS)])


@recipe("suite_pays")
async def _pays(run: Run) -> int:
    """Have one effect, once."""
    return int((await run.call("suite.pay")).value)


@recipe("suite_waits")
async def _waits(run: Run) -> int:
    """Have an effect after a signal."""
    await run.wait_signal("go")
    return int((await run.call("suite.pay")).value)


class Effect(NamedTuple):
    """An effect that has happened; the process that had it waits for an answer."""

    key: str
    worker: int
    writer: asyncio.StreamWriter

    def answer(self) -> None:
        """Let the process go on, if it still does."""
        self.writer.write(b"\n")
        self.writer.close()


class Fleet:
    """Worker processes with one journal and one engine, and the effects that they have.

    `flags` are settings: the journal and the engine. `rounds` says how often a check does what it does. `preload` names
    modules that every worker needs.
    """

    def __init__(self, folder: Path, flags: Mapping[str, Any], rounds: int = 1, preload: tuple[str, ...] = ()) -> None:
        self._preload = [__name__, "remit.wiring.runtime", *preload]
        self.rounds = rounds
        self.effects: list[Effect] = []
        self.held: asyncio.Queue[Effect] = asyncio.Queue()
        """Effects that were not answered, while `hold` says so."""
        self.hold = False
        self._folder = folder
        self._flags = {
            "policy.rules": [{"effect": "allow", "tools": ["suite.*"]}],
            "app.principal": "alice",
            "jobs.lease_seconds": 1,
            **flags,
        }
        self._workers: dict[int, BaseProcess] = {}
        self._stopping: asyncio.Queue[int] = asyncio.Queue()
        self._port = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Remit]:
        """A Remit that works on nothing itself; at the end no worker is left."""
        gate = await asyncio.start_server(self._arrive, "127.0.0.1", 0)
        self._port = gate.sockets[0].getsockname()[1]
        try:
            async with _opened(self._flags, self._folder, work=False) as remit:
                yield remit
        finally:
            for worker in list(self._workers):
                await self.kill(worker)
            for effect in self.effects:
                effect.answer()
            gate.close()
            await gate.wait_closed()

    async def _arrive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        key, worker = (await reader.readline()).decode().split()
        if key == _STOPPING:
            self._stopping.put_nowait(int(worker))
            writer.write(b"\n")
            writer.close()
            return
        self.effects.append(effect := Effect(key, int(worker), writer))
        if self.hold:
            self.held.put_nowait(effect)
        else:
            effect.answer()

    def start(self) -> int:
        """Start a worker."""
        context = get_context("forkserver")
        context.set_forkserver_preload(self._preload)
        worker = context.Process(target=_work, args=(self._flags, str(self._folder), self._port))
        worker.start()
        assert worker.pid is not None
        self._workers[worker.pid] = worker
        return worker.pid

    async def kill(self, worker: int) -> None:
        """End a worker in the middle of whatever it does."""
        os.kill(worker, signal.SIGKILL)
        await self.ended(worker)

    async def tell_to_stop(self, worker: int) -> None:
        """Send SIGTERM to a worker; once this returns it begins nothing new."""
        os.kill(worker, signal.SIGTERM)
        await self._stopping.get()

    async def ended(self, worker: int) -> int | None:
        """Wait for the end of a worker; return its exit code."""
        process = self._workers.pop(worker)
        await asyncio.to_thread(process.join)
        return process.exitcode

    async def next_held(self) -> Effect:
        """Wait for an effect that was not answered, of a worker that lives."""
        while (effect := await self.held.get()).worker not in self._workers:
            pass
        return effect

    def release(self) -> None:
        """Answer every effect from now on, and those before."""
        self.hold = False
        while not self.held.empty():
            self.held.get_nowait().answer()

    async def check(self, remit: Remit, jobs: Iterable[Job[int]], *, each: int, once: bool) -> None:
        """Wait for the end of all jobs; each has that many effects, which are recorded once, and happened `once`."""
        expected = 0
        for job in jobs:
            assert (await remit.ended(job)).state == "completed"
            kinds = Counter(event.kind for event in await remit.service.streams.events(f"job/{job.id}"))
            assert kinds["tool_invocation_finished"] == each, f"{job.id}: {kinds}"
            assert kinds["job_completed"] == 1, f"{job.id}: {kinds}"
            expected += each
        keys = Counter(effect.key for effect in self.effects)
        assert len(keys) == expected
        assert not once or set(keys.values()) == {1}, "an effect happened twice"
        assert (await remit.service.streams.verify()).problems == ()


def _opened(flags: Mapping[str, Any], folder: Path, *, work: bool) -> Remit:
    settings = load(env={}, cwd=folder, flags=dict(flags))
    return Remit(settings=settings, tools=[_mark, _pay], recipes=[_marks, _pays, _waits], work=work)


def _work(flags: Mapping[str, Any], folder: str, port: int) -> None:
    """Work until SIGTERM; entry point of a process."""
    _GATE.append(port)

    async def main() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        async with _opened(flags, Path(folder), work=True) as remit:
            await stop.wait()
            drained = asyncio.create_task(remit.engine.drain(_DRAIN_S))
            await _happened(_STOPPING)
            await drained

    asyncio.run(main())


async def check_workers_that_start_together_run_each_job_once(fleet: Fleet) -> None:
    """However many want the same jobs."""
    async with fleet.open() as remit:
        jobs = [await remit.start(_pays()) for _ in range(4 * fleet.rounds)]
        for _ in range(2):
            fleet.start()
        await fleet.check(remit, jobs, each=1, once=True)


async def check_jobs_of_killed_workers_go_on_elsewhere(fleet: Fleet) -> None:
    """From the step that was under way, whichever worker dies."""
    async with fleet.open() as remit:
        jobs = [await remit.start(_marks()) for _ in range(1 + fleet.rounds)]
        fleet.hold = True
        fleet.start()
        for _ in range(fleet.rounds):
            await fleet.kill((await fleet.next_held()).worker)
            fleet.start()
        await fleet.next_held()
        fleet.release()
        for effect in fleet.effects:
            effect.answer()
        await fleet.check(remit, jobs, each=_STEPS, once=False)


async def check_a_frozen_worker_is_not_heard_and_works_on_once_revived(fleet: Fleet) -> None:
    """Count nothing of what it was doing, which is another's by then; new work is not refused to it."""
    async with fleet.open() as remit:
        jobs = []
        frozen = fleet.start()
        for _ in range(fleet.rounds):
            fleet.hold = True
            jobs.append(job := await remit.start(_marks()))
            effect = await fleet.next_held()
            await _freeze(remit, frozen)
            fleet.hold = False
            other = fleet.start()
            assert (await remit.ended(job)).state == "completed"
            before = await remit.service.streams.events(f"job/{job.id}")
            await fleet.kill(other)
            os.kill(frozen, signal.SIGCONT)
            effect.answer()
            assert await (await remit.start(_pays())) == frozen
            assert await remit.service.streams.events(f"job/{job.id}") == before
        fleet.effects = [effect for effect in fleet.effects if effect.worker != frozen]
        await fleet.check(remit, jobs, each=_STEPS, once=True)


async def _freeze(remit: Remit, worker: int) -> None:
    """Stop a process at a moment at which it holds no lock that all others wait for."""
    journal = remit.runtime.journal
    while True:
        os.kill(worker, signal.SIGSTOP)
        try:
            await journal.append(journal.writer(new_id("probe"), "probe"), note(1), synced=True)
        except JournalError as error:
            if error.code is not Code.JOURNAL_LOCKED:
                raise
            os.kill(worker, signal.SIGCONT)
        else:
            return


async def check_a_worker_that_stops_leaves_its_jobs_to_others(fleet: Fleet) -> None:
    """It lets the call under way end, begins no more, and its jobs go on without a wait for its lease."""
    async with fleet.open() as remit:
        jobs = []
        worker = fleet.start()
        for _ in range(fleet.rounds):
            fleet.hold = True
            jobs.append(await remit.start(_marks()))
            effect = await fleet.next_held()
            await fleet.tell_to_stop(worker)
            effect.answer()
            assert await fleet.ended(worker) == 0
            worker = fleet.start()
            following = await fleet.next_held()
            assert following.worker == worker
            fleet.hold = False
            following.answer()
            await remit.ended(jobs[-1])
        await fleet.check(remit, jobs, each=_STEPS, once=True)


async def check_what_waits_goes_on_on_any_worker(fleet: Fleet) -> None:
    """A signal wakes a job whose worker is gone."""
    async with fleet.open() as remit:
        jobs = []
        for _ in range(fleet.rounds):
            worker = fleet.start()
            jobs.append(job := await remit.start(_waits()))
            await remit.settled(job)
            await fleet.kill(worker)
            await job.signal("go", 1)
            worker = fleet.start()
            assert await job == worker
            await fleet.kill(worker)
        await fleet.check(remit, jobs, each=1, once=True)


ENGINE_CHECKS: Final[tuple[Callable[[Fleet], Awaitable[None]], ...]] = checks_in(globals())
"""Every check."""
