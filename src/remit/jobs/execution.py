"""One worker's execution of a job: load, check versions, replay, go on, record the end or park.

While every branch waits, nothing happens that a process would be needed for: the job is *parked*, and the worker that
is woken for it runs the recipe again from the journal. An execution ends by return, error, park or cancellation, or
because the worker lost the lease. A job that fails or is cancelled undoes what it did before it ends; from the moment
that this is recorded its recipe runs no more.

A job while this process holds its lease: its inbox, its questions, and every way that it is left.

The services that every execution of a process works with.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import (
    AppendConflictError,
    ChainBrokenError,
    JournalError,
    NondeterminismError,
    RunError,
    UsageError,
    VersionError,
)
from remit.jobs.caller import caller_of
from remit.jobs.effects.calls import EffectRecorder
from remit.jobs.effects.effects import Effects
from remit.jobs.effects.live import LiveEffects
from remit.jobs.effects.questions import Questions
from remit.jobs.end import PassEnd, encoded_result, error_info
from remit.jobs.inbox import JobInbox
from remit.jobs.recipe import declared
from remit.jobs.replay import Running, end, undo_of
from remit.jobs.routes import LackingError, delay, kept_for, of_version, route_of, unkept
from remit.jobs.run import Run
from remit.jobs.skills import refusal, require_on
from remit.jobs.spans import Activity
from remit.jobs.state import CODE, WAITING, JobHistory, job_of, stuck_by
from remit.journal.blobs import pack
from remit.journal.event import UNSET, HeadPatch, Lease
from remit.journal.kinds import (
    CompensationCompleted,
    CompensationStarted,
    ErrorInfo,
    JobCancelled,
    JobCompleted,
    JobFailed,
    JobWaiting,
    Payload,
    RecoveryStarted,
    UndoDeclared,
)
from remit.journal.labels import OURS, relabeled
from remit.journal.leases import HeldLease
from remit.journal.lineage import whole

if TYPE_CHECKING:
    from remit.gateway.confirmations import Confirmations
    from remit.gateway.pipeline import Gateway
    from remit.jobs.effects.calls import Waits
    from remit.jobs.program import JobProgram, Programs
    from remit.jobs.skills import Skills
    from remit.jobs.versions import Versions
    from remit.journal.event import Event
    from remit.journal.journal import Journal
    from remit.journal.kinds import JobLabeled
    from remit.randomness import RandomSource


_DEATHS: Final = 3
"""Processes that may die of a job before it is left alone."""
_SUSPECT: Final = _DEATHS - 1
DEADLY: Final = f"{_DEATHS} processes in a row died while they ran this job"


class LeasedJob(HeldLease):
    """The stream of a leased job, its inbox, and the questions it asks."""

    def __init__(self, journal: Journal, confirmations: Confirmations, lease: Lease) -> None:
        head = lease.head
        super().__init__(journal, head)
        self.labels = head.labels
        self.priority = head.priority
        self.job = job_of(head.stream)
        self.inbox = JobInbox(journal, self.job)
        self.questions = Questions(journal, confirmations, self.writer)
        self.seen_wakes = head.wakes
        self.route = head.route
        """The route of those that can take the job next."""
        self._lease = lease
        self._recovered = False

    async def refresh(self) -> None:
        """Read the inbox, unless the job is new and nothing can be in it: no message comes without waking the job."""
        if self.seen_wakes or self._lease.previous_state != "pending":
            await self.inbox.refresh()

    async def take_over(
        self, history: JobHistory, suspects: dict[str, JobHistory], alive: Callable[[str], bool]
    ) -> Literal["go on", "later", "deadly"]:
        """Record it if this worker goes on after one that disappeared, and say whether it may go on.

        `alive` says whether an owner runs still. Of the `suspects`, jobs whose processes died again and again, one at a
        time goes on here: then only the one is blamed that ends this process too. `deadly` has ended enough of them.
        """
        if not self._recovered and self._lease.previous_state == "running":
            self._recovered = True
            owner, previous = self._lease.head.lease_owner or "", self._lease.previous_owner or ""
            event = RecoveryStarted(owner=owner, previous_owner=previous, alive=bool(previous) and alive(previous))
            # Durable before anything runs if a process died: should this one die too, the next has to know.
            await self.journal.append(self.writer, event, synced=bool(previous))
            history.take(event)
        if history.deaths.count >= _DEATHS:
            return "deadly"
        if history.deaths.count >= _SUSPECT and any(other.deaths.count >= _SUSPECT for other in suspects.values()):
            await self._postpone(SECOND, self.route)
            return "later"
        suspects[self.stream] = history
        return "go on"

    async def leave_to_code(self, history: JobHistory, with_code: Callable[[str, str, str], Awaitable[str]]) -> None:
        """Leave the job to another process that works now and has the code that recorded it.

        Raises AppendConflictError if there is one: the job is lost to it.
        """
        created = history.created
        if created is None or created.kind != "recipe":
            return
        owner = await with_code(created.name, history.execution, self.owner)
        if owner:
            await self._postpone(0, kept_for(self.route, owner))
            raise AppendConflictError(f"{self.stream}: left to a process that has the code of the job")

    async def _postpone(self, by: int, route: str) -> None:
        """Leave the job to workers of a route, in so many microseconds."""
        due = self.journal.clock.now() + by
        await self.release(patch=HeadPatch(state="pending", due_at=due, route=route))

    async def check(self) -> bool:
        """Return whether the job is still ours; what was left in its inbox is read."""
        head = await self.current()
        if head is None:
            return False
        if head.wakes != self.seen_wakes:
            self.seen_wakes = head.wakes
            await self.inbox.refresh()
        return True

    async def wait(self, due: int | None, name: str, value: str) -> bool:
        """Give the job up until `due` or until something wakes it, with a label; False if something already has."""
        patch = HeadPatch(state="waiting", due_at=due, route=self.route, labels=self._labels(name, value))
        return await self.park(patch, seen_wakes=self.seen_wakes)

    async def hand_on(self) -> None:
        """Let another worker go on at once."""
        await self.give_up(HeadPatch(due_at=self.journal.clock.now(), route=unkept(self.route)[0]))

    async def abandon(self, code: str = "") -> None:
        """Leave a job whose record is damaged: nothing is written to it, and no worker takes it before it is woken.

        With a code, of what is damaged beside its own events, lists say why.
        """
        patch = HeadPatch(due_at=None)
        if code:
            patch = HeadPatch(due_at=None, state="waiting", labels=self._labels(CODE, code))
        await self.release(patch=patch)

    async def leave(self, error: ErrorInfo, route: str, due_in: int | None, *, cancellable: bool) -> bool:
        """Leave the job, stuck; False if it is lost, or to be cancelled, which needs no code.

        Workers of `route` may take it in `due_in` microseconds; None: not before something wakes it.
        """
        before = self.seen_wakes
        waiting: JobWaiting | None = JobWaiting(
            step=error.step, wait_type="human", correlation_key=stuck_by(error.code), reason=error.message
        )
        while await self.check():
            if cancellable and self.inbox.cancel is not None:
                return False
            if waiting is not None:
                await self.journal.append(self.writer, waiting, synced=False)
                waiting = None
            now = self.journal.clock.now()
            due = None if due_in is None else now + due_in
            self.route = route or self.route
            if self.seen_wakes != before:  # what woke it meanwhile may have changed everything: any worker looks
                due, self.route = now, ""
            if await self.wait(due, CODE, error.code):
                return True
        return False

    async def finish(self, state: str, event: Payload, blobs: tuple[Any, ...] = ()) -> None:
        """Record the end of the job, durably."""
        if (state != "completed" or self.questions.is_asked) and await self.check():
            # Before the end, for an ended job is not looked at again; after a crash in between, the next one ends it.
            await self.questions.close(f"the job is {state}")
        labels = self._labels(CODE, event.error.code if isinstance(event, JobFailed) else "")
        patch = HeadPatch(state=state, due_at=None, closed=True, labels=labels)
        await self.release(event, patch=patch, blobs=blobs)

    def relabel(self, labeled: JobLabeled, known: dict[str, str]) -> HeadPatch:
        """Take up labels or a title that the recipe gives; `known` are those that tools and limits see."""
        self.labels = relabeled(self.labels, labeled.labels)
        known.clear()
        known.update({key: text for key, text in self.labels.items() if not key.startswith(OURS)})
        return HeadPatch(labels=self.labels if labeled.labels else UNSET, title=labeled.title or UNSET)

    def _labels(self, name: str, value: str) -> dict[str, str]:
        """The job's labels, with one of ours for lists."""
        labels = {key: text for key, text in self.labels.items() if key not in {WAITING, CODE}}
        return {**labels, name: value} if value else labels


