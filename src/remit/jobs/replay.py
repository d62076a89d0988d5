"""Replay: the recipe runs again on recorded results alone; no tool is called, nothing is written.

It ends at the first divergence, with both sides, or where the recording ends, or agrees with it to the end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, Never

import msgspec

from remit.errors import JournalError, NondeterminismError, RunError
from remit.jobs.activity import Activity
from remit.jobs.effects.port import Answer, CallRequest, Wait
from remit.jobs.effects.recorded import Effects
from remit.jobs.ended import encoded_result, error_info
from remit.jobs.run import Run
from remit.jobs.running import Running
from remit.jobs.state import CallRecord, History, Value, WaitRecord
from remit.jobs.versions import Difference, differences
from remit.journal.kinds import ChildStarted, JobCancelled, JobCompleted, JobFailed
from remit.redact import preview

if TYPE_CHECKING:
    from remit.gateway.outcome import Outcome
    from remit.jobs.effects.matching import Matching
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


class _Refusal:
    """A handler that does nothing new: a branch that wants something new stops there."""

    def __init__(self, activity: Activity) -> None:
        self.ends: list[tuple[str, str]] = []
        """Places where the recording ends, and what the recipe wants there."""
        self._activity = activity

    async def call(self, request: CallRequest, record: CallRecord) -> Outcome:  # noqa: ARG002 - the port's
        return await self._stop(request.step, f"a call of {request.tool}")

    async def value(self, step: str, kind: type[Value]) -> Value:
        return await self._stop(step, kind.KIND.removesuffix("_recorded"))

    async def wait(self, wait: Wait, record: WaitRecord | None) -> Answer:  # noqa: ARG002 - the port's
        return await self._stop(wait.step, f"a wait ({wait.type})")

    async def child(self, started: ChildStarted) -> None:
        await self._stop(started.step, f"the recipe {started.name}")

    async def _stop(self, step: str, wanted: str) -> Never:
        self.ends.append((step, wanted))
        self._activity.block()
        try:
            while True:
                await asyncio.get_running_loop().create_future()
        finally:
            self._activity.unblock()

    def progress(self, done: float | None, total: float | None, message: str, /) -> None:
        """Do nothing: a replay shows no progress."""

    def now(self) -> int:
        return 0  # bounds of waits are compared by what was recorded, not by today's clock


async def replay(journal: Journal, history: History, program: Program, catalog: Catalog, job: str) -> ReplayReport:
    """Run a program on a history. Raises JournalError if recorded values cannot be read."""
    drifts = tuple(await differences(history, program, catalog))
    recorded = len(history.places)
    activity = Activity()
    handler = _Refusal(activity)
    effects = Effects(history, journal, handler, activity)
    running = Running(Run(job, history.created.principal if history.created else "", effects), effects, program.start)
    while not running.done:
        await activity.attention.wait()
        activity.attention.clear()
        await asyncio.sleep(0)  # noqa: TID251 - lets branches that were just unblocked go on
        if activity.active == 0:
            await running.end()
    divergence = await _compare(running, handler, history, journal)
    if divergence is None and not handler.ends:
        divergence = _left_over(running.matching, history)
    same: Verdict = "incomplete" if handler.ends or history.end is None else "same"
    return ReplayReport(
        job=job,
        verdict="diverged" if divergence else same,
        steps=recorded - len(running.matching.left),
        divergence=divergence,
        drifts=drifts,
    )


async def _compare(running: Running, handler: _Refusal, history: History, journal: Journal) -> Divergence | None:
    task = running.task
    error = running.matching.failure or (None if task.cancelled() else task.exception())
    if isinstance(error, NondeterminismError):
        return Divergence(step=error.step, recorded=error.recorded, now=error.asked)
    if isinstance(error, JournalError):
        raise error
    if isinstance(error, Exception):
        return _compare_error(error, history)
    if handler.ends or task.cancelled():
        if isinstance(history.end, JobCompleted | JobFailed) and handler.ends:
            step, wanted = handler.ends[0]
            return Divergence(step=step, recorded="nothing: the job had ended", now=wanted)
        return None
    return await _compare_result(task.result(), history, journal)


def _left_over(matching: Matching, history: History) -> Divergence | None:
    """A recorded effect that the recipe did not come by any more."""
    if matching.skipped is None or isinstance(history.end, JobCancelled):
        return None
    return Divergence(step=matching.skipped, recorded=f"an effect ({history.places[matching.skipped]})", now="nothing")


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
