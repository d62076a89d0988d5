"""One worker's execution of a job: load, check versions, replay, go on, record the end or park.

While every branch waits, nothing happens that a process would be needed for: the job is *parked*, and the worker that
is woken for it runs the recipe again from the journal. An execution ends by return, error, park or cancellation, or
because the worker lost the lease.
"""

from __future__ import annotations

import asyncio
import logging
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
from remit.jobs.activity import Activity
from remit.jobs.effects.live import LiveEffects
from remit.jobs.effects.questions import Questions
from remit.jobs.effects.recorded import Effects
from remit.jobs.effects.recorder import Recorder
from remit.jobs.ended import Ended, encoded_result, error_info
from remit.jobs.inbox import Inbox
from remit.jobs.run import Run
from remit.jobs.running import Running, end
from remit.jobs.state import CODE, WAITING, History, job_of, stuck_by
from remit.journal.blobs import pack
from remit.journal.event import HeadPatch, Lease
from remit.journal.kinds import ErrorInfo, JobCancelled, JobCompleted, JobFailed, JobWaiting, Payload, RecoveryStarted

if TYPE_CHECKING:
    from remit.jobs.effects.waits import Waits
    from remit.jobs.program import Program
    from remit.jobs.services import JobServices
    from remit.journal.writer import StreamWriter

_log: Final = logging.getLogger("remit.jobs")
_LINGER: Final = SECOND // 5
"""Microseconds an execution stays for a timer about to fire, rather than park and replay."""
_STUCK: Final = (NondeterminismError, VersionError)
"""Errors of the code, not of the job: another version may go on with it."""


class JobExecution:
    """One execution of a job by this process, from the lease to the end of it."""

    def __init__(self, services: JobServices, lease: Lease) -> None:
        head = lease.head
        self.stream = head.stream
        self.epoch = head.epoch
        self.job = job_of(head.stream)
        self._services = services
        self._lease = lease
        self._journal = services.journal
        self.writer: StreamWriter = services.journal.writer(head.stream, head.kind, head)
        self._inbox = Inbox(services.journal, self.job)
        self._questions = Questions(services.journal, services.gateway.services.confirmations, self.writer)
        self._seen_wakes = head.wakes
        self._activity = Activity()

    def news(self, wakes: int) -> None:
        """The job was woken so often by now; look, if that is more than was seen."""
        if wakes != self._seen_wakes:
            self._activity.attention.set()

    def halt(self) -> None:
        """Begin nothing new: let what is under way end, then give the job up where it stands."""
        self._activity.halting = True

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
            program = await self._services.programs.load(history)
            await self._services.versions.check(history, self.writer, program)
        except (NotFoundError, *_STUCK) as error:
            return await self._stuck(error_info(error))
        if self._lease.previous_state == "running":
            recovery = RecoveryStarted(
                owner=self._lease.head.lease_owner or "", previous_owner=self._lease.previous_owner or ""
            )
            await self._journal.append(self.writer, recovery, synced=False)
            history.recovering = True
        self._questions.asked = any(record.waiting.wait_type == "human" for record in history.waits.values())
        return await self._execute(history, program)

    async def _execute(self, history: History, program: Program) -> Ended:
        """Run the program from its beginning: what is recorded is given back, the rest is done."""
        principal = history.created.principal if history.created else ""
        recorder = Recorder(
            self._journal, self.writer, history, self._activity, step_by_step=self._services.step_by_step
        )
        live = LiveEffects(
            recorder,
            gateway=self._services.gateway,
            inbox=self._inbox,
            questions=self._questions,
            chance=self._services.chance,
            principal=principal,
            recipe=program.name,
            progress=self._report,
        )
        effects = Effects(history, self._journal, live, self._activity)
        running = Running(Run(self.job, principal, effects), effects, program.start)
        try:
            return await self._drive(running, live.waits)
        finally:
            await running.end()

    def _report(self, done: float | None, total: float | None, message: str) -> None:
        self._services.report(self.job, done, total, message)

    # --- while the recipe runs

    async def _drive(self, running: Running, waits: Waits) -> Ended:
        while True:
            await self._attend(waits)
            if running.done:
                return await self._conclude(running)
            if not await self._check_head():
                return Ended(how="lost")
            if self._inbox.cancel is not None:
                await running.end()
                return await self._cancelled(running.matching.failure)
            await waits.look()
            await asyncio.sleep(0)  # noqa: TID251 - lets what was just resolved go on, and waits for nothing
            if running.quiet and running.matching.failure is not None:
                # Whatever the other branches wait for, it is too late for them.
                return await self._broken_off(running.matching.failure)
            if running.quiet and await self._park(waits):
                return Ended(how="parked")

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

    async def _park(self, waits: Waits) -> bool:
        """Give the job up until something wakes it; False if something already has, or will in a moment."""
        due = waits.next_due
        if self._activity.halted:
            due = self._journal.clock.now()
        elif due is not None and due - self._journal.clock.now() <= _LINGER:
            return False
        labels = self._labels(WAITING, ", ".join(waits.words[:3]))
        patch = HeadPatch(state="waiting", due_at=due, release=True, labels=labels)
        parked = await self._journal.park(self.writer, patch, seen_wakes=self._seen_wakes)
        if not parked:
            self._activity.attention.set()
        return parked

    # --- the end

    async def _conclude(self, running: Running) -> Ended:
        error = running.outcome()
        error = self.writer.failure or error
        if not isinstance(error, (JournalError, *_STUCK)):
            running.matching.finish()  # an end, good or bad, is one only if nothing recorded is left out
        error = running.matching.failure or error
        if error is not None:
            return await self._broken_off(error)
        try:
            encoded = encoded_result(running.task.result())
        except RunError as unfit:
            return await self._failed(error_info(unfit))
        if len(encoded) > self._services.max_value_bytes:
            why = f"the recipe returned {len(encoded)} bytes; the limit is {self._services.max_value_bytes}"
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

    async def _cancelled(self, failure: BaseException | None = None) -> Ended:
        request = self._inbox.cancel
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