_log: Final = logging.getLogger("remit.jobs")
_LINGER: Final = SECOND // 5
"""Microseconds an execution stays for a timer about to fire, rather than park and replay."""
_UNRECORDABLE: Final = "Correct what the message names in the recipe, then retry the job."
_STUCK: Final = (NondeterminismError, VersionError, LackingError)
"""Errors of this process, not of the job: another one may continue it."""


_UNREAD: Final = JobHistory()
"""The history of a job whose events are not read yet; nothing is folded into it."""


class JobExecution:
    """One execution of a job by this process, from the lease to the end of it."""

    def __init__(self, services: JobServices, lease: Lease, keeper: str = "") -> None:
        self._services = services
        self._keeper = keeper
        self._journal = services.journal
        self.lease = LeasedJob(services.journal, services.gateway.services.confirmations, lease)
        self.job = self.lease.job
        self._activity = Activity()
        self._history = _UNREAD

    def news(self, wakes: int) -> None:
        """The job was woken so often by now; look, if that is more than was seen."""
        if wakes != self.lease.seen_wakes:
            self._activity.attention.set()

    def halt(self) -> None:
        """Begin nothing new: let what is under way end, then give the job up where it stands."""
        self._activity.halting = True

    async def give_up(self) -> None:
        """Let another worker go on at once; what was announced without an outcome is its to settle (rule 3)."""
        await self.lease.hand_on()

    async def run(self) -> PassEnd:
        """Go as far as possible. Raises JournalError if the journal fails; what is recorded stays."""
        try:
            events = await self._journal.read(self.lease.stream)
            try:
                self.lease.writer.follows(events)
            except ChainBrokenError as error:
                return await self._damaged(error)
            try:
                return await self._to_end(await whole(self._journal, events))
            except (ChainBrokenError, UsageError) as error:  # this job is damaged, or its limits are a newer Remit's
                try:
                    return await self._stuck(error_info(error))
                except ChainBrokenError as again:  # its inbox was damaged while it was left
                    return await self._damaged(again, again.code.name)
        except AppendConflictError:
            _log.info("%s: another worker took over the job", self.job)
            return PassEnd(how="lost")
        except JournalError as error:
            if error.code is not Code.RECORD_INVALID:
                raise
            # Nothing can be written to this one, and it stops no other job.
            _log.error("%s: %s; see `remit verify`", self.job, error.message)
            return PassEnd(how="lost")

    async def _to_end(self, events: Sequence[Event]) -> PassEnd:
        """Run, and if its end cannot be recorded, fail the job with the reason."""
        try:
            return await self._run(events)
        except (UnicodeEncodeError, OverflowError, JournalError) as error:
            if isinstance(error, JournalError) and error.code is not Code.RECORD_INVALID:
                raise
            return await self._unrecordable(error)
        finally:
            self._services.suspects.pop(self.lease.stream, None)

    async def _unrecordable(self, error: Exception) -> PassEnd:
        """Fail the job in plain words; leave it stuck, if not even they can be recorded. Raises JournalError."""
        reason = ErrorInfo(code=Code.RECORD_INVALID.name, message=error_info(error).message, remedy=_UNRECORDABLE)
        _log.error("%s: %s", self.job, reason.message)
        try:
            await self.lease.rewrite()
            return await (self._stuck(reason) if self._history.ending else self._failed(reason))
        except JournalError as again:
            if again.code is not Code.RECORD_INVALID:
                raise
            await self.lease.rewrite()
            await self.lease.abandon(Code.RECORD_INVALID.name)
            return PassEnd(how="stuck", error=reason)

    async def _damaged(self, error: ChainBrokenError, code: str = "") -> PassEnd:
        if await self.lease.current() is None:  # this process stood still, and another one recorded what differs
            raise self.lease.writer.failure or error
        _log.error("%s: %s", self.job, error.message)
        await self.lease.abandon(code)
        return PassEnd(how="stuck", error=error_info(error))

    async def _run(self, events: Sequence[Event]) -> PassEnd:
        self._history = history = JobHistory(events)
        if history.end is not None:
            return PassEnd(how="lost")
        self.lease.route = kept_for(route_of(history.created), self._keeper)
        await self.lease.refresh()
        if history.ending:
            return await self._compensate()
        if self.lease.inbox.cancel is not None:
            return await self._cancelled()
        try:
            program = await self._services.programs.load(history)
            if not (self._keeper or program.runs(history.execution)):
                await self.lease.leave_to_code(history, self._services.with_code)
            await self._services.versions.check(history, self.lease.writer, program)
            await require_on(self._services.skills, history.created)
        except _STUCK as error:
            return await self._stuck(error_info(error), self._route_to(error))
        except RunError as error:
            return await self._failed(error_info(error))
        return await self._taken_over() or await self._go_on(program)

    async def _go_on(self, program: JobProgram) -> PassEnd:
        self.lease.questions.is_asked = any(wait.waiting.wait_type == "human" for wait in self._history.waits.values())
        live, effects = await self._effects(program.name, program.admitted)
        running = Running(self._run_of(effects, program.version), effects, program.start)
        try:
            return await self._drive(running, live.waits) or await self._over(running)
        finally:
            await running.end()

    async def _taken_over(self) -> PassEnd | None:
        """Go on after a worker that disappeared, if one did; how the job is left, if it may not go on here."""
        match await self.lease.take_over(self._history, self._services.suspects, self._services.alive):
            case "deadly":
                return await self._stuck(ErrorInfo(code=Code.JOB_ENDS_WORKERS.name, message=DEADLY))
            case "later":
                return PassEnd(how="parked")
            case "go on":
                return None

    async def _effects(self, name: str, admitted: frozenset[str] = frozenset()) -> tuple[LiveEffects, Effects]:
        """Effects on the history: what is recorded is returned, the rest is done under the name of a program."""
        recorder = EffectRecorder(
            self._journal, self.lease.writer, self._history, self._activity, step_by_step=self._services.step_by_step
        )
        lease = self.lease
        caller = await caller_of(self._history, self.job, lease.labels, name, self._journal, lease.priority)
        live = LiveEffects(
            recorder,
            gateway=self._services.gateway,
            inbox=self.lease.inbox,
            questions=self.lease.questions,
            chance=self._services.chance,
            caller=caller,
            mismatch=self._services.versions.policy,
            progress=self._report,
            held=self._held if self._services.skills.holds else None,
            find_undo=self._find_undo,
            refuse=lambda name: refusal(self._services.skills, admitted, name),
            relabel=lambda labeled: self.lease.relabel(labeled, caller.facts.labels),
        )
        return live, Effects(self._history, self._journal, live, self._activity)

    async def _held(self) -> None:
        await require_on(self._services.skills, self._history.created)

    def _run_of(self, effects: Effects, version: str = "") -> Run:
        version = declared(self._history.began or version)
        return Run(self.job, self._history.principal, effects, self._services.programs.recipes, version)

    def _report(self, done: float | None, total: float | None, message: str) -> None:
        self._services.report(self.job, done, total, message)

    # --- while the recipe runs

    async def _drive(self, running: Running, waits: Waits) -> PassEnd | None:
        """Go on until the job is parked or lost; None once the program is done, broken off, or stopped by a person."""
        while True:
            await self._attend(waits)
            if running.task.done():
                return None
            if not await self.lease.check():
                return PassEnd(how="lost")
            if self.lease.inbox.cancel is not None and not self._history.ending:
                await running.stop()
                return None
            await waits.look()
            await asyncio.sleep(0)  # noqa: TID251 - lets what was just resolved go on, and waits for nothing
            if running.quiet and running.matching.failure is not None:
                return None  # whatever the other branches wait for, it is too late for them
            if running.quiet and await self._park(waits):
                return PassEnd(how="parked")

    async def _attend(self, waits: Waits) -> None:
        """Wait until something happens, or the first timer is due while other branches still run."""
        due, attention = waits.next_due, self._activity.attention
        if due is None or attention.is_set():
            await attention.wait()
        else:
            timer = asyncio.create_task(self._ring(due))
            try:
                await attention.wait()
            finally:
                await end(timer)
        attention.clear()

    async def _ring(self, due: int) -> None:
        await self._journal.clock.sleep((due - self._journal.clock.now()) / SECOND)
        self._activity.attention.set()

    async def _park(self, waits: Waits) -> bool:
        """Give the job up until something wakes it; False if something already has, or will in a moment."""
        due = waits.next_due
        if self._activity.halted:
            due = self._journal.clock.now()
        elif due is not None and due - self._journal.clock.now() <= _LINGER:
            return False
        parked = await self.lease.wait(due, WAITING, ", ".join(waits.words[:3]))
        if not parked:
            self._activity.attention.set()
        return parked

    # --- the end

    async def _over(self, running: Running) -> PassEnd:
        """End the job as its program ended, or leave it stuck."""
        if running.stopped:
            if isinstance(running.matching.failure, JournalError):
                raise running.matching.failure
            return await self._cancelled()
        if (error := self._error_of(running)) is not None:
            return await self._broken_off(error)
        try:
            encoded = encoded_result(running.task.result())
        except RunError as unfit:
            return await self._failed(error_info(unfit))
        if len(encoded) > self._services.max_value_bytes:
            reason = f"the recipe returned {len(encoded)} bytes; the limit is {self._services.max_value_bytes}"
            return await self._failed(ErrorInfo(code=Code.RESULT_TOO_LARGE.name, message=reason))
        packed = pack(encoded)
        await self.lease.finish("completed", JobCompleted(result=packed.inline, result_blob=packed.ref), packed.blobs)
        return PassEnd(how="completed", encoded=encoded)

    def _error_of(self, running: Running) -> BaseException | None:
        """Return why a program did not come to its end; None if it did."""
        if not running.task.done():
            return running.matching.failure
        error = running.outcome()
        error = self.lease.writer.failure or error
        if not isinstance(error, (JournalError, *_STUCK)):
            running.matching.finish()  # an end, good or bad, is one only if nothing recorded is left out
        return running.matching.failure or error

    async def _broken_off(self, error: BaseException) -> PassEnd:
        """The recipe did not come to its end."""
        if isinstance(error, JournalError | asyncio.CancelledError):
            raise error
        if isinstance(error, _STUCK):
            return await self._stuck(error_info(error), self._route_to(error))
        return await self._failed(error_info(error))

    async def _failed(self, error: ErrorInfo) -> PassEnd:
        if await self._to_undo(error):
            return await self._compensate()
        await self.lease.finish("failed", JobFailed(error=error))
        return PassEnd(how="failed", error=error)

    async def _cancelled(self) -> PassEnd:
        request = self.lease.inbox.cancel
        by, reason = (request.by, request.reason) if request else ("", "")
        if await self._to_undo(None, by, reason):
            return await self._compensate()
        await self.lease.finish("cancelled", JobCancelled(by=by, reason=reason))
        return PassEnd(how="cancelled")

    def _route_to(self, error: BaseException) -> str:
        """Return which workers can continue a job that this process cannot; empty if only a person can help."""
        if isinstance(error, LackingError):
            return error.route
        created = self._history.created
        if created is None or created.kind != "recipe" or getattr(error, "code", None) is Code.TOOL_SCHEMA_DRIFT:
            return ""
        recorded, here = self._history.execution, self._services.programs.recipes.carries()
        return "" if not recorded or (created.name, recorded) in here else of_version(created.name, recorded)

    async def _stuck(self, error: ErrorInfo, route: str = "") -> PassEnd:
        """Leave the job to workers of a route, or to a person: it keeps everything, and can be resumed or cancelled."""
        if route:
            error = msgspec.structs.replace(error, message=f"{self._services.worker}: {error.message}")
            self._services.lacked.add(route)
        due_in = delay(self._history.times_left) if route else None
        if await self.lease.leave(error, route, due_in, cancellable=not self._history.ending):
            return PassEnd(how="stuck", error=error)
        if self.lease.inbox.cancel is not None and self.lease.writer.failure is None:
            return await self._cancelled()
        return PassEnd(how="lost")

    # --- undoing what was done

    async def _to_undo(self, error: ErrorInfo | None, by: str = "", reason: str = "") -> bool:
        """Record what the job undoes before it fails, or without an error is cancelled; whether there is anything."""
        if not self._history.undos:
            return False
        steps = tuple((await self._folded()).undoable(unknown=True))
        if steps:
            started = CompensationStarted(steps=steps, error=error, by=by, reason=reason)
            await self._journal.append(self.lease.writer, started, synced=True)
        return bool(steps)

    async def _compensate(self) -> PassEnd:
        """Undo what a recorded compensation names; this needs no code, unless an undo is made from a result."""
        self._activity = Activity(halting=self._activity.halting)
        self._history = await self._folded()
        if (outcome := await self._taken_over()) is not None:
            return outcome
        self._history.places.clear()  # the recipe runs no more
        self.lease.questions.is_asked = True
        created = self._history.created
        live, effects = await self._effects(created.name if created else "")
        running = Running(self._run_of(effects), effects, lambda _run: live.compensate())
        try:
            ended = await self._drive(running, live.waits)
            error = self._error_of(running) if ended is None else None
            if isinstance(error, JournalError | asyncio.CancelledError):
                raise error
            if error is not None:
                return await self._stuck(error_info(error), self._route_to(error))
            return ended or await self._undone(running.task.result())
        finally:
            await running.end()

    async def _undone(self, done: CompensationCompleted) -> PassEnd:
        """End the job; its error says what was undone."""
        started = self._history.compensations[""]
        if started.error is None:
            end_of = JobCancelled(by=started.by, reason=started.reason, undone=done.undone, left=done.left)
            await self.lease.finish("cancelled", end_of)
            return PassEnd(how="cancelled")
        parts = [f"undone: {', '.join(done.undone)}"] if done.undone else []
        parts += [f"left as they are: {', '.join(done.left)}"] if done.left else []
        error = msgspec.structs.replace(started.error, message=f"{started.error.message} ({'; '.join(parts)})")
        await self.lease.finish("failed", JobFailed(error=error, undone=done.undone, left=done.left))
        return PassEnd(how="failed", error=error)

    async def _find_undo(self, step: str) -> UndoDeclared:
        """The undo that the recipe makes from a step's value. Raises VersionError or NotFoundError."""
        history = await self._folded()
        program = await self._services.programs.load(history)
        return await undo_of(self._journal, history, program, self.job, step)

    async def _folded(self) -> JobHistory:
        await self._journal.drained()
        return JobHistory(await whole(self._journal, await self._journal.read(self.lease.stream)))


class JobServices(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a process that jobs use."""

    journal: Journal
    gateway: Gateway
    programs: Programs
    versions: Versions
    chance: RandomSource
    max_value_bytes: int
    """Bytes that a recipe may return."""
    report: Callable[[str, float | None, float | None, str], None]
    """Called with job, done, total and message."""
    worker: str
    """This process, in words."""
    with_code: Callable[[str, str, str], Awaitable[str]]
    """The owner of another process that works now and has an execution version of a recipe; empty: none has.

    Called with recipe, version, and the owner that does not count.
    """
    skills: Skills
    alive: Callable[[str], bool]
    """Whether the process of a lease's owner is known to run still."""
    lacked: set[str] = msgspec.field(default_factory=set)
    """Routes of jobs that were left because a tool was missing here."""
    suspects: dict[str, JobHistory] = msgspec.field(default_factory=dict)
    """Passes under way, by stream: a process may have died of those that count deaths."""
    step_by_step: bool = False
    """Whether an execution ends after each new effect (always-replay, for tests)."""
