"""What a runner of tickets counts and reports, whatever happens to the queue and to those who run the steps."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from remit.codes import Code
from remit.errors import ChainBrokenError, JournalError, RemitError, StateError
from remit.journal.leases import LeaseProof
from remit.parts.tickets.history import Derived
from remit.parts.tickets.reader import Filled
from remit.parts.tickets.report import RunFacts, RunReport, RunStatus, Span, StepReport, run_report
from remit.parts.tickets.run import RunRequest
from remit.parts.tickets.runner import RunnerConfig, TicketRunner
from remit.parts.tickets.ticket import Kind, Leased, Metadata, Ticket
from remit_testing.clock import ManualClock

SPAN = Span(started_at="", ended_at="", duration_ms=1)
AWAY = JournalError("the journal is away", code=Code.JOURNAL_IO)
LOST = StateError("another has it", code=Code.lease_owner_mismatch)


def ticket(name: str, **given: Any) -> Ticket:
    meta = Metadata(created_at="", updated_at="", kind="TOOL", tool_input={"tool_steps": [{"tool_name": "a"}]}, **given)
    return Ticket(id=name, type="TOOL", status="running", event={}, metadata=meta)


class Queue:
    """Tickets named by what becomes of them, such as `failed-1`, and what was asked for."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.ends: list[tuple[str, str]] = []
        self.lease_fails: RemitError | None = None
        self.release_fails: RemitError | None = None
        self.fill_fails: RemitError | None = None
        self.block_fails: RemitError | None = None
        self.derived = "created"

    async def free(self, kind: Kind, *, wait_s: float = 0.0) -> bool:
        return bool(self.names)

    async def lease(self, kind: Kind, *, owner: str, limit: int, lease_sec: int) -> list[Leased]:
        if self.lease_fails is not None:
            raise self.lease_fails
        names, self.names = self.names[:limit], self.names[limit:]
        return [Leased(ticket=ticket(name), lease_owner=owner, lease_token="1.x", lease_expires="") for name in names]

    async def renew(self, ticket: str, proof: LeaseProof, lease_sec: int) -> str:
        return ""

    async def release(self, name: str, proof: LeaseProof, reason: str = "") -> Ticket:
        if self.release_fails is not None:
            raise self.release_fails
        return self._end(name, "release")

    async def fill(self, name: str, outputs: Any, *, proof: LeaseProof | None = None, by: str = "") -> Filled:
        if self.fill_fails is not None:
            raise self.fill_fails
        return Filled(ticket=self._end(name, "fill"), derived=Derived(reason=self.derived))

    async def fail(self, name: str, proof: LeaseProof, *, code: str, reason: str, outputs: Any = None) -> Ticket:
        return self._end(name, f"fail {code}")

    async def block(
        self, name: str, *, code: str, reason: str, source: str, proof: LeaseProof | None = None, outputs: Any = None
    ) -> Ticket:
        if self.block_fails is not None:
            raise self.block_fails
        return self._end(name, f"block {code}")

    def _end(self, name: str, how: str) -> Ticket:
        self.ends.append((name, how))
        return ticket(name)


class Executor:
    """Gives each run the status that its ticket is named by."""

    def __init__(self, fails: RemitError | None = None) -> None:
        self.fails = fails

    async def execute(self, run: RunRequest) -> RunReport:
        if self.fails is not None:
            raise self.fails
        status: RunStatus = msgspec.convert(run.ticket_id.partition("-")[0], RunStatus)
        code = {"ok": None, "blocked": "POLICY_DENIED", "failed": "TOOL_TIMEOUT"}[status]
        step = StepReport(
            step_index=0,
            tool_name="a",
            status=status,
            code=code,
            started_at="",
            ended_at="",
            duration_ms=1,
            result_summary="",
            evidence_items=(),
            side_effect="read",
        )
        return run_report(RunFacts(run_id="job", ticket_id=run.ticket_id, span=SPAN), (step,), 10)


def runner(queue: Queue, fails: RemitError | None = None, **config: Any) -> TicketRunner:
    return TicketRunner(queue, Executor(fails), ManualClock(), RunnerConfig(owner="me", **{"limit": 50, **config}))


async def once(one: TicketRunner) -> dict[str, Any]:
    """The report on one batch, as JSON."""
    return dict(msgspec.to_builtins(await one.run(asyncio.Event(), once=True)))


async def test_a_report_has_every_field_of_the_contract() -> None:
    report = await once(runner(Queue("ok-1"), limit=10, lease_sec=300, no_mcp=True))
    assert set(report) == {
        "version", "started_at", "ended_at", "duration_ms", "executor_config", "worker", "counters", "by_code",
        "samples", "stable_codes",
    }  # fmt: skip
    assert report["version"] == "1.0.0"
    assert report["worker"] == "me"
    assert report["executor_config"] == {"limit": 10, "lease_sec": 300, "no_mcp": True}
    assert set(report["counters"]) == {
        "total", "leased", "ok", "blocked", "failed", "skipped", "lease_failed", "derive_failed",
    }  # fmt: skip


async def test_samples_are_three_that_are_ok_and_five_of_the_others() -> None:
    names = [f"{status}-{number}" for status in ("ok", "blocked", "failed") for number in range(7)]
    report = await once(runner(Queue(*names)))
    assert {status: len(samples) for status, samples in report["samples"].items()} == {
        "ok": 3, "blocked": 5, "failed": 5,
    }  # fmt: skip
    assert report["by_code"] == {"POLICY_DENIED": 7, "TOOL_TIMEOUT": 7}
    assert report["stable_codes"] == ["POLICY_DENIED", "TOOL_TIMEOUT"]


