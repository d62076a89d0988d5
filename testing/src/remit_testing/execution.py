"""The promises of running a ticket's steps wherever it is done (contract: tickets, "Execution"), as checks.

    @pytest.mark.parametrize("check", EXECUTION_CHECKS, ids=lambda check: check.__name__)
    async def test_contract(check):
        await check(reach)

`reach` is that of remit_testing.service: it takes the service over a journal, and opens the one under test.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from remit.codes import Code
from remit.errors import StateError
from remit.parts.tickets.report import RunReport, without_moments
from remit.parts.tickets.run import RunRequest, ToolPolicy
from remit.parts.tickets.runner import RunnerConfig
from remit.parts.tickets.steps import ToolStep, normalised
from remit.parts.tickets.ticket import new_ticket_id, stream_of
from remit.parts.tickets.tickets import tickets_of
from remit.service.service import Service
from remit.settings import load
from remit.tools.function import FunctionTool, tool
from remit.wiring.runtime import Runtime, open_runtime
from remit_testing.service.world import Check, Reach, refused
from remit_testing.suite import checks_in

_EVENT: Final = {"type": "message", "thread_id": "t1", "content": "hello"}
_RULES: Final = [
    {"id": "may-call", "effect": "allow", "tools": ["desk.note", "desk.look", "desk.break", "desk.hang"]},
    {"id": "must-ask", "effect": "ask", "tools": ["desk.ask"]},
]


class Place:
    """The service under test, the one over the journal, its metrics, and what its tools have done."""

    def __init__(self, service: Service, runtime: Runtime, noted: list[str]) -> None:
        self.service = service
        self.local = runtime.service
        self.metrics = runtime.services.metrics
        self.noted = noted

    def counted(self, name: str) -> float:
        """Return what a counter says where the journal is."""
        families = {family.name: family.samples for family in self.metrics.collect()}
        return sum(sample.value for sample in families.get(name, ()))

    async def run(self, *steps: Any, ticket: str = "", attempt: int = 0, **policy: Any) -> RunReport:
        """Run steps: those of a new ticket, if none is named."""
        request = RunRequest(
            ticket_id=ticket or new_ticket_id(),
            attempt=attempt,
            tool_steps=tuple(step if isinstance(step, ToolStep) else normalised(step) for step in steps),
            tool_policy=ToolPolicy(**policy),
        )
        return await tickets_of(self.service).executor().execute(request)


def step(name: str, **args: Any) -> dict[str, Any]:
    """A step."""
    return {"tool_name": name, "args": args}


@asynccontextmanager
async def place(reach: Reach, **flags: Any) -> AsyncIterator[Place]:
    """An empty journal, tools that note what they do, a worker, and the service under test."""
    noted: list[str] = []
    with TemporaryDirectory() as folder:
        options = {"journal.url": ":memory:", "app.principal": "ann", "policy.rules": _RULES, **flags}
        settings = load(cwd=Path(folder), env={}, flags=options)
        runtime = open_runtime(settings, tools=_tools(noted))
        runtime.engine.start()
        try:
            async with reach(runtime.service) as service:
                yield Place(service, runtime, noted)
        finally:
            await runtime.close()


def _tools(noted: list[str]) -> tuple[FunctionTool[..., Any], ...]:
    @tool("desk.note")
    def note(text: str) -> str:
        """Note something, which must not happen twice."""
        noted.append(text)
        return text.upper()

    @tool("desk.look", level="L0")
    def look(at: str) -> dict[str, str]:
        """Look at something."""
        return {"at": at}

    @tool("desk.break", level="L0")
    def broken() -> str:
        """Fail."""
        raise RuntimeError("it broke")

    @tool("desk.hang", level="L0")
    async def hang() -> None:
        """Never answer; note that it was told to stop."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            noted.append("cut")

    @tool("desk.ask")
    def ask(text: str) -> str:
        """Note something, which asks first."""
        noted.append(text)
        return text

    return note, look, broken, hang, ask


def _codes(report: RunReport) -> list[str | None]:
    return [step_report.code for step_report in report.step_reports]


