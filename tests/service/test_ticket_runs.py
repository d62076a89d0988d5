"""Runs of tickets in a process whose engine works on these alone, as that of `remit tickets work`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest

from remit import Remit, tool
from remit.clock import SECOND, Clock
from remit.codes import Code
from remit.errors import StateError
from remit.parts.tickets import tickets as ticket_runs
from remit.parts.tickets.run import RunRequest
from remit.parts.tickets.runner import ExecutorReport, RunnerConfig
from remit.parts.tickets.steps import ToolStep
from remit.parts.tickets.ticket import Ticket
from remit.parts.tickets.tickets import job_of, tickets_of
from remit_testing.clock import ManualClock
from tests.opened import OpenRemit, until_left

EVENT = {"type": "message", "thread_id": "t1", "content": "hello"}
MAY: dict[str, Any] = {"policy.rules": [{"effect": "allow", "tools": ["desk.*"]}]}
DONE: list[str] = []
BEGUN: list[asyncio.Event] = []


@tool("desk.write")
def write(text: str) -> str:
    """Write something."""
    DONE.append(text)
    return text


@tool("desk.stall")
async def stall() -> None:
    """Begin, and never end."""
    BEGUN[-1].set()
    await asyncio.get_running_loop().create_future()


@pytest.fixture(autouse=True)
def _nothing_is_done() -> None:
    DONE.clear()
    BEGUN.append(asyncio.Event())


@asynccontextmanager
async def runner_process(remit_in: OpenRemit, clock: Clock | None = None, **flags: Any) -> AsyncIterator[Remit]:
    """A process whose engine only works on runs that its own runner waits for."""
    async with remit_in(tools=[write, stall], clock=clock, flags=flags, work=False) as remit:
        remit.engine.start(only=remit.awaited)
        yield remit


async def batch(remit: Remit) -> ExecutorReport:
    tickets = tickets_of(remit.service)
    return await tickets.runner(RunnerConfig(owner="me"), tickets.executor()).run(asyncio.Event(), once=True)


async def ticket_of(remit: Remit, *steps: dict[str, Any]) -> Ticket:
    return await tickets_of(remit.service).create({"type": "TOOL", "event": EVENT, "tool_steps": list(steps)})


def writes(text: str) -> dict[str, Any]:
    return {"tool_name": "desk_write", "args": {"text": text}}


async def test_a_ticket_goes_on_at_once_when_its_question_is_answered(remit_in: OpenRemit) -> None:
    async with runner_process(remit_in) as remit:
        ticket = await ticket_of(remit, *map(writes, "abc"))
        for _ in "abc":
            assert (await batch(remit)).by_code == {"CONFIRMATION_REQUIRED": 1}
            await approve(remit)
            await tickets_of(remit.service).retry(ticket.id)
        assert (await batch(remit)).counters["ok"] == 1
        assert DONE == ["a", "b", "c"]


async def test_a_ticket_whose_question_has_no_answer_yet_is_blocked_again(remit_in: OpenRemit) -> None:
    async with runner_process(remit_in) as remit:
        ticket = await ticket_of(remit, writes("a"))
        for _ in range(2):
            assert (await batch(remit)).by_code == {"CONFIRMATION_REQUIRED": 1}
            await tickets_of(remit.service).retry(ticket.id)
        assert len(await remit.service.confirmations.pending()) == 1


RUN = RunRequest(ticket_id="tkt_a", tool_steps=(ToolStep(tool_name="desk_write", args={"text": "a"}),))


async def executed(remit: Remit) -> tuple[str, str | None]:
    report = await tickets_of(remit.service).executor().execute(RUN)
    return report.status, report.code


async def approve(remit: Remit) -> None:
    (question,) = await remit.service.confirmations.pending()
    await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")


async def test_an_answer_from_a_process_whose_clock_is_ahead_counts_at_once(remit_in: OpenRemit) -> None:
    clock = ManualClock()
    async with runner_process(remit_in, clock) as remit:
        assert await executed(remit) == ("blocked", "CONFIRMATION_REQUIRED")
    async with remit_in(clock=ManualClock(clock.now() + 60 * SECOND), work=False) as remit:
        await approve(remit)
    async with runner_process(remit_in, clock) as remit:
        assert await executed(remit) == ("ok", None)


async def test_an_answered_run_that_a_worker_with_other_code_left_goes_on_at_once(remit_in: OpenRemit) -> None:
    clock = ManualClock()
    async with runner_process(remit_in, clock, **{"jobs.code_version": "1"}) as remit:
        assert await executed(remit) == ("blocked", "CONFIRMATION_REQUIRED")
    other = {"jobs.code_version": "2", "jobs.mismatch": "fail"}
    async with remit_in(tools=[write], clock=clock, flags=other) as remit:
        await approve(remit)
        assert (await until_left(remit, job_of("tkt_a", 0))).code == "EXECUTION_VERSION_MISMATCH"
    async with runner_process(remit_in, clock, **{"jobs.code_version": "1"}) as remit:
        assert await executed(remit) == ("ok", None)


STEPS = (ToolStep(tool_name="desk_stall"), ToolStep(tool_name="desk_write", args={"text": "b"}))


async def left_in_doubt(remit_in: OpenRemit, *steps: ToolStep) -> None:
    """A run whose process ended during its first call."""
    async with runner_process(remit_in, **MAY) as remit:
        run = RunRequest(ticket_id="tkt_a", tool_steps=steps)
        running = asyncio.create_task(tickets_of(remit.service).executor().execute(run))
        await BEGUN[-1].wait()
        await remit.engine.stop()
        running.cancel()
        await asyncio.wait([running])


@pytest.mark.parametrize("steps", [STEPS, STEPS[:1]], ids=["first", "last"])
async def test_a_step_in_doubt_blocks_its_run_and_says_what_to_decide(
    remit_in: OpenRemit, steps: tuple[ToolStep, ...]
) -> None:
    await left_in_doubt(remit_in, *steps)
    async with runner_process(remit_in, **MAY) as remit:
        report = await tickets_of(remit.service).executor().execute(RunRequest(ticket_id="tkt_a", tool_steps=steps))
        assert (report.status, report.code) == ("blocked", "OUTCOME_UNKNOWN")
        assert f"remit decide {report.run_id} s0" in report.tool_verdict.reason
        assert [step.code for step in report.step_reports] == ["OUTCOME_UNKNOWN", "RUN_TIMEOUT"][: len(steps)]


@pytest.mark.parametrize(
    ("decision", "status", "codes"), [("done", "ok", [None, None]), ("fail", "failed", ["OUTCOME_UNKNOWN", None])]
)
async def test_a_run_goes_on_at_once_when_its_step_is_decided(
    remit_in: OpenRemit, decision: Literal["done", "fail"], status: str, codes: list[str | None]
) -> None:
    await left_in_doubt(remit_in, *STEPS)
    async with runner_process(remit_in, **MAY) as remit:
        executor = tickets_of(remit.service).executor()
        blocked = await executor.execute(RunRequest(ticket_id="tkt_a", tool_steps=STEPS))
        await remit.service.steps.decide(blocked.run_id, "s0", decision, None)
        report = await executor.execute(RunRequest(ticket_id="tkt_a", attempt=1, tool_steps=STEPS))
        assert (report.status, [step.code for step in report.step_reports]) == (status, codes)
        assert DONE == ["b"]


async def test_a_run_that_no_worker_takes_is_not_waited_for_forever(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticket_runs, "PATIENCE_S", 0.01)
    async with remit_in(tools=[write], flags=MAY, work=False) as remit:
        with pytest.raises(StateError) as caught:
            await executed(remit)
        assert caught.value.code is Code.NO_WORKER
        remit.engine.start()
        assert await executed(remit) == ("ok", None)
