"""Tickets: create, look at, lease, fill, and what follows once one is done (contract: tickets).

Runs a ticket's steps in this process (path Z): each run is a job, so that it survives a crash and waits for people.

A run's job has an identifier computed from the ticket and its attempt. A request for the same run meets the same
job. A later attempt leaves out the steps that an earlier one has done.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec.structs import replace

from remit.codes import Code
from remit.errors import AppendConflictError, StateError, UsageError
from remit.http.access import Access
from remit.ids import encode
from remit.jobs.state import stream_of
from remit.journal import kinds as k
from remit.journal.leases import LeaseProof
from remit.operation import Body, By, Document, Flat, FromKey, JsonObject, WireName, operation
from remit.parts.tickets.derive import derive_tool_from_triage_on_fill, maybe_derive_reply_from_tool_on_fill
from remit.parts.tickets.history import Derived, TicketHistory
from remit.parts.tickets.leases import LEASE_SEC, MAX_LEASE_SEC, MAX_LEASED
from remit.parts.tickets.reader import Filled
from remit.parts.tickets.report import RunFacts, RunReport, run_report
from remit.parts.tickets.run import TicketRun, key_of, request_of
from remit.parts.tickets.runner import RunnerConfig, TicketRunner
from remit.parts.tickets.ticket import Kind, Leased, Status, Ticket
from remit.parts.tickets.ticket import stream_of as ticket_stream
from remit.record.views import job_row
from remit.redact import line
from remit.service.many import at_rest
from remit.service.options import Options
from remit.tasks import first

if TYPE_CHECKING:
    from remit.journal.event import Event, StreamHead
    from remit.parts.tickets.desk import TicketDesk
    from remit.parts.tickets.run import RunRequest, ToolExecutor
    from remit.service.jobs import Jobs
    from remit.service.parts import Worker
    from remit.service.service import Service


RECIPE: Final = "ticket_run"
PATIENCE_S: Final = 30.0
"""Seconds after which a run that no worker takes is no longer waited for."""


class TicketRuns:
    """Starts, follows and reports on runs."""

    def __init__(self, desk: TicketDesk, jobs: Jobs, worker: Worker) -> None:
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
        attempts = await self._attempts(run)
        return await self._report(run, attempts, max(attempts)) if attempts else None

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
                reason = f"no worker has taken {line(head.stream)} for {PATIENCE_S:g} s"
                raise StateError(reason, code=Code.NO_WORKER, remedy="Start one: remit worker.")
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
        steps_kept = _kept(run, earlier)
        again = [index for index in range(len(run.tool_steps)) if index not in steps_kept]
        repeated = ", ".join(key_of(index) for index in again if any(done.acted(index) for done in earlier.values()))
        ticket = line(run.ticket_id)
        if not repeated or run.attempt in TicketHistory(await self._journal.read(ticket_stream(run.ticket_id))).repeats:
            return
        reason = f"another attempt at {ticket} would repeat calls that took effect, or may have: step {repeated}"
        remedy = (
            f"See what they did: remit trace {job_of(run.ticket_id, max(earlier))}. Repeat them with "
            f"`remit tickets retry {ticket} --repeat`; or fill the ticket, once it is leased, with what they did."
        )
        raise StateError(reason, code=Code.RETRY_REPEATS, remedy=remedy)

    async def _attempts(self, run: RunRequest) -> dict[int, TicketRun]:
        """Return what is recorded of this run's attempts, without earlier ones that had other steps.

        Raise StateError (IDEMPOTENCY_MISMATCH) if this very attempt has other steps.
        """
        steps = [msgspec.to_builtins(step) for step in run.tool_steps]
        attempts: dict[int, TicketRun] = {}
        for attempt in range(run.attempt + 1):
            events = await self._journal.read(stream_of(job_of(run.ticket_id, attempt)))
            if not events:
                continue
            inputs = await self._given(events[0])
            if inputs.get("steps") == steps:
                attempts[attempt] = TicketRun(events, inputs.get("mode") or {})
            elif attempt == run.attempt:
                reason = f"attempt {attempt} of {line(run.ticket_id)} has other steps"
                raise StateError(
                    reason, code=Code.IDEMPOTENCY_MISMATCH, remedy="Retry the ticket: that is a new attempt."
                )
        return attempts

    async def _given(self, first: Event) -> dict[str, Any]:
        """Return the input of a job: `steps`, and the `mode` it began under, which an older Remit did not record."""
        created = k.decode(first.kind, first.data)
        inputs = (
            await self._journal.value(created.input, created.input_blob) if isinstance(created, k.JobCreated) else None
        )
        return msgspec.json.decode(inputs, type=dict[str, Any]) if inputs is not None else {}

    async def _start(self, run: RunRequest, indices: list[int]) -> bool:
        """Create the run's job; False if it is there."""
        inputs = {
            "ticket": run.ticket_id,
            "steps": [msgspec.to_builtins(step) for step in run.tool_steps],
            "kept": indices,
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
            await self._jobs.start_named(RECIPE, inputs, options)
        except AppendConflictError:
            return False
        return True

    async def _report(self, run: RunRequest, runs: dict[int, TicketRun], attempt: int) -> RunReport:
        job = job_of(run.ticket_id, attempt)
        steps = tuple(_newest(runs, index).report(index, step) for index, step in enumerate(run.tool_steps))
        facts = RunFacts(
            run_id=job,
            ticket_id=run.ticket_id,
            span=runs[attempt].span,
            max_attempts=runs[attempt].attempts,
            retry_policy_id="tool",
            mode_snapshot=runs[attempt].mode,
        )
        return run_report(facts, steps, self._max_evidence)


def _is_due(head: StreamHead, now: int) -> bool:
    """Return whether a worker is to take the run next."""
    return head.lease_owner is None and head.due_at is not None and head.due_at <= now


def job_of(ticket: str, attempt: int) -> str:
    """The job of a run."""
    return "job_" + encode(int.from_bytes(sha256(f"{ticket}/{attempt}".encode()).digest()[:16], "big"))


def _newest(runs: dict[int, TicketRun], index: int) -> TicketRun:
    """The attempt that did the step, or else the newest one."""
    done = [number for number, run in runs.items() if run.did(index)]
    return runs[max(done) if done else max(runs)]


def _kept(run: RunRequest, runs: dict[int, TicketRun]) -> list[int]:
    return [index for index in range(len(run.tool_steps)) if any(done.did(index) for done in runs.values())]


def _all_ok(run: RunRequest, runs: dict[int, TicketRun]) -> bool:
    steps = [_newest(runs, index).report(index, step) for index, step in enumerate(run.tool_steps)]
    return all(step.status == "ok" for step in steps)


_log: Final = logging.getLogger("remit.tickets")
_ONE: Final = "/v1/tickets/{ticket}"
_HELD: Final = (Code.not_found, Code.lease_owner_mismatch, Code.lease_conflict)
_MESSAGE: Final = {"type": "message", "thread_id": "t1", "content": "Is the build green?"}
Seconds = Annotated[int, msgspec.Meta(ge=1, le=MAX_LEASE_SEC)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
_FORM: Final = Flat({"owner": ("lease_owner", Name), "token": ("lease_token", Name)})
ProofForm = Annotated[LeaseProof, _FORM]
Outputs = Annotated[Any, WireName(type=dict[str, Any] | None)]


class Renewed(msgspec.Struct, frozen=True):
    """When a lease ends now."""

    lease_expires: str


async def _check_steps(_: Tickets, access: Access, arguments: Mapping[str, Any]) -> None:
    """Raise Problem if a token that may not call, or only some tools, would have a worker make a document's calls."""
    document = arguments.get("document") or arguments.get("outputs") or {}
    if document.get("type") == "TOOL" or document.get("tool_steps"):
        access.require("call")
        access.require_all_tools("the steps of a ticket")


async def may_retry(tickets: Tickets, access: Access, arguments: Mapping[str, Any]) -> None:
    """Raise Problem if a token that may not call, or only some tools, would have a ticket's calls made again."""
    access.require_all_tools("the ticket")
    if (await tickets.get(arguments["ticket"])).type == "TOOL":
        access.require("call")


class Tickets:
    """The tickets of one journal."""

    def __init__(self, desk: TicketDesk, jobs: Jobs, principal: str, worker: Worker) -> None:
        self._desk = desk
        self._store = desk.store
        self._jobs = jobs
        self._principal = principal
        self._worker = worker

    # --- queries

    @operation("tickets.view", f"GET {_ONE}", "tickets", "Show a ticket.", codes=(Code.not_found,))
    async def get(self, ticket: str) -> Ticket:
        """Show a ticket.

        Raise NotFoundError (not_found).
        """
        return await self._store.get(ticket)

    async def page(
        self,
        *,
        kind: Kind | None = None,
        states: tuple[Status, ...] = (),
        thread: str = "",
        before: str = "",
        limit: int = 20,
    ) -> list[Ticket]:
        """Tickets, newest first; `before` continues after the last one of an earlier page."""
        return await self._store.page(kind=kind, states=states, thread=thread, before=before, limit=limit)

    async def free(self, kind: Kind, *, wait_s: float = 0.0) -> bool:
        return await self._store.free(kind, wait_s=wait_s)

    @operation(
        "tickets.report",
        f"GET {_ONE}/report",
        "tickets",
        "Show the report of a ticket's run.",
        codes=(Code.not_found, Code.INVALID_TOOL_STEP, Code.INVALID_BUDGET),
    )
    async def report(self, ticket: str) -> RunReport | None:
        """Show the report of a TOOL ticket's newest run; null if none has begun.

        Raise NotFoundError or UsageError.
        """
        return await self._runs().report(request_of(await self._store.get(ticket)))

    # --- commands

    @operation(
        "tickets.create",
        "POST /v1/tickets",
        "tickets",
        "Create a ticket.",
        status=201,
        codes=(Code.SCHEMA_VALIDATION_FAILED,),
        invalid=Code.SCHEMA_VALIDATION_FAILED,
        check=_check_steps,
        example={"type": "TRIAGE", "event": _MESSAGE},
    )
    async def create(
        self, document: Document, *, principal: By = "", identifier: Annotated[str, FromKey("tkt")] = ""
    ) -> Ticket:
        """Create a ticket of any kind.

        Find the one of this identifier, if it was created before. Raise UsageError (SCHEMA_VALIDATION_FAILED) in strict
        mode.
        """
        new, _ = self._desk.intake.new(document)
        try:
            return await self._store.create(new, principal=principal or self._principal, identifier=identifier)
        except AppendConflictError:
            if not identifier:
                raise
            return await self._store.get(identifier)

    @operation(
        "tickets.lease",
        "POST /v1/tickets/lease",
        "work",
        "Lease tickets of a kind.",
        body=Body("LeaseBody", "Which tickets to lease, and for whom."),
        codes=(Code.USAGE,),
        example={"kind": "TRIAGE", "owner": "triage-1"},
    )
    async def lease(
        self,
        kind: Kind,
        *,
        owner: Name,
        limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_LEASED)] = 1,
        lease_sec: Seconds = LEASE_SEC,
    ) -> list[Leased]:
        """Lease the oldest tickets of a kind that are free. Each token is shown here and nowhere else.

        What a process that died has left underived is derived first: it may be what is leased.
        """
        if kind != "TRIAGE":
            await self.follow_up()
        leases = await self._store.lease(kind, owner=owner, limit=limit, lease_sec=lease_sec)
        for leased in leases:
            self._desk.cutover.leased(leased.ticket)
        return leases

    @operation(
        "tickets.lease_one",
        f"POST {_ONE}/lease",
        "work",
        "Lease one ticket.",
        body=Body("LeaseOneBody", "For whom to lease the ticket."),
        codes=(Code.not_found, Code.lease_conflict, Code.USAGE),
        example={"owner": "triage-1"},
    )
    async def lease_by_id(self, ticket: str, *, owner: Name, lease_sec: Seconds = LEASE_SEC) -> Leased:
        """Lease one ticket.

        Raise NotFoundError (not_found) or StateError (lease_conflict).
        """
        leased = await self._store.lease_by_id(ticket, owner=owner, lease_sec=lease_sec)
        self._desk.cutover.leased(leased.ticket)
        return leased

    @operation(
        "tickets.renew",
        f"POST {_ONE}/renew",
        "work",
        "Prolong a lease.",
        body=Body("RenewBody", "The proof of a lease, and how long it is to last from now on."),
        answer=Renewed,
        codes=(*_HELD, Code.USAGE),
    )
    async def renew(self, ticket: str, proof: ProofForm, lease_sec: Seconds = LEASE_SEC) -> str:
        """Prolong a lease.

        Return the time it ends.
        """
        return await self._store.renew(ticket, proof, lease_sec)

    @operation(
        "tickets.release",
        f"POST {_ONE}/release",
        "work",
        "Return a leased ticket.",
        body=Body("ProofBody", "The proof of a lease, and why the ticket is returned."),
        codes=_HELD,
    )
    async def release(self, ticket: str, proof: ProofForm, reason: str = "") -> Ticket:
        return await self._store.release(ticket, proof, reason)

    @operation(
        "tickets.fill",
        f"POST {_ONE}/fill",
        "work",
        "Complete a ticket.",
        body=Body(
            "FillBody",
            "What a ticket is completed with, and by whom: under a lease, or `by` someone who may fill it directly.",
        ),
        codes=(
            *_HELD,
            Code.direct_fill_missing_by,
            Code.direct_fill_not_allowed,
            Code.SCHEMA_VALIDATION_FAILED,
        ),
        invalid=Code.SCHEMA_VALIDATION_FAILED,
        check=_check_steps,
        repeatable="proof",
        example={"outputs": {"triage": "look"}, "by": "http_fill"},
    )
    async def fill(
        self, ticket: str, outputs: JsonObject, *, proof: Annotated[LeaseProof | None, _FORM] = None, by: str = ""
    ) -> Filled:
        """Complete a ticket, and derive what follows. A ticket that is done is returned unchanged.

        A derivation that was broken off is then made up for; see TicketStore.complete.
        """
        done, changed = await self._store.fill(
            ticket, outputs, proof=proof, by=by, check=lambda kind: self._desk.intake.outputs(kind, outputs, ticket)
        )
        return Filled(ticket=done, derived=await self.follow(done), changed=changed)

    async def follow(self, done: Ticket) -> Derived | None:
        """Derive what follows a completed ticket; what goes wrong is recorded and never undoes the completion."""
        outputs = done.metadata.final_outputs
        if done.type == "TRIAGE":
            return await derive_tool_from_triage_on_fill(done, outputs, self._store, _log)
        if done.type == "TOOL":
            return await maybe_derive_reply_from_tool_on_fill(done, outputs, self._store, _log)
        return None

    async def follow_up(self, limit: int = 100) -> int:
        """Derive what follows tickets whose process died after completing them; return how many there were."""
        tickets = await self._store.unfollowed(limit)
        for ticket in tickets:
            await self.follow(ticket)
        return len(tickets)

    @operation(
        "tickets.fail",
        f"POST {_ONE}/fail",
        "work",
        "Record that the work on a ticket failed.",
        body=Body("FailBody", "Why the work on a ticket failed."),
        codes=_HELD,
    )
    async def fail(self, ticket: str, proof: ProofForm, *, code: Name, reason: str, outputs: Outputs = None) -> Ticket:
        """Record that the work on a leased ticket failed.

        `outputs` are those that there are.
        """
        return await self._store.fail(ticket, proof, code=code, reason=reason, outputs=outputs)

    @operation(
        "tickets.block",
        f"POST {_ONE}/block",
        "work",
        "Record why a ticket cannot go on.",
        body=Body("BlockBody", "Why a ticket cannot go on."),
        codes=(*_HELD, Code.USAGE),
        example={"code": "MCP_REQUIRED_UNAVAILABLE", "reason": "the server is down", "source": "ann"},
    )
    async def block(
        self,
        ticket: str,
        *,
        code: Name,
        reason: Name,
        source: Name,
        proof: Annotated[LeaseProof | None, _FORM] = None,
        outputs: Outputs = None,
    ) -> Ticket:
        """Record why a pending or leased ticket cannot go on.

        `outputs` are those that there are.
        """
        return await self._store.block(ticket, code=code, reason=reason, source=source, proof=proof, outputs=outputs)

    @operation(
        "tickets.retry",
        f"POST {_ONE}/retry",
        "tickets",
        "Make a failed or blocked ticket pending again.",
        body=Body("TicketRetryBody", "Whether calls that took effect, or may have, are made again.", optional=True),
        codes=(Code.not_found, Code.lease_conflict, Code.lease_owner_mismatch, Code.RETRY_REPEATS),
        check=may_retry,
    )
    async def retry(self, ticket: str, *, repeat: bool = False, by: By = "") -> Ticket:
        """Make a failed or blocked ticket pending again; what was done stays done.

        Calls that took effect, or may have, and whose result was of no use, are made again only with `repeat`. Raise
        NotFoundError, or StateError (lease_conflict, RETRY_REPEATS).
        """
        if not repeat:
            await self._check_repeats(await self._store.get(ticket))
        return await self._store.retry(ticket, repeat=repeat, by=by or self._principal)

    async def _check_repeats(self, ticket: Ticket) -> None:
        if ticket.status not in {"failed", "blocked"}:
            return
        try:
            request = request_of(ticket)
        except UsageError:  # no run of it was ever begun
            return
        await self._runs().check_repeats(replace(request, attempt=request.attempt + 1))

    # --- work

    def executor(self) -> ToolExecutor:
        """Run steps as jobs (path Z)."""
        return self._runs()

    def _runs(self) -> TicketRuns:
        return TicketRuns(self._desk, self._jobs, self._worker)

    def runner(self, config: RunnerConfig, executor: ToolExecutor) -> TicketRunner:
        """A worker on TOOL tickets."""
        if self._desk.settings.no_mcp:
            config = replace(config, no_mcp=True)
        return TicketRunner(self, executor, self._desk.journal.clock, config)


def tickets_of(service: Service) -> Tickets:
    """Return the tickets of a service. Raise AttributeError if it is without this part."""
    tickets: Tickets = service.tickets
    return tickets