async def check_steps_run_in_order_and_are_reported(reach: Reach) -> None:
    """Each step is done once, in its place, and the report says how it ended."""
    async with place(reach) as site:
        report = await site.run(step("desk_note", text="a"), step("desk_look", at="x"), step("desk_note", text="b"))
        assert site.noted == ["a", "b"]
        assert (report.status, report.code, report.tool_verdict.status) == ("ok", None, "PROCEED")
        assert [each.result_summary for each in report.step_reports] == ['"A"', '{"at":"x"}', '"B"']
        assert [each.side_effect for each in report.step_reports] == ["write", "read", "write"]
        moments = [each.type for each in report.attempt_events]
        assert moments == ["RUN_START", *["STEP_START", "STEP_END"] * 3, "RUN_END"]


async def check_the_worst_step_decides(reach: Reach) -> None:
    """Blocked before failed before ok; the code is that of the first step with this status."""
    async with place(reach) as site:
        failed = await site.run(step("desk_break"), step("desk_note", text="a"))
        assert (failed.status, failed.code, failed.tool_verdict.status) == ("failed", "TOOL_EXEC_FAILED", "DEFER")
        blocked = await site.run(step("desk_break"), step("desk_none"), step("desk_look", at=3))
        assert (blocked.status, blocked.code) == ("blocked", "UNKNOWN_TOOL")
        assert _codes(blocked) == ["TOOL_EXEC_FAILED", "UNKNOWN_TOOL", "INVALID_TOOL_ARGS"]
        empty = await site.run()
        assert (empty.status, empty.code, empty.step_reports) == ("blocked", "INVALID_TOOL_STEP", ())


async def check_a_budget_cuts_a_step_while_it_runs(reach: Reach) -> None:
    """The call is cancelled, and the steps after it still run."""
    async with place(reach) as site:
        hangs = {"tool_name": "desk_hang", "budget": {"max_wall_ms": 20}}
        report = await site.run(hangs, step("desk_note", text="after"))
        assert _codes(report) == ["TOOL_TIMEOUT", None]
        assert site.noted == ["cut", "after"]


async def check_a_ticket_tightens_what_may_run(reach: Reach) -> None:
    """Its own limits refuse steps, and refuse nothing else."""
    async with place(reach) as site:
        steps = (step("desk_note", text="a"), step("desk_look", at="x"))
        assert _codes(await site.run(*steps, max_turns=1)) == [None, "BUDGET_EXCEEDED"]
        assert _codes(await site.run(*steps, tool_whitelist=("desk_look",))) == ["POLICY_DENIED", None]
        assert site.noted == ["a"]


async def check_the_same_attempt_is_the_same_run(reach: Reach) -> None:
    """Asked for again, also at the same time, it is met: nothing is done twice. Other steps are refused."""
    async with place(reach) as site:
        steps = (step("desk_note", text="a"), step("desk_break"))
        reports = await asyncio.gather(*(site.run(*steps, ticket="tkt_one") for _ in range(5)))
        again = await site.run(*steps, ticket="tkt_one")
        assert site.noted == ["a"]
        assert all(report == again for report in reports)
        with refused(Code.IDEMPOTENCY_MISMATCH, StateError):
            await site.run(step("desk_note", text="b"), ticket="tkt_one")
        assert site.noted == ["a"]


async def check_a_later_attempt_leaves_out_what_was_done(reach: Reach) -> None:
    """Only the steps that did not end well run again, and a run that is whole is not run again at all."""
    async with place(reach) as site:
        steps = (step("desk_note", text="a"), step("desk_break"))
        first = await site.run(*steps, ticket="tkt_one")
        second = await site.run(*steps, ticket="tkt_one", attempt=1)
        assert site.noted == ["a"]
        assert first.run_id != second.run_id
        assert [each.status for each in second.step_reports] == ["ok", "failed"]
        whole = await site.run(steps[0], ticket="tkt_two")
        assert (await site.run(steps[0], ticket="tkt_two", attempt=1)).run_id == whole.run_id
        assert site.noted == ["a", "a"]


async def check_a_step_that_asks_blocks_the_run_until_a_person_answers(reach: Reach) -> None:
    """The report says what it waits for; the next attempt continues the answer."""
    async with place(reach) as site:
        report = await site.run(step("desk_ask", text="a"), ticket="tkt_one")
        assert (report.status, report.code) == ("blocked", "CONFIRMATION_REQUIRED")
        (question,) = await site.local.confirmations.pending()
        await site.local.confirmations.decide(question.confirmation, "approve", by="bob")
        report = await site.run(step("desk_ask", text="a"), ticket="tkt_one", attempt=1)
        assert (report.status, site.noted) == ("ok", ["a"])


