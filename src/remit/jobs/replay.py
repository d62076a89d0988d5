"""Replay: the recipe runs again on recorded results alone; no tool is called, nothing is written.

It ends at the first divergence, with both sides, or where the recording ends, or agrees with it to the end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from remit.errors import JournalError, NondeterminismError, RunError, VersionError
from remit.jobs.effects.matching import effect_name
from remit.jobs.effects.recorded import Effects
from remit.jobs.effects.refusing import RefusingEffects
from remit.jobs.ended import encoded_result, error_info
from remit.jobs.recipe import declared
from remit.jobs.run import Run
from remit.jobs.running import Running, end
from remit.jobs.skills import NO_SKILLS
from remit.jobs.spans import Activity
from remit.jobs.state import History
from remit.jobs.today import CallToday
from remit.jobs.versions import Difference, differences, first_refused, refusal
from remit.journal.blobs import pack
from remit.journal.kinds import ErrorInfo, JobCancelled, JobCompleted, JobFailed, UndoDeclared
from remit.redact import preview

if TYPE_CHECKING:
    from remit.jobs.effects.matching import Matching
    from remit.jobs.program import Program
    from remit.jobs.skills import Skills
    from remit.jobs.stopping import Stop
    from remit.journal.journal import Journal
    from remit.tools.catalog import Catalog
    from remit.tools.migration import Migrations

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
    """Recorded effects that were returned."""
    divergence: Divergence | None = None
    drifts: tuple[Difference, ...] = ()
    today: Literal["same", "runs", "asks", "refused"] = "same"
    """The answer of today's schemas, policy and readiness to the recorded calls: the worst change among them."""
    calls: tuple[CallToday, ...] = ()
    """The calls that would end in another way than they did."""


async def replay(
    journal: Journal,
    history: History,
    program: Program,
    catalog: Catalog,
    migrations: Migrations,
    job: str,
    policy: str = "warn",
    skills: Skills = NO_SKILLS,
    model: str = "",
    stop: Stop | None = None,
) -> ReplayReport:
    """Run a program on a history; `stop` looks at it where the program comes by a place.

    Raises JournalError if recorded values cannot be read, and VersionError for a difference that the mismatch `policy`
    refuses: before anything runs, except for models, which are known once the program asks them. Raises NotFoundError
    if nothing differs and the program never came by the place.
    """
    drifts = tuple(await differences(history, program, catalog, journal, migrations, skills))
    require_allowed(drifts, policy)
    places = set(history.places)
    running, handler = await _ran(journal, history, program, job, model, stop)
    models = tuple(
        [
            Difference(subject=f"step {step}", about="model", recorded=recorded, current=current)
            for step, recorded, current in handler.models
        ]
    )
    require_allowed(models, policy)
    divergence = await _compare(running, handler, history, journal)
    if divergence is None and not handler.ends:
        divergence = _left_over(running.matching, history)
    if divergence is None and stop is not None:
        stop.require_reached(job)
    same: Verdict = "incomplete" if handler.ends or history.end is None else "same"
    return ReplayReport(
        job=job,
        verdict="diverged" if divergence else same,
        steps=len(places - running.matching.left - ({divergence.step} if divergence else set())),
        divergence=divergence,
        drifts=(*drifts, *models),
    )


def require_allowed(drifts: tuple[Difference, ...], policy: str) -> None:
    """Raise VersionError for the first difference that a mismatch policy refuses."""
    refused = first_refused(drifts, policy)
    if refused is not None:
        raise refusal(refused, "Replay it all the same with --anyway (anyway=true), or set jobs.mismatch to warn.")


async def undo_of(journal: Journal, history: History, program: Program, job: str, step: str) -> UndoDeclared:
    """The undo that a program makes from a step's recorded value. Raises VersionError if this code makes none."""
    _, handler = await _ran(journal, history, program, job)
    if step not in handler.undos:
        msg = f"the code here does not say how step {step} is undone"
        raise VersionError(msg, remedy="Resume the job where the code runs that recorded it.")
    tool, args = handler.undos[step]
    packed = pack(msgspec.json.encode(args))
    return UndoDeclared(step=step, tool_name=tool, args=packed.inline, args_blob=packed.ref)


async def _ran(
    journal: Journal, history: History, program: Program, job: str, model: str = "", stop: Stop | None = None
) -> tuple[Running, RefusingEffects]:
    """Run a program on a history until it ends, or every branch wants something new."""
    activity = Activity()
    handler = RefusingEffects(activity)
    handler.default_model = model
    effects = Effects(history, journal, handler, activity)
    matching = stop.watch(effects) if stop is not None else None
    run = Run(job, history.principal, effects, program.recipes, declared(history.began or program.version))
    running = Running(run, effects, program.start)
    if matching is not None:
        matching.run, matching.root = run, running.task
    while not running.done:
        await activity.attention.wait()
        activity.attention.clear()
        await asyncio.sleep(0)  # noqa: TID251 - lets branches that were just unblocked go on
        if activity.active == 0:
            await running.end()
    await end(running.task)  # its error is looked at, or it would be complained of
    return running, handler


async def _compare(running: Running, handler: RefusingEffects, history: History, journal: Journal) -> Divergence | None:
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
    recorded = effect_name(history.places[matching.skipped])
    return Divergence(step=matching.skipped, recorded=recorded, now="nothing there any more")


def _compare_error(error: Exception, history: History) -> Divergence | None:
    now, recorded = error_info(error), _recorded_error(history)
    if recorded is not None:
        if (recorded.code, recorded.message) == (now.code, now.message):
            return None
        return Divergence(step="end", recorded=f"{recorded.code}: {recorded.message}", now=f"{now.code}: {now.message}")
    ended = "a result" if isinstance(history.end, JobCompleted) else "no end yet"
    return Divergence(step="end", recorded=ended, now=f"{now.code}: {now.message}")


def _recorded_error(history: History) -> ErrorInfo | None:
    """Return what the recipe failed with; the job's end also says what was undone afterwards."""
    compensation = history.compensations.get("")
    if compensation is not None:
        return compensation.error
    return history.end.error if isinstance(history.end, JobFailed) else None


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
    error = _recorded_error(history)
    if error is not None:
        return Divergence(step="end", recorded=f"{error.code}: {error.message}", now=preview(now))
    return None
