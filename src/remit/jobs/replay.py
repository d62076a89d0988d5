"""Replay: the recipe runs again on recorded results alone; no tool is called, nothing is written.

It ends at the first divergence, with both sides, or where the recording ends, or agrees with it to the end.

A program under way: its task, and the places it comes by.

A place where a replay stops, so that a person can look around in the recipe.

The look is synchronous: nothing else of the replay goes on meanwhile. Whatever it asks of the run is refused, so the
places that come after it, and with them the verdict, are those of a replay that does not stop.

The handler of a replay: nothing new happens, and nothing is written.

Verdicts of today on the calls that a job recorded, as the gateway judges them: nothing is called or asked.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator
from itertools import chain
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Literal, Never

import msgspec

from remit.codes import Code
from remit.errors import (
    JournalError,
    NondeterminismError,
    NotFoundError,
    PayloadErasedError,
    RunError,
    UsageError,
    VersionError,
)
from remit.gateway.today import CallJudge
from remit.jobs.branch import RunBranch, contain, current, ends
from remit.jobs.caller import caller_of
from remit.jobs.effects.effects import Effects, Matching, effect_name
from remit.jobs.end import encoded_result, error_info
from remit.jobs.recipe import declared
from remit.jobs.run import Run, RunRequests
from remit.jobs.skills import NO_SKILLS
from remit.jobs.spans import Activity
from remit.jobs.state import JobHistory, stream_of
from remit.jobs.versions import Difference, differences, first_refused, refusal
from remit.journal.blobs import pack
from remit.journal.kinds import ErrorInfo, JobCancelled, JobCompleted, JobFailed, UndoDeclared
from remit.policy.decision import Caller
from remit.redact import preview

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from remit.gateway.outcome import Outcome
    from remit.gateway.services import Services
    from remit.jobs.effects.port import CallRequest, ModelQuestion, Wait, WaitAnswer
    from remit.jobs.program import JobProgram
    from remit.jobs.skills import Skills
    from remit.jobs.state import CallRecord, ModelRecord, Value, WaitRecord
    from remit.journal.event import Blob
    from remit.journal.journal import Journal
    from remit.journal.kinds import ChildEnded, ChildStarted, CommandStarted, CompensationCompleted, JobLabeled
    from remit.policy.overlay import Overlay
    from remit.tools.catalog import Catalog
    from remit.tools.migration import Migrations


class Running:
    """A program that runs in a task of its own, from its beginning."""

    def __init__(self, run: Run, effects: Effects, start: Callable[[Run], Awaitable[Any]]) -> None:
        self.matching = effects.matching
        self.activity = effects.activity
        self.stopped = False
        contain(asyncio.get_running_loop())
        self.task = asyncio.create_task(_rooted(run, start), name=f"remit:{run.job_id}")
        self.task.add_done_callback(lambda _task: self.activity.attention.set())

    @property
    def quiet(self) -> bool:
        """Return whether every branch waits, and nothing has happened since that could end a wait."""
        activity = self.activity
        return activity.active == 0 and not (activity.ending or activity.attention.is_set() or self.task.done())

    def outcome(self) -> BaseException | None:
        """The error of a program that is done; None if it returned."""
        if not self.task.cancelled():
            return self.task.exception()
        if self.task.cancelling():
            self.matching.over()  # not by its own code: the process stops, and everything with it
        return RunError("the recipe cancelled itself", remedy="Do not let the recipe raise CancelledError itself.")

    async def stop(self) -> None:
        """End the program because a person wants the job to stop."""
        self.stopped = True
        await self.end()

    async def end(self) -> None:
        """End the program, wherever it is; it begins nothing more."""
        self.matching.over()
        await end(self.task)


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for its end; its error, if any, was looked at before or is of no interest."""
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.exception()


async def _rooted(run: Run, start: Callable[[Run], Awaitable[Any]]) -> Any:
    branch = RunBranch("", asyncio.current_task())
    current.set(branch)
    try:
        result = await ends(start(run))
    except BaseException:
        run.requests.close()
        raise
    finally:
        branch.task = None  # which holds the branch by its context: each would wait for the collector of garbage
    run.requests.settle()
    return result