async def check_a_report_holds_no_bytes(reach: Reach) -> None:
    """However large a result is, the report only has its beginning."""
    async with place(reach) as site:
        report = await site.run(step("desk_look", at="x" * 20_000))
        assert report.status == "ok"
        assert len(msgspec.json.encode(report)) < 5_000


async def check_a_step_in_the_oldest_form_is_the_same_step(reach: Reach) -> None:
    """`server` is the tool's key, and `tool` is only kept for the trace."""
    async with place(reach) as site:
        report = await site.run({"server": "desk_note", "tool": "anything", "args": {"text": "a"}})
        assert (report.status, report.step_reports[0].tool_name, site.noted) == ("ok", "desk_note", ["a"])


async def check_without_mcp_two_runs_give_the_same_report(reach: Reach) -> None:
    """The same ticket gives the same report except for times and identifiers."""
    async with place(reach, **{"tools.no_mcp": True}) as site:
        steps = (step("desk_note", text="a"), step("desk_break"), step("github", operation="list"), step("desk_look"))
        first, second = await site.run(*steps), await site.run(*steps)
        assert first != second
        assert without_moments(first) == without_moments(second)
        assert first.mode_snapshot["no_mcp"] is True


async def check_a_runner_works_on_tickets(reach: Reach) -> None:
    """It leases, runs and ends tickets of every outcome; what it reports is what the tickets say."""
    async with place(reach) as site:
        for steps in ([step("desk_note", text="a")], [step("desk_break")], [step("desk_none")], [{"tool_name": "a.b"}]):
            document = {"type": "TOOL", "event": _EVENT, "tool_steps": steps}
            await tickets_of(site.service).create(document)
        tickets = tickets_of(site.service)
        assert await tickets.free("TOOL")
        runner = tickets.runner(RunnerConfig(owner="me"), tickets.executor())
        report = await runner.run(asyncio.Event(), once=True)
        counted = {name: report.counters[name] for name in ("leased", "ok", "blocked", "failed", "skipped")}
        assert counted == {"leased": 4, "ok": 1, "blocked": 2, "failed": 1, "skipped": 0}
        assert report.by_code == {"INVALID_TOOL_STEP": 1, "TOOL_EXEC_FAILED": 1, "UNKNOWN_TOOL": 1}
        assert site.noted == ["a"]
        assert not await tickets.free("TOOL")
        states = {ticket.status for ticket in await tickets.page(kind="TOOL")}
        assert states == {"done", "failed", "blocked"}
        (failed,) = await tickets.page(kind="TOOL", states=("failed",))
        assert failed.metadata.final_outputs["tool_context"]["tool_trace"][0]["code"] == "TOOL_EXEC_FAILED"


async def check_steps_in_the_older_place_are_counted_where_the_journal_is(reach: Reach) -> None:
    """Once for each time that a ticket is leased, by a runner here or behind a server; a bad step counts as well."""
    async with place(reach, **{"tickets.cutover_until_ms": 1}) as site:
        old = [{"server": "desk_note", "tool": "x", "args": {"text": "a"}}]
        tickets: list[dict[str, Any]] = [
            {"tool_steps": old},
            {"tool_steps": [3]},
            {"tool_input": {"tool_steps": []}},
            {},
        ]
        for ticket in tickets:
            await tickets_of(site.service).create({"type": "TOOL", "event": _EVENT, **ticket})
        queue = tickets_of(site.service)
        await queue.runner(RunnerConfig(owner="me"), queue.executor()).run(asyncio.Event(), once=True)
        names = ("canonical_missing", "legacy_read", "cutover_violation")
        assert [site.counted(name) for name in names] == [3, 2, 2]
        assert site.noted == ["a"]


async def check_a_runner_takes_what_comes_until_it_is_stopped(reach: Reach) -> None:
    """It waits for tickets without holding any, and ends when it is told to."""
    async with place(reach) as site:
        tickets, stop = tickets_of(site.service), asyncio.Event()
        runner = tickets.runner(RunnerConfig(owner="me"), tickets.executor())
        running = asyncio.create_task(runner.run(stop, once=False))
        ticket = await tickets.create({"type": "TOOL", "event": _EVENT, "tool_steps": [step("desk_note", text="a")]})
        async for _ in site.local.streams.follow(stream_of(ticket.id)):
            pass  # until it is done
        stop.set()
        assert (await running).counters["ok"] == 1


EXECUTION_CHECKS: Final[tuple[Check, ...]] = checks_in(globals())
"""Every check."""