@pytest.mark.parametrize(
    ("names", "status"),
    [
        ((), "ok"),
        (("ok-1",), "ok"),
        (("ok-1", "blocked-1"), "blocked"),
        (("ok-1", "blocked-1", "failed-1"), "failed"),
    ],
)
async def test_failed_outranks_blocked_outranks_ok(names: tuple[str, ...], status: str) -> None:
    assert (await runner(Queue(*names)).run(asyncio.Event(), once=True)).status == status


async def test_tickets_that_cannot_be_leased_are_counted_and_the_report_says_that_it_was_the_end() -> None:
    queue = Queue("ok-1")
    queue.lease_fails = AWAY
    one = runner(queue)
    with pytest.raises(JournalError):
        await one.run(asyncio.Event(), once=True)
    report = one.report()
    assert report.counters["lease_failed"] == 1
    assert report.stable_codes == ["EXECUTOR_FATAL", "LEASE_FAILED"]


async def test_a_ticket_whose_run_breaks_off_is_given_back() -> None:
    queue = Queue("ok-1")
    one = runner(queue, fails=AWAY)
    with pytest.raises(JournalError):
        await one.run(asyncio.Event(), once=True)
    assert queue.ends == [("ok-1", "release")]
    assert one.report().counters["skipped"] == 1
    assert one.report().by_code == {"EXECUTOR_FATAL": 1, "JOURNAL_IO": 1}


async def test_what_cannot_even_be_given_back_is_counted() -> None:
    queue = Queue("ok-1")
    queue.release_fails = AWAY
    one = runner(queue, fails=AWAY)
    with pytest.raises(JournalError):
        await one.run(asyncio.Event(), once=True)
    assert one.report().by_code["RELEASE_FAILED"] == 1


async def test_a_ticket_that_another_worker_took_is_left_to_it() -> None:
    queue = Queue("ok-1", "blocked-1")
    queue.fill_fails = LOST
    report = await once(runner(queue))
    assert report["counters"]["skipped"] == 1
    assert report["by_code"] == {"LEASE_OWNER_MISMATCH": 1, "POLICY_DENIED": 1}
    assert queue.ends == [("blocked-1", "block POLICY_DENIED")]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ChainBrokenError("a value is gone", code=Code.BLOB_MISSING), "BLOB_MISSING"),
        (StateError("it cannot run here", code=Code.JOB_NOT_RETRYABLE), "JOB_NOT_RETRYABLE"),
        (KeyError("a defect"), "UNHANDLED_EXCEPTION"),
    ],
)
async def test_a_ticket_that_cannot_be_worked_on_is_blocked_and_ends_nothing(error: Exception, code: str) -> None:
    queue = Queue("bad-1", "ok-1")

    class Meets(Executor):
        async def execute(self, run: RunRequest) -> RunReport:
            if run.ticket_id == "bad-1":
                raise error
            return await super().execute(run)

    one = TicketRunner(queue, Meets(), ManualClock(), RunnerConfig(owner="me"))
    await one.run(asyncio.Event(), once=True)
    assert one.report().by_code == {code: 1}
    assert sorted(queue.ends) == [("bad-1", f"block {code}"), ("ok-1", "fill")]


async def test_a_ticket_that_cannot_even_be_blocked_ends_nothing() -> None:
    queue = Queue("bad-1", "ok-1")
    queue.block_fails = ChainBrokenError("its head was written by someone", code=Code.HEAD_FORGED)

    class Meets(Executor):
        async def execute(self, run: RunRequest) -> RunReport:
            if run.ticket_id == "bad-1":
                raise queue.block_fails or AWAY
            return await super().execute(run)

    report = await TicketRunner(queue, Meets(), ManualClock(), RunnerConfig(owner="me")).run(asyncio.Event(), once=True)
    assert (report.counters["ok"], report.counters["skipped"], report.by_code) == (1, 1, {"HEAD_FORGED": 1})


async def test_a_run_that_no_worker_takes_is_given_back_not_taken_for_lost() -> None:
    queue = Queue("ok-1")
    one = runner(queue, fails=StateError("nobody", code=Code.NO_WORKER))
    with pytest.raises(StateError):
        await one.run(asyncio.Event(), once=True)
    assert queue.ends == [("ok-1", "release")]


async def test_a_reply_that_could_not_be_derived_is_counted_and_the_ticket_is_done() -> None:
    queue = Queue("ok-1")
    queue.derived = "DERIVE_FAILED"
    report = await once(runner(queue))
    assert (report["counters"]["ok"], report["counters"]["derive_failed"]) == (1, 1)
    assert report["by_code"] == {"DERIVE_FAILED": 1}


async def test_a_runner_that_goes_on_takes_no_more_than_its_limit_at_once_and_ends_what_it_took() -> None:
    queue, stop = Queue(*(f"ok-{number}" for number in range(20))), asyncio.Event()

    class Stops(Executor):
        async def execute(self, run: RunRequest) -> RunReport:
            under_way.append(20 - len(queue.names) - len(queue.ends))
            if len(queue.ends) == 10:
                stop.set()
            return await super().execute(run)

    under_way: list[int] = []
    one = TicketRunner(queue, Stops(), ManualClock(), RunnerConfig(owner="me", limit=4))
    report = await one.run(stop, once=False)
    assert max(under_way) <= 4
    assert report.counters["ok"] == report.counters["leased"] == len(queue.ends) < 20


async def test_what_fails_for_good_ends_a_runner_that_goes_on_after_what_is_under_way() -> None:
    queue = Queue("ok-1")
    queue.lease_fails = StateError("no", code=Code.SCOPE_REQUIRED)
    one = runner(queue)
    with pytest.raises(StateError):
        await one.run(asyncio.Event(), once=False)
    assert "EXECUTOR_FATAL" in one.report().stable_codes
