"""Runs a ticket's steps in this process (path Z): each run is a job, so that it survives a crash and waits for people.

A run's job has an identifier computed from the ticket and its attempt. A request for the same run meets the same
job. A later attempt leaves out the steps that an earlier one has done.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import AppendConflictError, StateError
from remit.ids import encode
from remit.jobs.state import stream_of
from remit.journal import kinds as k
from remit.record.views import job_row
from remit.redact import line
from remit.service.many import at_rest
from remit.service.options import Options
from remit.tasks import first
from remit.tickets.history import History
from remit.tickets.report import RunFacts, RunReport, run_report
from remit.tickets.run import TicketRun, key_of
from remit.tickets.ticket import stream_of as ticket_stream

if TYPE_CHECKING:
    from remit.journal.event import Event, Head
    from remit.service.jobs import Jobs
    from remit.service.parts import Worker
    from remit.tickets.desk import Desk
    from remit.tickets.execution import RunRequest

RECIPE: Final = "ticket_run"
PATIENCE_S: Final = 30.0
"""Seconds after which a run that no worker takes is no longer waited for."""


class TicketRuns:
    """Starts, follows and reports on runs."""

    def __init__(self, desk: Desk, jobs: Jobs, worker: Worker) -> None:
        self._journal = desk.journal
        self._mode = desk.mode
        self._max_evidence = desk.settings.max_evidence
        self._jobs = jobs
        self._worker = worker

    async def execute(self, run: RunRequest) -> RunReport:
        """Run the steps, or continue this run; see ToolExecutor."""
        attempt = await self._begin(run)
        job = job_of(run.ticket_id, attempt)
        self._worker.awaited.add(stream_of(job))
        try:
            await self._go_on(job)
            await self._rest(stream_of(job))
        finally:
            self._worker.awaited.discard(stream_of(job))
        return await self._report(run, await self._attempts(run), attempt)

    async def report(self, run: RunRequest) -> RunReport | None:
        """The report of a run as it is now; None if it has not begun."""
        found = await self._attempts(run)
        return await self._report(run, found, max(found)) if found else None

    async def _go_on(self, job: str) -> None:
        """Have a worker look at a run that no one holds: what it waited for may have come."""
        head = await self._journal.head(stream_of(job))
        if head is not None and head.state == "waiting" and head.lease_owner is None:
            with suppress(StateError):  # it ended meanwhile
                await self._jobs.resume(job)
        self._worker.wake()

    async def _rest(self, stream: str) -> None:
        """Wait until a run has ended, or waits for something from outside. Raise StateError if no worker takes it."""
        await first(self._until_at_rest(stream), self._until_left(stream))

    async def _until_at_rest(self, stream: str) -> None:
        mark = 0
        while True:
            mark = await self._journal.heads_changed(mark)
            head = await self._journal.head(stream)
            now = self._journal.clock.now()
            if head is None or (not _is_due(head, now) and at_rest(job_row(head), now)):
                return

    async def _until_left(self, stream: str) -> None:
        """Wait until no engine works here, and no worker elsewhere has taken the run for a while; raise StateError."""
        epoch = -1
        while True:
            await self._journal.clock.sleep(PATIENCE_S)
            head = await self._journal.head(stream)
            if head is None or self._worker.working():
                continue
            if head.epoch == epoch and _is_due(head, self._journal.clock.now()):
                why = f"no worker has taken {line(head.stream)} for {PATIENCE_S:g} s"
                raise StateError(why, code=Code.NO_WORKER, remedy="Start one: remit worker.")
            epoch = head.epoch

    async def _begin(self, run: RunRequest) -> int:
        """Start this attempt, unless an attempt is running or has done everything; which one counts."""
        if run.attempt == 0 and await self._start(run, []):
            return 0
        earlier = await self._attempts(run)
        newest = max(earlier, default=-1)
        if newest < 0 or (newest < run.attempt and earlier[newest].over and not _all_ok(run, earlier)):
            await self._check_repeats(run, earlier)
            await self._start(run, _kept(run, earlier))
            return run.attempt
        return newest

    async def check_repeats(self, run: RunRequest) -> None:
        """Raise StateError (RETRY_REPEATS) if this attempt would do again what was done, and no person said so."""
        earlier = await self._attempts(run)
        if earlier and earlier[max(earlier)].over:  # else that one goes on, and repeats nothing by itself
            await self._check_repeats(run, earlier)

    async def _check_repeats(self, run: RunRequest, earlier: dict[int, TicketRun]) -> None:
        kept = _kept(run, earlier)
        again = [index for index in range(len(run.tool_steps)) if index not in kept]
        repeated = ", ".join(key_of(index) for index in again if any(done.acted(index) for done in earlier.values()))
        ticket = line(run.ticket_id)
        if not repeated or run.attempt in History(await self._journal.read(ticket_stream(run.ticket_id))).repeats:
            return
        why = f"another attempt at {ticket} would repeat calls that took effect, or may have: step {repeated}"
        remedy = (
            f"See what they did: remit trace {job_of(run.ticket_id, max(earlier))}. Repeat them with "
            f"`remit tickets retry {ticket} --repeat`; or fill the ticket, once it is leased, with what they did."
        )
        raise StateError(why, code=Code.RETRY_REPEATS, remedy=remedy)

    async def _attempts(self, run: RunRequest) -> dict[int, TicketRun]:
        """Return what is recorded of this run's attempts, without earlier ones that had other steps.

        Raise StateError (IDEMPOTENCY_MISMATCH) if this very attempt has other steps.
        """
        steps = [msgspec.to_builtins(step) for step in run.tool_steps]
        found: dict[int, TicketRun] = {}
        for attempt in range(run.attempt + 1):
            events = await self._journal.read(stream_of(job_of(run.ticket_id, attempt)))
            if not events:
                continue
            given = await self._given(events[0])
            if given.get("steps") == steps:
                found[attempt] = TicketRun(events, given.get("mode") or {})
            elif attempt == run.attempt:
                why = f"attempt {attempt} of {line(run.ticket_id)} has other steps"
                raise StateError(why, code=Code.IDEMPOTENCY_MISMATCH, remedy="Retry the ticket: that is a new attempt.")
        return found

    async def _given(self, first: Event) -> dict[str, Any]:
        """Return the input of a job: `steps`, and the `mode` it began under, which an older Remit did not record."""
        created = k.decode(first.kind, first.data)
        given = (
            await self._journal.value(created.input, created.input_blob) if isinstance(created, k.JobCreated) else None
        )
        return msgspec.json.decode(given, type=dict[str, Any]) if given is not None else {}

    async def _start(self, run: RunRequest, kept: list[int]) -> bool:
        """Create the run's job; False if it is there."""
        given = {
            "ticket": run.ticket_id,
            "steps": [msgspec.to_builtins(step) for step in run.tool_steps],
            "kept": kept,
            "policy": msgspec.to_builtins(run.tool_policy),
            "mode": self._mode,
        }
        options = Options(
            job=job_of(run.ticket_id, run.attempt),
            principal=run.principal,
            labels={"ticket": run.ticket_id},
            tools=run.tool_policy.tool_whitelist,
        )
        try:
            await self._jobs.start_named(RECIPE, given, options)
        except AppendConflictError:
            return False
        return True

    async def _report(self, run: RunRequest, found: dict[int, TicketRun], attempt: int) -> RunReport:
        job = job_of(run.ticket_id, attempt)
        steps = tuple(_newest(found, index).report(index, step) for index, step in enumerate(run.tool_steps))
        facts = RunFacts(
            run_id=job,
            ticket_id=run.ticket_id,
            span=found[attempt].span,
            max_attempts=found[attempt].attempts,
            retry_policy_id="tool",
            mode_snapshot=found[attempt].mode,
        )
        return run_report(facts, steps, self._max_evidence)


def _is_due(head: Head, now: int) -> bool:
    """Return whether a worker is to take the run next."""
    return head.lease_owner is None and head.due_at is not None and head.due_at <= now


def job_of(ticket: str, attempt: int) -> str:
    """The job of a run."""
    return "job_" + encode(int.from_bytes(sha256(f"{ticket}/{attempt}".encode()).digest()[:16], "big"))


def _newest(found: dict[int, TicketRun], index: int) -> TicketRun:
    """The attempt that did the step, or else the newest one."""
    done = [number for number, run in found.items() if run.did(index)]
    return found[max(done) if done else max(found)]


def _kept(run: RunRequest, found: dict[int, TicketRun]) -> list[int]:
    return [index for index in range(len(run.tool_steps)) if any(done.did(index) for done in found.values())]


def _all_ok(run: RunRequest, found: dict[int, TicketRun]) -> bool:
    steps = [_newest(found, index).report(index, step) for index, step in enumerate(run.tool_steps)]
    return all(step.status == "ok" for step in steps)
