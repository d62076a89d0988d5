"""Works on TOOL tickets: lease, run the steps, complete or fail or block, and say what was done.

A ticket is leased for a while, and the lease is renewed while its steps run. If this process dies, another worker takes
the ticket once the lease has run out, and continues with the same run.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import RemitError, StateError, UsageError
from remit.journal.leases import LeaseProof, keep_renewing
from remit.parts.tickets.run import RunRequest, request_of
from remit.parts.tickets.schemas import outputs_of
from remit.parts.tickets.ticket import Leased, Ticket, moment
from remit.tasks import first

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.parts.tickets.history import Derived
    from remit.parts.tickets.reader import TicketQueue
    from remit.parts.tickets.report import RunReport
    from remit.parts.tickets.run import ToolExecutor

VERSION: Final = "1.0.0"
_SAMPLES: Final = {"ok": 3, "blocked": 5, "failed": 5}
_WAIT_S: Final = 20.0
"""A runner looks for tickets at least this often."""
_PAUSE_S: Final = 1.0
"""Seconds after which a runner tries again what the journal or the server could not do."""
_LOST: Final = frozenset({Code.lease_owner_mismatch, Code.lease_conflict, Code.not_found})
"""Codes of a write that came too late: another worker has the ticket."""
_EVERYWHERE: Final = frozenset(
    {
        Code.UNAUTHENTICATED,
        Code.SCOPE_REQUIRED,
        Code.HOST_REFUSED,
        Code.PATH_UNKNOWN,
        Code.METHOD_NOT_ALLOWED,
        Code.SERVER_ANSWER_INVALID,
        Code.JOURNAL_CLOSED,
        Code.JOURNAL_CORRUPT,
        Code.JOURNAL_NEWER,
        Code.JOURNAL_READ_ONLY,
    }
)
"""Codes of what would fail with any other ticket as well."""
_REFUSED: Final = frozenset(
    {Code.INVALID_TOOL_STEP, Code.INVALID_BUDGET, Code.IDEMPOTENCY_MISMATCH, Code.RETRY_REPEATS}
)
"""Codes of a run that cannot be had of this ticket as it is."""
_log: Final = logging.getLogger("remit.tickets")


class RunnerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How a runner works."""

    limit: int = 10
    """Tickets leased and worked on at once."""
    lease_sec: int = 30
    owner: str
    no_mcp: bool = False
    """Whether the steps run without MCP servers, whichever setting says so."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One ticket in a report."""

    ticket_id: str
    code: str | None
    duration_ms: int


class ExecutorReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner did (contract: tickets, "Reports")."""

    version: str
    started_at: str
    ended_at: str
    duration_ms: int
    executor_config: dict[str, Any]
    worker: str
    counters: dict[str, int]
    """total, leased, ok, blocked, failed, skipped, lease_failed, derive_failed."""
    by_code: dict[str, int]
    samples: dict[str, list[Sample]]
    stable_codes: list[str]

    @property
    def status(self) -> str:
        """`failed` outranks `blocked` outranks `ok` (contract: tickets, "Execution")."""
        return next((each for each in ("failed", "blocked") if self.counters[each]), "ok")


class TicketRunner:
    """One worker's hold on TOOL tickets."""

    def __init__(self, queue: TicketQueue, executor: ToolExecutor, clock: Clock, config: RunnerConfig) -> None:
        self._queue = queue
        self._executor = executor
        self._clock = clock
        self._config = config
        self._counters = Counter[str]()
        self._by_code = Counter[str]()
        self._samples: dict[str, list[Sample]] = {status: [] for status in _SAMPLES}
        self._began = self._clock.now()
        self._working: set[asyncio.Task[None]] = set()

    async def run(self, stop: asyncio.Event, *, once: bool) -> ExecutorReport:
        """Work on one batch; without `once`, lease more as others end, until `stop`, and end what is leased.

        What fails for now, such as a server that is away, is tried again after a pause, unless `once` is set. Raise
        RemitError for what fails for good: it is in `report`, as EXECUTOR_FATAL.
        """
        try:
            if not once:
                await self._until(stop)
            elif not stop.is_set():
                await self.batch()
        except RemitError:
            self._by_code[Code.EXECUTOR_FATAL.name] += 1
            raise
        return self.report()

    async def batch(self) -> int:
        """Lease tickets and work on them; return how many there were.

        Raise RemitError if tickets cannot be leased, or if the work on one broke off: it was returned then.
        """
        leases = await self._lease(self._config.limit)
        ends = await asyncio.gather(*map(self._work, leases), return_exceptions=True)
        broken = next((end for end in ends if end is not None), None)
        if broken is not None:
            raise broken
        return len(leases)

    def report(self) -> ExecutorReport:
        """Return what was done so far."""
        now = self._clock.now()
        names = ("total", "leased", "ok", "blocked", "failed", "skipped", "lease_failed", "derive_failed")
        return ExecutorReport(
            version=VERSION,
            started_at=moment(self._began),
            ended_at=moment(now),
            duration_ms=(now - self._began) // 1_000,
            executor_config={
                "limit": self._config.limit,
                "lease_sec": self._config.lease_sec,
                "no_mcp": self._config.no_mcp,
            },
            worker=self._config.owner,
            counters={name: self._counters[name] for name in names},
            by_code=dict(sorted(self._by_code.items())),
            samples=self._samples,
            stable_codes=sorted(self._by_code),
        )

    # --- many tickets

    async def _until(self, stop: asyncio.Event) -> None:
        """Keep as many tickets under way as allowed, and end those. Raise RemitError for what fails for good."""
        try:
            while not stop.is_set():
                await self._go_on(stop)
        except asyncio.CancelledError:
            for task in self._working:
                task.cancel()
            raise
        finally:
            if self._working:
                await asyncio.wait(self._working)
        self._reap()

    async def _go_on(self, stop: asyncio.Event) -> None:
        """Lease what there is room for, then wait until there is more to do, or a while if something fails for now."""
        try:
            await first(self._more(await self._fill_up()), stop.wait())
            self._reap()
        except RemitError as error:
            if not error.code.retryable:
                raise
            _log.warning("cannot work on tickets now: %s", error)
            await first(self._clock.sleep(_PAUSE_S), stop.wait())

    async def _fill_up(self) -> bool:
        """Lease what there is room for, once that is half of the room; whether there were fewer tickets than room."""
        limit = self._config.limit
        room = limit - len(self._working)
        if 2 * room < limit:
            return False
        leases = await self._lease(room)
        for leased in leases:
            name = f"remit:ticket:{leased.ticket.id}"
            self._working.add(asyncio.create_task(self._work(leased), name=name))
        return len(leases) < room

    async def _more(self, wanted: bool) -> None:
        """Wait until the work on a ticket has ended, or until there is one to lease, if that is `wanted`."""
        waits: set[asyncio.Future[Any]] = set(self._working)
        looking = asyncio.ensure_future(self._queue.free("TOOL", wait_s=_WAIT_S)) if wanted else None
        if looking is not None:
            if not self._working:
                _log.info("waits for tickets")
            waits.add(looking)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if looking is not None:
                looking.cancel()
                await asyncio.wait([looking])
        if looking is not None and not looking.cancelled():
            looking.result()

    def _reap(self) -> None:
        """Forget those whose work has ended. Raise RemitError if it broke off."""
        ended = {task for task in self._working if task.done()}
        self._working -= ended
        broken = [error for task in ended if (error := task.exception()) is not None]
        if broken:
            raise broken[0]

    async def _lease(self, most: int) -> list[Leased]:
        config = self._config
        try:
            leases = await self._queue.lease("TOOL", owner=config.owner, limit=most, lease_sec=config.lease_sec)
        except RemitError:
            self._count("lease_failed", Code.LEASE_FAILED.name)
            raise
        self._counters["total"] += len(leases)
        self._counters["leased"] += len(leases)
        return leases

    # --- one ticket

    async def _work(self, leased: Leased) -> None:
        proof = LeaseProof(owner=leased.lease_owner, token=leased.lease_token)
        beat = asyncio.create_task(self._renew(leased.ticket.id, proof), name=f"remit:lease:{leased.ticket.id}")
        try:
            await self._run(leased.ticket, proof)
        except Exception as error:  # noqa: BLE001 - a defect that one ticket meets does not end the work on others
            await self._broke_off(leased.ticket, proof, _coded(error))
        finally:
            beat.cancel()
            await asyncio.wait([beat])

    async def _broke_off(self, ticket: Ticket, proof: LeaseProof, error: RemitError) -> None:
        """Leave a ticket to who has it, return it, or block it. Raise the error if it is not this ticket's alone."""
        if error.code in _LOST:  # another worker has it: what was recorded of the run is its own
            return self._skip(ticket, error)
        if error.code.retryable or error.code in _EVERYWHERE:
            await self._give_back(ticket.id, proof, error)
            raise error
        _log.error("the work on %s broke off: %s", ticket.id, error)
        try:
            return await self._refuse(ticket, proof, error.code, error.message or error.code.meaning)
        except RemitError as refusal:  # it is taken again once the lease has run out
            _log.error("%s could not be blocked: %s", ticket.id, refusal)
            self._count("skipped", error.code.name)

    async def _run(self, ticket: Ticket, proof: LeaseProof) -> None:
        try:
            request = request_of(ticket)
            report = await self._executor.execute(request)
        except (StateError, UsageError) as error:
            if error.code not in _REFUSED:
                raise
            return await self._refuse(ticket, proof, error.code, f"{error.message} {error.remedy}".strip())
        return await self._end(ticket, proof, request, report)

    async def _end(self, ticket: Ticket, proof: LeaseProof, request: RunRequest, report: RunReport) -> None:
        outputs = outputs_of(report, request.tool_steps, request.tool_policy.max_turns)
        reason = report.tool_verdict.reason
        derived: Derived | None = None
        if report.status == "ok":
            derived = (await self._queue.fill(ticket.id, outputs, proof=proof)).derived
        elif report.status == "blocked":
            code = report.code or ""
            await self._queue.block(ticket.id, code=code, reason=reason, source="runner", proof=proof, outputs=outputs)
        else:
            await self._queue.fail(ticket.id, proof, code=report.code or "", reason=reason, outputs=outputs)
        self._done(ticket, report.status, report.code, report.duration_ms)
        if derived is not None and derived.reason == Code.DERIVE_FAILED.name:
            self._count("derive_failed", Code.DERIVE_FAILED.name)

    async def _refuse(self, ticket: Ticket, proof: LeaseProof, code: Code, reason: str) -> None:
        await self._queue.block(ticket.id, code=code.name, reason=reason, source="runner", proof=proof)
        self._done(ticket, "blocked", code.name, 0)

    async def _give_back(self, ticket: str, proof: LeaseProof, fault: RemitError) -> None:
        """Let another worker continue a ticket; if that fails too, it does so once the lease has run out."""
        _log.warning("the work on %s was interrupted: %s", ticket, fault)
        self._count("skipped", fault.code.name)
        try:
            await self._queue.release(ticket, proof, fault.message)
        except RemitError as error:
            _log.warning("%s could not be returned: %s", ticket, error)
            self._by_code[Code.RELEASE_FAILED.name] += 1

    async def _renew(self, ticket: str, proof: LeaseProof) -> None:
        """Keep the lease while the ticket is worked on; once it is lost, the next write says so."""

        async def renew() -> bool:
            try:
                await self._queue.renew(ticket, proof, self._config.lease_sec)
            except StateError:
                return False
            except RemitError as error:
                _log.warning("the lease of %s was not renewed: %s", ticket, error)
            return True

        await keep_renewing(self._clock, self._config.lease_sec, renew)

    # --- counting

    def _done(self, ticket: Ticket, status: str, code: str | None, duration_ms: int) -> None:
        _log.info("%s is %s%s", ticket.id, "done" if status == "ok" else status, f": {code}" if code else "")
        self._count(status, code)
        if len(self._samples[status]) < _SAMPLES[status]:
            self._samples[status].append(Sample(ticket_id=ticket.id, code=code, duration_ms=duration_ms))

    def _skip(self, ticket: Ticket, error: RemitError) -> None:
        _log.warning("%s is left to its new holder: %s", ticket.id, error.message)
        self._count("skipped", Code.LEASE_OWNER_MISMATCH.name)

    def _count(self, counter: str, code: str | None) -> None:
        self._counters[counter] += 1
        if code is not None:
            self._by_code[code] += 1


def _coded(error: Exception) -> RemitError:
    """The error, with a code."""
    if isinstance(error, RemitError):
        return error
    return RemitError(f"{type(error).__name__}: {error}", code=Code.UNHANDLED_EXCEPTION)