class RefusingEffects:
    """A handler that does nothing new: a branch that wants something new stops there."""

    def __init__(self, activity: Activity) -> None:
        self.ends: list[tuple[str, str]] = []
        """Places where the recording ends, and what the recipe wants there."""
        self.undos: dict[str, tuple[str, dict[str, Any]]] = {}
        """Undo calls that the recipe makes from recorded values, and that are not recorded themselves."""
        self.default_model = ""
        self.models: list[tuple[str, str, str]] = []
        """Questions that would go to another model now: the place, the recorded model, today's."""
        self._activity = activity

    async def call(self, request: CallRequest, record: CallRecord) -> Outcome:  # noqa: ARG002 - the port's
        return await self._stop(request.step, f"a call of {request.tool}")

    async def ask(self, question: ModelQuestion, record: ModelRecord) -> Outcome:  # noqa: ARG002 - the port's
        return await self._stop(question.step, "a question to a model")

    async def model_differs(self, started: CommandStarted, recorded: str, current: str) -> None:
        self.models.append((started.step, recorded, current))

    async def value(self, step: str, kind: type[Value]) -> Value:
        return await self._stop(step, kind.KIND.removesuffix("_recorded"))

    async def wait(self, wait: Wait, record: WaitRecord | None) -> WaitAnswer:  # noqa: ARG002 - the port's
        return await self._stop(wait.step, f"a wait ({wait.type})")

    async def poll(self, wait: Wait) -> WaitAnswer | None:  # noqa: ARG002 - the port's
        return None

    async def child(self, started: ChildStarted, blobs: tuple[Blob, ...]) -> Never:  # noqa: ARG002 - the port's
        await self._stop(started.step, f"the recipe {started.name}")

    async def child_ended(self, ended: ChildEnded, blobs: tuple[Blob, ...]) -> None:
        """Do nothing: a replay writes nothing."""

    async def patch(self, name: str) -> None:
        """Do nothing: a replay writes nothing."""

    async def label(self, labeled: JobLabeled) -> None:
        await self._stop(labeled.step, "a label or title")

    async def declare(self, step: str, undo: tuple[str, dict[str, Any]]) -> None:
        self.undos[step] = undo

    async def compensate(self, step: str) -> CompensationCompleted:
        return await self._stop(step, "to undo what was done")

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


Change = Literal["refused", "asks", "runs"]
"""A call that ran would be refused, or would have to be approved; or one that was refused would run, or ask."""
_ORDER: Final[tuple[Change, ...]] = ("refused", "asks", "runs")
_decode: Final = msgspec.json.Decoder().decode
_JUDGED: Final = frozenset({"", "resolve", "authorize", "ready", "validate_arguments", "load_confirmation", "confirm"})
"""Stages whose refusals are judged again; the others look at origins, budgets and what else runs."""

_OF_POLICY: Final = frozenset({Code.POLICY_DENIED.name, Code.SANDBOX_REQUIRED.name})
"""Codes of `authorize` that are judged again; with the others the caller barred the call, or a limit was unproven."""


