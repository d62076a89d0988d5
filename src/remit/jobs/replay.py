"""Replay: the recipe runs again on recorded results alone; no tool is called, nothing is written.

It ends at the first divergence, with both sides, or where the recording ends, or agrees with it to the end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, Never

import msgspec

from remit.errors import JournalError, NondeterminismError, RunError
from remit.jobs.branch import Branch, current
from remit.jobs.effects import Answer, Asked, Effects, Wait
from remit.jobs.ended import encoded_result, error_info
from remit.jobs.run import Run
from remit.jobs.state import CallRecord, History, Value, WaitRecord
from remit.jobs.versions import Difference, differences
from remit.journal.kinds import ChildStarted, JobCancelled, JobCompleted, JobFailed
from remit.redact import preview

if TYPE_CHECKING:
    from remit.gateway.outcome import Outcome
    from remit.jobs.program import Program
    from remit.journal.journal import Journal
    from remit.tools.catalog import Catalog


Verdict = Literal["same", "diverged", "incomplete"]


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """Where the recipe and the record part."""

    step: str
    recorded: str
    now: str


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay found."""

    job: str
    verdict: Verdict
    """`incomplete`: the same as far as the job has come."""
    steps: int
    """Recorded effects that were given back."""
    divergence: Divergence | None = None
    drifts: tuple[Difference, ...] = ()


class _Recorded:
    """A world in which nothing new can happen: a branch that wants something new stops there."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, str]] = []
        """Places where the recording ends, and what the recipe wants there."""
        self.quiet = asyncio.Event()
        self.active = 1

    async def call(self, asked: Asked, record: CallRecord) -> Outcome:  # noqa: ARG002 - the port's
        return await self._stop(asked.step, f"a call of {asked.tool}")

    async def value(self, step: str, kind: type[Value]) -> Value:
        return await self._stop(step, kind.KIND.removesuffix("_recorded"))

    async def wait(self, wait: Wait, record: WaitRecord | None) -> Answer:  # noqa: ARG002 - the port's
        return await self._stop(wait.step, f"a wait ({wait.type})")

    async def child(self, started: ChildStarted) -> None:
        await self._stop(started.step, f"the recipe {started.name}")

    async def _stop(self, step: str, wanted: str) -> Never:
        self.ends.append((step, wanted))
        self.block()
        try:
            while True:
                await asyncio.get_running_loop().create_future()
        finally:
            self.unblock()

    def block(self) -> None:
        self.active -= 1
        if self.active == 0:
            self.quiet.set()

    def unblock(self) -> None:
        self.active += 1

    def progress(self, done: float | None, total: float | None, message: str) -> None:
        """Nobody watches a replay."""

    def now(self) -> int:
        return 0  # bounds of waits are compared by what was recorded, not by today's clock


async def replay(journal: Journal, history: History, program: Program, catalog: Catalog, job: str) -> ReplayReport:
    """Run a program on a history. Raises JournalError where recorded values cannot be read."""
    drifts = tuple(await differences(history, program, catalog))
    recorded = len(history.places)
    world = _Recorded()
    effects = Effects(history, journal, world)
    run = Run(job, history.created.principal if history.created else "", effects)
    task = asyncio.create_task(_rooted(run, program))
    task.add_done_callback(lambda _task: world.quiet.set())
    while not task.done():
        await world.quiet.wait()
        world.quiet.clear()
        await asyncio.sleep(0)  # noqa: TID251 - lets branches that were just unblocked go on
        if world.active == 0:
            effects.over()
            task.cancel()
            await asyncio.wait([task])
    divergence = await _compare(task, effects, world, history, journal)
    if divergence is None and not world.ends:
        divergence = _left_over(effects, history)
    same: Verdict = "incomplete" if world.ends or history.end is None else "same"
    return ReplayReport(
        job=job,
        verdict="diverged" if divergence else same,
        steps=recorded - len(effects.left),
        divergence=divergence,
        drifts=drifts,
    )


async def _rooted(run: Run, program: Program) -> Any:
    current.set(Branch("", asyncio.current_task()))
    return await program.start(run)


async def _compare(
    task: asyncio.Task[Any], effects: Effects, world: _Recorded, history: History, journal: Journal
) -> Divergence | None:
    error = effects.failure or (None if task.cancelled() else task.exception())
    if isinstance(error, NondeterminismError):
        return Divergence(step=error.step, recorded=error.recorded, now=error.asked)
    if isinstance(error, JournalError):
        raise error
    if isinstance(error, Exception):
        return _compare_error(error, history)
    if world.ends or task.cancelled():
        if isinstance(history.end, JobCompleted | JobFailed) and world.ends:
            step, wanted = world.ends[0]
            return Divergence(step=step, recorded="nothing: the job had ended", now=wanted)
        return None
    return await _compare_result(task.result(), history, journal)


def _left_over(effects: Effects, history: History) -> Divergence | None:
    """A recorded effect that the recipe did not come by any more."""
    if effects.skipped is None or isinstance(history.end, JobCancelled):
        return None
    return Divergence(step=effects.skipped, recorded=f"an effect ({history.places[effects.skipped]})", now="nothing")


def _compare_error(error: Exception, history: History) -> Divergence | None:
    now = error_info(error)
    if isinstance(history.end, JobFailed):
        recorded = history.end.error
        if (recorded.code, recorded.message) == (now.code, now.message):
            return None
        return Divergence(step="end", recorded=f"{recorded.code}: {recorded.message}", now=f"{now.code}: {now.message}")
    ended = "a result" if isinstance(history.end, JobCompleted) else "no end yet"
    return Divergence(step="end", recorded=ended, now=f"{now.code}: {now.message}")


async def _compare_result(result: Any, history: History, journal: Journal) -> Divergence | None:
    try:
        now = encoded_result(result)
    except RunError as unfit:
        return _compare_error(unfit, history)
    if isinstance(history.end, JobCompleted):
        recorded = await journal.value(history.end.result, history.end.result_blob) or b"null"
        if msgspec.json.decode(recorded) == msgspec.json.decode(now):
            return None
        return Divergence(step="end", recorded=preview(recorded), now=preview(now))
    if isinstance(history.end, JobFailed):
        error = history.end.error
        return Divergence(step="end", recorded=f"{error.code}: {error.message}", now=preview(now))
    return None
