"""Runs one leased job as far as it goes: load, check versions, replay, go on, record the end or park."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import (
    AppendConflictError,
    ChainBrokenError,
    JournalError,
    NondeterminismError,
    NotFoundError,
    RunError,
    VersionError,
)
from remit.jobs.activation import Activation
from remit.jobs.branch import Branch, current
from remit.jobs.ended import Ended, encoded_result, error_info
from remit.jobs.inbox import Inbox
from remit.jobs.program import Programs
from remit.jobs.questions import Questions
from remit.jobs.run import Run
from remit.jobs.state import CODE, KIND, WAITING, History, job_of, stuck_by
from remit.jobs.versions import Versions
from remit.journal.blobs import pack
from remit.journal.event import HeadPatch, Lease
from remit.journal.kinds import ErrorInfo, JobCancelled, JobCompleted, JobFailed, JobWaiting, Payload, RecoveryStarted

if TYPE_CHECKING:
    from remit.chance import Chance
    from remit.gateway.pipeline import Gateway
    from remit.journal.journal import Journal
    from remit.journal.writer import StreamWriter

_log: Final = logging.getLogger("remit.jobs")
_LINGER: Final = SECOND // 5
"""Microseconds a pass stays for a timer about to fire, rather than park and replay."""
_STUCK: Final = (NondeterminismError, VersionError)
"""Errors of the code, not of the job: another version may go on with it."""


class Pass:
    """One pass of this process over a job it has leased."""

    def __init__(self, runner: Runner, lease: Lease) -> None:
        head = lease.head
        self.stream = head.stream
        self.epoch = head.epoch
        self.job = job_of(head.stream)
        self._runner = runner
        self._lease = lease
        self._journal = runner.journal
        self.writer: StreamWriter = runner.journal.writer(head.stream, head.kind, head)
        self._inbox = Inbox(runner.journal, self.job)
        self._questions = Questions(runner.journal, runner.gateway.services.confirmations, self.writer)
        self._seen_wakes = self._told_wakes = head.wakes
        self._activation: Activation | None = None
        self._halting = False

    def news(self, wakes: int) -> None:
        """The job was woken so often by now; look, if that is more than was seen."""
        self._told_wakes = wakes
        if self._activation is not None and wakes != self._seen_wakes:
            self._activation.attention.set()

    def halt(self) -> None:
        """Begin nothing new: let what is under way end, then give the job up where it stands."""
        self._halting = True
        if self._activation is not None:
            self._activation.halting = True

    async def give_up(self) -> None:
        """Let another worker go on at once; what was announced without an outcome is its to settle (rule 3)."""
        if self.writer.failure is None:
            patch = HeadPatch(due_at=self._journal.clock.now(), release=True)
            await self._journal.append(self.writer, synced=False, patch=patch)

    async def run(self) -> Ended:
        """Go as far as possible. Raises JournalError where the journal fails; what is recorded stays."""
        try:
            try:
                return await self._run()
            except ChainBrokenError as error:  # what is kept of this job is damaged; no other is the worse for it
                return await self._stuck(error_info(error))
        except AppendConflictError:
            _log.info("%s: another worker took the job over", self.job)
            return Ended(how="lost")

    async def _run(self) -> Ended:
        history = History(await self._journal.read(self.stream))
        if history.end is not None:
            return Ended(how="lost")
        if self._seen_wakes or self._lease.previous_state != "pending":  # no message comes without waking the job
            await self._inbox.refresh()
        if self._inbox.cancel is not None:
            return await self._cancelled()
        try:
            body = await self._runner.programs.load(history)
            await self._runner.versions.check(history, self.writer, body)
        except (NotFoundError, *_STUCK) as error:
            return await self._stuck(error_info(error))
        if self._lease.previous_state == "running":
            recovery = RecoveryStarted(
                owner=self._lease.head.lease_owner or "", previous_owner=self._lease.previous_owner or ""
            )
            await self._journal.append(self.writer, recovery, synced=False)
            history.recovering = True
        self._questions.asked = any(record.waiting.wait_type == "human" for record in history.waits.values())
        created = history.created
        activation = self._activation = Activation(
            journal=self._journal,
            gateway=self._runner.gateway,
            writer=self.writer,
            history=history,
            inbox=self._inbox,
            questions=self._questions,
            principal=created.principal if created else "",
            recipe=body.name,
            report=self._report,
            chance=self._runner.chance,
            step_by_step=self._runner.step_by_step,
        )
        activation.halting = self._halting
        if self._told_wakes != self._seen_wakes:
            activation.attention.set()
        run = Run(self.job, created.principal if created else "", activation.effects)
        task = asyncio.create_task(_rooted(run, body.start), name=f"remit:{self.job}")
        task.add_done_callback(lambda _task: activation.attention.set())
        try:
            return await self._drive(task, activation)
        finally:
            activation.effects.over()
            await _end(task)

    def _report(self, done: float | None, total: float | None, message: str) -> None:
        self._runner.report(self.job, done, total, message)

    # --- while the recipe runs

    async def _drive(self, task: asyncio.Task[Any], activation: Activation) -> Ended:
        while True:
            await self._attend(activation)
            if task.done():
                return await self._conclude(task, activation)
            if not await self._check_head():
                return Ended(how="lost")
            if self._inbox.cancel is not None:
                activation.effects.over()
                await _end(task)
                return await self._cancelled(activation)
            await activation.look()
            await asyncio.sleep(0)  # noqa: TID251 - lets what was just resolved go on, and waits for nothing
            quiet = activation.active == 0 and not activation.attention.is_set() and not task.done()
            if quiet and activation.effects.failure is not None:
                return await self._broken_off(activation.effects.failure)  # what the other branches wait for is no news
            if quiet and await self._park(activation):
                return Ended(how="parked")

    async def _attend(self, activation: Activation) -> None:
        """Wait until something happens, or the first timer is due while other branches still run."""
        due = activation.next_due
        if due is None or activation.attention.is_set():
            await activation.attention.wait()
        else:
            timer = asyncio.create_task(self._ring(activation, due))
            try:
                await activation.attention.wait()
            finally:
                await _end(timer)
        activation.attention.clear()

    async def _ring(self, activation: Activation, due: int) -> None:
        await self._journal.clock.sleep((due - self._journal.clock.now()) / SECOND)
        activation.attention.set()

    async def _check_head(self) -> bool:
        """Whether the job is still ours; what was left in its inbox is read."""
        head = await self._journal.head(self.stream)
        if head is None or head.epoch != self.epoch:
            self.writer.supersede()
            return False
        if head.wakes != self._seen_wakes:
            self._seen_wakes = head.wakes
            await self._inbox.refresh()
        return True

    async def _park(self, activation: Activation) -> bool:
        """Give the job up until something wakes it; False if something already has, or will in a moment."""
        due = activation.next_due
        if activation.halted:
            due = self._journal.clock.now()
        elif due is not None and due - self._journal.clock.now() <= _LINGER:
            return False
        labels = self._labels(WAITING, ", ".join(w.wait.words for w in activation.waiting[:3]))
        patch = HeadPatch(state="waiting", due_at=due, release=True, labels=labels)
        parked = await self._journal.park(self.writer, patch, seen_wakes=self._seen_wakes)
        if not parked:
            activation.attention.set()
        return parked

    # --- the end

    async def _conclude(self, task: asyncio.Task[Any], activation: Activation) -> Ended:
        if task.cancelled() and task.cancelling():
            activation.effects.over()  # not by its own code: the process stops, and everything with it
        error = self.writer.failure or (_cancelled_itself() if task.cancelled() else task.exception())
        if not isinstance(error, (JournalError, *_STUCK)):
            activation.effects.finish()  # an end, good or bad, is one only where nothing recorded is left out
        error = activation.effects.failure or error
        if error is not None:
            return await self._broken_off(error)
        try:
            encoded = encoded_result(task.result())
        except RunError as unfit:
            return await self._failed(error_info(unfit))
        if len(encoded) > self._runner.max_value_bytes:
            why = f"the recipe returned {len(encoded)} bytes; the limit is {self._runner.max_value_bytes}"
            return await self._failed(ErrorInfo(code=Code.RESULT_TOO_LARGE.name, message=why))
        packed = pack(encoded)
        completed = JobCompleted(result=packed.inline, result_blob=packed.ref)
        await self._finish("completed", completed, packed.blobs)
        return Ended(how="completed", encoded=encoded)

    async def _broken_off(self, error: BaseException) -> Ended:
        """The recipe did not come to its end."""
        if isinstance(error, JournalError | asyncio.CancelledError):
            raise error
        if isinstance(error, _STUCK):
            return await self._stuck(error_info(error))
        return await self._failed(error_info(error))

    async def _failed(self, error: ErrorInfo) -> Ended:
        await self._finish("failed", JobFailed(error=error))
        return Ended(how="failed", error=error)

    async def _cancelled(self, activation: Activation | None = None) -> Ended:
        request = self._inbox.cancel
        failure = activation.effects.failure if activation else None
        if isinstance(failure, JournalError):
            raise failure
        await self._finish(
            "cancelled", JobCancelled(by=request.by if request else "", reason=request.reason if request else "")
        )
        return Ended(how="cancelled")

    async def _finish(self, state: str, event: Payload, blobs: tuple[Any, ...] = ()) -> None:
        if (state != "completed" or self._questions.asked) and await self._check_head():
            # Before the end, for nobody looks at an ended job again; after a crash in between, the next pass ends it.
            await self._questions.close(f"the job is {state}")
        labels = self._labels(CODE, event.error.code if isinstance(event, JobFailed) else "")
        patch = HeadPatch(state=state, due_at=None, closed=True, release=True, labels=labels)
        await self._journal.append(self.writer, event, synced=True, patch=patch, blobs=blobs)

    async def _stuck(self, error: ErrorInfo) -> Ended:
        """Leave the job to other code: it keeps everything, and can be resumed. Stopping it needs no code."""
        before = self._seen_wakes
        waiting: JobWaiting | None = JobWaiting(
            step=error.step, wait_type="human", correlation_key=stuck_by(error.code), reason=error.message
        )
        while await self._check_head():
            if self._inbox.cancel is not None:
                return await self._cancelled()
            if waiting is not None:
                await self._journal.append(self.writer, waiting, synced=False)
                waiting = None
            # Whoever woke it since this pass last looked may have meant other code, so another pass looks at once.
            due = None if self._seen_wakes == before else self._journal.clock.now()
            patch = HeadPatch(state="waiting", due_at=due, release=True, labels=self._labels(CODE, error.code))
            if await self._journal.park(self.writer, patch, seen_wakes=self._seen_wakes):
                return Ended(how="stuck", error=error)
        return Ended(how="lost")

    def _labels(self, name: str, value: str) -> dict[str, str]:
        """The job's labels, with one of ours for lists."""
        given = {key: text for key, text in self._lease.head.labels.items() if key not in {WAITING, CODE}}
        return {**given, name: value} if value else given


class Runner:
    """What every pass of this process works with."""

    kind: Final = KIND
    """The kind of the streams it works on."""

    def __init__(
        self,
        *,
        journal: Journal,
        gateway: Gateway,
        programs: Programs,
        versions: Versions,
        max_value_bytes: int,
        chance: Chance,
        report: Callable[[str, float | None, float | None, str], None],
        step_by_step: bool = False,
    ) -> None:
        """`report` is called with job, done, total and message; `step_by_step` ends passes after each new effect."""
        self.journal = journal
        self.gateway = gateway
        self.programs = programs
        self.versions = versions
        self.max_value_bytes = max_value_bytes
        self.chance = chance
        self.report = report
        self.step_by_step = step_by_step

    def take(self, lease: Lease) -> Pass:
        """A pass over a job that was just leased."""
        return Pass(self, lease)


async def _rooted(run: Run, start: Callable[[Run], Awaitable[Any]]) -> Any:
    current.set(Branch("", asyncio.current_task()))
    return await start(run)


def _cancelled_itself() -> RunError:
    return RunError("the recipe cancelled itself", remedy="Let no CancelledError out of it that is its own.")


async def _end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and see it off; what it raised belongs to whoever looked at it before."""
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.exception()