class CallToday(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded call that would end in another way today."""

    step: str
    tool: str
    change: Change
    code: str = ""
    reason: str = ""


def worst(calls: tuple[CallToday, ...]) -> Change | Literal["same"]:
    """The class of all changes: the worst one's; `same` if there is none."""
    changes = {call.change for call in calls}
    return next((change for change in _ORDER if change in changes), "same")


async def calls_today(
    services: Services, history: JobHistory, job: str, labels: Mapping[str, str], recipe: str
) -> tuple[CallToday, ...]:
    """The recorded calls of a job that would not end as recorded, by schema, policy and readiness of today."""
    job_caller = await caller_of(history, job, labels, recipe, services.journal)
    caller = Caller(
        principal=job_caller.principal, kind=job_caller.kind, recipe=job_caller.recipe, stream=stream_of(job)
    )
    return await calls_of(services, history, caller, job_caller.overlays)


async def calls_of(
    services: Services, history: JobHistory, caller: Caller, overlays: Sequence[Overlay] = ()
) -> tuple[CallToday, ...]:
    """Return those of one caller's recorded calls that would not end as recorded."""
    changes, judge = [], CallJudge(services, caller, overlays)
    for step, record in history.calls.items():
        recorded = record.started or record.refused
        if recorded is None:
            continue
        encoded: bytes | msgspec.Raw | None
        if isinstance(recorded.args, msgspec.Raw):
            encoded = recorded.args
        else:
            try:
                encoded = await services.journal.value(recorded.args, recorded.args_blob)
            except PayloadErasedError:
                continue  # nothing is left to judge
        if encoded is None and record.started is None:
            continue  # an older Remit did not record the arguments of refused calls
        judged = await judge.judge(recorded.tool_name, _decode(encoded) if encoded is not None else {})
        change = _change(record, judged.effect)
        if change is not None:
            changes.append(
                CallToday(step=step, tool=recorded.tool_name, change=change, code=judged.code, reason=judged.reason)
            )
    return tuple(changes)


def _change(record: CallRecord, effect: Change) -> Change | None:
    started, refused = record.started, record.refused
    if refused is None:
        by_approval = started is not None and bool(started.confirmation)
        return None if effect == "runs" or (effect == "asks" and by_approval) else effect
    if refused.stage == "authorize" and refused.code not in _OF_POLICY:
        return None
    if effect == "refused" or refused.stage not in _JUDGED or (effect == "asks" and refused.confirmation):
        return None
    return effect


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
    history: JobHistory,
    program: JobProgram,
    catalog: Catalog,
    migrations: Migrations,
    job: str,
    policy: str = "warn",
    skills: Skills = NO_SKILLS,
    model: str = "",
    stop: ReplayStop | None = None,
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


async def undo_of(journal: Journal, history: JobHistory, program: JobProgram, job: str, step: str) -> UndoDeclared:
    """The undo that a program makes from a step's recorded value. Raises VersionError if this code makes none."""
    _, handler = await _ran(journal, history, program, job)
    if step not in handler.undos:
        msg = f"the code here does not say how step {step} is undone"
        raise VersionError(msg, remedy="Resume the job where the code runs that recorded it.")
    tool, args = handler.undos[step]
    packed = pack(msgspec.json.encode(args))
    return UndoDeclared(step=step, tool_name=tool, args=packed.inline, args_blob=packed.ref)


async def _ran(
    journal: Journal,
    history: JobHistory,
    program: JobProgram,
    job: str,
    model: str = "",
    stop: ReplayStop | None = None,
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
    while not running.task.done():
        await activity.attention.wait()
        activity.attention.clear()
        await asyncio.sleep(0)  # noqa: TID251 - lets branches that were just unblocked go on
        if activity.active == 0 and not activity.ending:
            await running.end()
    await end(running.task)  # its error is looked at, or it would be complained of
    return running, handler


async def _compare(
    running: Running, handler: RefusingEffects, history: JobHistory, journal: Journal
) -> Divergence | None:
    task = running.task
    error = running.matching.failure or (None if task.cancelled() else task.exception())
    if isinstance(error, NondeterminismError):
        return Divergence(step=error.step, recorded=error.recorded, now=error.requested)
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


def _left_over(matching: Matching, history: JobHistory) -> Divergence | None:
    """A recorded effect that the recipe did not come by any more."""
    if matching.skipped is None or isinstance(history.end, JobCancelled):
        return None
    recorded = effect_name(history.places[matching.skipped])
    return Divergence(step=matching.skipped, recorded=recorded, now="nothing there any more")


def _compare_error(error: Exception, history: JobHistory) -> Divergence | None:
    now, recorded = error_info(error), _recorded_error(history)
    if recorded is not None:
        if (recorded.code, recorded.message) == (now.code, now.message):
            return None
        return Divergence(step="end", recorded=f"{recorded.code}: {recorded.message}", now=f"{now.code}: {now.message}")
    ended = "a result" if isinstance(history.end, JobCompleted) else "no end yet"
    return Divergence(step="end", recorded=ended, now=f"{now.code}: {now.message}")


def _recorded_error(history: JobHistory) -> ErrorInfo | None:
    """Return what the recipe failed with; the job's end also says what was undone afterwards."""
    compensation = history.compensations.get("")
    if compensation is not None:
        return compensation.error
    return history.end.error if isinstance(history.end, JobFailed) else None


async def _compare_result(result: Any, history: JobHistory, journal: Journal) -> Divergence | None:
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


_OURS: Final = "remit.jobs."
_PLANS: Final = "remit.jobs.plans."
_SUSPENDS: Final = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR

Look = Callable[[FrameType, str], None]
"""Looks at the recipe's frame; the text says what the recipe wants there."""


class ReplayStop:
    """The place where a replay stops, and what looks at it."""

    def __init__(self, step: str, look: Look) -> None:
        self.step = step
        self.reached = False
        self._look = look

    def watch(self, effects: Effects) -> StoppingMatching:
        """Have a pass stop here; to be called before its run is made."""
        effects.matching = matching = StoppingMatching(effects, self)
        return matching

    def require_reached(self, job: str) -> None:
        """Raise NotFoundError (STEP_NOT_FOUND) if the replay never came by the place."""
        if not self.reached:
            msg = f"the replay of {job} did not come by step {self.step!r:.80}"
            raise NotFoundError(msg, code=Code.STEP_NOT_FOUND, remedy=f"`remit show {job}` lists its steps.")

    def look(self, frame: FrameType, wanted: str, run: Run) -> None:
        """Look once, with the run closed."""
        self.reached = True
        requests, run.requests = run.requests, RunRequests()
        token = current.set(_Closed("", None))
        try:
            self._look(frame, wanted)
        finally:
            current.reset(token)
            run.requests.close()
            run.requests = requests


class StoppingMatching(Matching):
    """Matches places, and stops at one of them."""

    def __init__(self, effects: Effects, stop: ReplayStop) -> None:
        super().__init__(effects.history, effects.activity)
        self.run: Run | None = None
        self.root: asyncio.Task[Any] | None = None
        """The task of the program, which says where a branch comes from that has no frame of the recipe."""
        self._stop = stop

    def enter(self, step: str, kind: str) -> bool:
        if step == self._stop.step and not self._stop.reached and self.run is not None:
            recorded = self._history.places.get(step)
            wanted = effect_name(kind) + ("" if recorded == kind else f"; recorded: {_said(recorded)}")
            asking = sys._getframe(1)  # noqa: SLF001 - the way to the recipe's variables
            frames = chain(_running(asking), _suspended(self.root))
            self._stop.look(next(_recipes(frames), asking), wanted, self.run)
        return super().enter(step, kind)


class _Closed(RunBranch):
    """The branch of an onlooker: it has no places."""

    def pass_by(self) -> None:
        raise UsageError(
            "nothing is called or recorded where a replay stops",
            remedy="Look at the recipe's variables, and let the replay go on.",
        )


def _said(recorded: str | None) -> str:
    return "nothing" if recorded is None else effect_name(recorded)


def _running(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield this frame of the running task and those that wait for it, the innermost first."""
    while frame is not None and frame.f_code.co_flags & _SUSPENDS:
        yield frame
        frame = frame.f_back


def _suspended(task: asyncio.Task[Any] | None) -> Iterator[FrameType]:
    """The frames of a task that waits in its run, the innermost first."""
    frames: list[FrameType] = []
    waiting: Any = task.get_coro() if task is not None else None
    while inspect.iscoroutine(waiting) and waiting.cr_frame is not None:
        frames.append(waiting.cr_frame)
        waiting = waiting.cr_await
    while frames and not _of_run(frames[-1]):  # what the run itself waits with
        frames.pop()
    return reversed(frames)


def _recipes(frames: Iterator[FrameType]) -> Iterator[FrameType]:
    """Yield those of them that are not the run's own."""
    return (frame for frame in frames if not _of_run(frame))


def _of_run(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return module.startswith(_OURS) and not module.startswith(_PLANS)
