"""Tickets from a message to a reply, worked on in this process."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from remit.codes import Code
from remit.errors import StateError, UsageError
from remit.journal.leases import LeaseProof
from remit.parts.tickets.report import without_moments
from remit.parts.tickets.runner import RunnerConfig
from remit.parts.tickets.ticket import Ticket
from tests.opened import OpenRemit
from tests.service.ticket_desk import CALLS, EVENT, MAY, REPLIES, RUNG, TOOLS, step, tool_ticket, worked


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


async def test_a_message_becomes_a_tool_run_and_a_reply(remit_in: OpenRemit) -> None:
    async with remit_in(tools=TOOLS, flags=REPLIES) as remit:
        tickets = remit.service.tickets
        triage = await tickets.create({"type": "TRIAGE", "event": EVENT})
        filled = await tickets.fill(
            triage.id, {"triage": "look it up", "tool_steps": [step("desk_look", what="x")]}, by="http_fill"
        )
        assert filled.derived is not None
        report = await worked(remit)
        assert report.counters["ok"] == 1
        assert CALLS == ["x"]
        done = await tickets.get(filled.derived.ticket)
        assert done.status == "done"
        (trace,) = done.metadata.final_outputs["tool_context"]["tool_trace"]
        assert (trace["tool_name"], trace["status"], trace["result_summary"]) == ("desk_look", "ok", '{"found":"X"}')
        (reply,) = await tickets.page(kind="REPLY")
        assert reply.metadata.parent_ticket_id == done.id
        assert reply.metadata.triage_ticket_id == triage.id


async def test_a_slow_ticket_holds_no_other_up(remit_in: OpenRemit) -> None:
    RUNG.append(asyncio.Event())
    stop = asyncio.Event()
    async with remit_in(tools=TOOLS) as remit:
        tickets = remit.service.tickets
        slow = await tool_ticket(remit, step("desk_ask"))
        quick = [await tool_ticket(remit, step("desk_look", what=name)) for name in "abcd"]
        runner = tickets.runner(RunnerConfig(owner="worker", limit=2), tickets.executor())
        running = asyncio.create_task(runner.run(stop, once=False))
        mark = 0
        while len(await tickets.page(kind="TOOL", states=("done",))) < len(quick):
            mark = await remit.runtime.journal.heads_changed(mark)
        assert sorted(CALLS) == ["a", "asks", "b", "c", "d"]
        assert (await tickets.get(slow.id)).status == "running"
        stop.set()
        RUNG[-1].set()
        report = await running
        assert report.counters["ok"] == 5
        assert (await tickets.get(slow.id)).status == "done"


async def test_a_step_that_fails_fails_the_ticket_and_the_others_still_run(remit_in: OpenRemit) -> None:
    async with remit_in(tools=TOOLS) as remit:
        ticket = await tool_ticket(remit, step("desk_break"), step("desk_look", what="x"))
        report = await worked(remit)
        assert (report.status, report.by_code) == ("failed", {"TOOL_EXEC_FAILED": 1})
        failed = await remit.service.tickets.get(ticket.id)
        assert failed.metadata.failure is not None
        assert (failed.status, failed.metadata.failure.code) == ("failed", "TOOL_EXEC_FAILED")
        run = await remit.service.tickets.report(ticket.id)
        assert run is not None
        assert [one.status for one in run.step_reports] == ["failed", "ok"]
        assert (run.status, run.code, run.tool_verdict.status) == ("failed", "TOOL_EXEC_FAILED", "DEFER")


async def test_a_retry_runs_only_what_was_not_done(remit_in: OpenRemit) -> None:
    async with remit_in(tools=TOOLS) as remit:
        ticket = await tool_ticket(remit, step("desk_look", what="x"), step("desk_break"))
        await worked(remit)
        await remit.service.tickets.retry(ticket.id)
        await worked(remit)
        assert CALLS == ["x"]
        run = await remit.service.tickets.report(ticket.id)
        assert run is not None
        assert [one.status for one in run.step_reports] == ["ok", "failed"]


async def test_what_took_effect_is_done_again_only_if_a_person_says_so(remit_in: OpenRemit) -> None:
    async with remit_in(tools=TOOLS, flags=MAY) as remit:
        tickets = remit.service.tickets
        ticket = await tool_ticket(remit, step("desk_look", what="x"), step("desk_pay", what="5"))
        assert (await worked(remit)).by_code == {"RESULT_INVALID": 1}
        with pytest.raises(StateError) as refused:
            await tickets.retry(ticket.id)
        assert refused.value.code is Code.RETRY_REPEATS
        assert (await tickets.get(ticket.id)).metadata.retry_count == 0

        leased = await tickets.lease_by_id(ticket.id, owner="other")  # that counts as a retry, and nobody was asked
        await tickets.release(ticket.id, LeaseProof(owner="other", token=leased.lease_token))
        assert (await worked(remit)).by_code == {"RETRY_REPEATS": 1}
        assert CALLS == ["x", "5"]

        assert (await tickets.retry(ticket.id, repeat=True)).metadata.retry_count == 2
        assert (await worked(remit)).by_code == {"RESULT_INVALID": 1}
        assert CALLS == ["x", "5", "5"]
        with pytest.raises(StateError):  # the word was for one attempt
            await tickets.retry(ticket.id)


async def test_a_step_that_needs_a_person_blocks_the_ticket_until_somebody_has_answered(remit_in: OpenRemit) -> None:
    async with remit_in(tools=TOOLS) as remit:
        ticket = await tool_ticket(remit, step("desk_write", text="hi"))
        report = await worked(remit)
        assert report.by_code == {"CONFIRMATION_REQUIRED": 1}
        blocked = await remit.service.tickets.get(ticket.id)
        assert blocked.status == "blocked"
        (question,) = await remit.service.confirmations.pending()
        await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")
        await remit.service.tickets.retry(ticket.id)
        assert (await worked(remit)).counters["ok"] == 1
        assert CALLS == ["write hi"]
        assert (await remit.service.tickets.get(ticket.id)).status == "done"


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ([], "INVALID_TOOL_STEP"),
        ([{"tool_name": "desk_none", "args": {}}], "UNKNOWN_TOOL"),
        ([{"tool_name": "desk_look", "args": {"what": 3}}], "INVALID_TOOL_ARGS"),
        ([{"tool_name": "desk_look", "args": {}}], "INVALID_TOOL_ARGS"),
    ],
)
async def test_what_cannot_run_blocks_the_ticket(remit_in: OpenRemit, steps: list[Any], code: str) -> None:
    async with remit_in(tools=TOOLS) as remit:
        ticket = await tool_ticket(remit, *steps)
        report = await worked(remit)
        assert (report.status, report.by_code) == ("blocked", {code: 1})
        blocked = (await remit.service.tickets.get(ticket.id)).metadata.block
        assert blocked is not None
        assert (blocked.code, blocked.source) == (code, "runner")


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ({"server": "a.b"}, "INVALID_TOOL_STEP"),
        ({"server": "desk_look", "budget": {"max_wall_ms": 0}}, "INVALID_BUDGET"),
    ],
)
async def test_a_bad_step_in_the_older_place_blocks_the_ticket(remit_in: OpenRemit, bad: Any, code: str) -> None:
    async with remit_in(tools=TOOLS) as remit:
        await remit.service.tickets.create({"type": "TOOL", "event": EVENT, "tool_steps": [bad]})
        assert (await worked(remit)).by_code == {code: 1}


async def test_a_budget_cuts_a_step_while_it_runs(remit_in: OpenRemit) -> None:
    async with remit_in(tools=TOOLS) as remit:
        ticket = await tool_ticket(remit, {"tool_name": "desk_wait", "args": {}, "budget": {"max_wall_ms": 20}})
        assert (await worked(remit)).by_code == {"TOOL_TIMEOUT": 1}
        assert (await remit.service.tickets.get(ticket.id)).status == "failed"


async def test_a_budget_says_how_often_a_step_may_be_tried(remit_in: OpenRemit) -> None:
    async with remit_in(tools=TOOLS) as remit:
        await tool_ticket(remit, {"tool_name": "desk_away", "budget": {"max_steps": 1}})
        assert (await worked(remit)).by_code == {"TOOL_UNAVAILABLE": 1}
        assert len(CALLS) == 1
        await tool_ticket(remit, {"tool_name": "desk_away", "budget": {"max_steps": 2}})
        await worked(remit)
        assert len(CALLS) == 3


@pytest.mark.parametrize(
    ("policy", "codes"),
    [
        ({"max_turns": 1}, [None, "BUDGET_EXCEEDED"]),
        ({"tool_whitelist": ["desk_look"]}, [None, "POLICY_DENIED"]),
        ({"tool_whitelist": []}, ["POLICY_DENIED", "POLICY_DENIED"]),
    ],
)
async def test_a_ticket_can_tighten_what_may_run(remit_in: OpenRemit, policy: Any, codes: list[str | None]) -> None:
    async with remit_in(tools=TOOLS) as remit:
        ticket = await tool_ticket(remit, step("desk_look", what="x"), step("desk_break"), tool_policy=policy)
        await worked(remit)
        run = await remit.service.tickets.report(ticket.id)
        assert run is not None
        assert [one.code for one in run.step_reports] == codes


async def test_without_mcp_the_same_ticket_gives_the_same_report(remit_in: OpenRemit) -> None:
    async with remit_in(tools=TOOLS, flags={"tools.no_mcp": True}) as remit:
        reports = []
        for _ in range(2):
            ticket = await tool_ticket(remit, step("desk_look", what="x"), step("desk_break"), step("mcp_none"))
            await worked(remit)
            reports.append(await remit.service.tickets.report(ticket.id))
        one, other = reports
        assert one is not None
        assert other is not None
        assert one != other
        assert without_moments(one) == without_moments(other)


async def test_twenty_workers_on_one_ticket_run_it_once(remit_in: OpenRemit) -> None:
    async with remit_in(tools=TOOLS, flags=REPLIES) as remit:
        tickets = remit.service.tickets
        triage = await tickets.create({"type": "TRIAGE", "event": EVENT})
        await tickets.fill(triage.id, {"tool_steps": [step("desk_look", what="x")]}, by="http_fill")
        reports = await asyncio.gather(*(worked(remit) for _ in range(20)))
        assert sum(report.counters["leased"] for report in reports) == 1
        assert CALLS == ["x"]
        (done,) = await tickets.page(kind="TOOL", states=("done",))
        again = await asyncio.gather(*(tickets.fill(done.id, {}, by="manual") for _ in range(20)))
        assert len(await tickets.page(kind="REPLY")) == 1
        assert all(one == again[0] for one in again)


async def test_in_strict_mode_a_ticket_that_breaks_the_schema_is_refused(remit_in: OpenRemit) -> None:
    async with remit_in() as remit:
        with pytest.raises(UsageError, match="thread_id") as caught:
            await remit.service.tickets.create({"type": "TRIAGE", "event": {"type": "message", "content": "x"}})
        assert caught.value.code is Code.SCHEMA_VALIDATION_FAILED
        triage = await remit.service.tickets.create({"type": "TRIAGE", "event": EVENT})
        with pytest.raises(UsageError, match="tool_steps") as caught:
            await remit.service.tickets.fill(triage.id, {"tool_steps": 3}, by="manual")
        assert caught.value.code is Code.SCHEMA_VALIDATION_FAILED


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ({"tool_name": "a.b"}, Code.INVALID_TOOL_STEP),
        ({"tool_name": "a", "mood": 1}, Code.INVALID_TOOL_STEP),
        ({"tool_name": "a", "budget": {"max_wall_ms": 0}}, Code.INVALID_BUDGET),
        ({"tool_name": "a", "budget": {"max_steps": "many"}}, Code.INVALID_BUDGET),
    ],
)
async def test_in_strict_mode_a_ticket_with_a_bad_step_is_refused_with_the_steps_code(
    remit_in: OpenRemit, bad: Any, code: Code
) -> None:
    async with remit_in() as remit:
        with pytest.raises(UsageError) as created:
            await tool_ticket(remit, {"tool_name": "a"}, bad)
        triage = await remit.service.tickets.create({"type": "TRIAGE", "event": EVENT})
        with pytest.raises(UsageError) as filled:
            await remit.service.tickets.fill(triage.id, {"tool_steps": [bad]}, by="manual")
        assert (created.value.code, filled.value.code) == (code, code)


async def test_in_warn_mode_it_passes_and_is_counted(remit_in: OpenRemit) -> None:
    async with remit_in(flags={"tools.schema_gate": "warn"}) as remit:
        await remit.service.tickets.create({"type": "TRIAGE", "event": {**EVENT, "mood": "good"}})
        counted = {
            family.name: [dict(sample.labels) for sample in family.samples]
            for family in remit.runtime.services.metrics.collect()
        }
        assert counted["schema_warning_total"] == [
            {"warn_code": "unknown_field", "kind": "TRIAGE", "direction": "ingress", "boundary": "ticket_create"}
        ]


async def test_steps_in_the_older_place_are_counted_and_after_the_cutover_a_violation(remit_in: OpenRemit) -> None:
    async with remit_in(tools=TOOLS, flags={"tickets.cutover_until_ms": 1}) as remit:
        await remit.service.tickets.create(
            {
                "type": "TOOL",
                "event": EVENT,
                "tool_steps": [{"server": "desk_look", "tool": "t", "args": {"what": "x"}}],
            }
        )
        assert (await worked(remit)).counters["ok"] == 1
        counts = {family.name: family.samples for family in remit.runtime.services.metrics.collect()}
        assert [counts[name][0].value for name in ("canonical_missing", "legacy_read", "cutover_violation")] == [
            1,
            1,
            1,
        ]
        (done,) = await remit.service.tickets.page(kind="TOOL")
        assert done.metadata.final_outputs["tool_context"]["tool_trace"][0]["_original_tool"] == "t"


async def test_a_runner_derives_what_a_dead_one_left_underived(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in(tools=TOOLS, flags=REPLIES) as remit:
        tickets = remit.service.tickets
        triage = await tickets.create({"type": "TRIAGE", "event": EVENT})

        async def died(_ticket: Ticket) -> None:
            return None

        with monkeypatch.context() as patched:
            patched.setattr(tickets, "follow", died)
            await tickets.fill(triage.id, {"tool_steps": [step("desk_look", what="x")]}, by="http_fill")
        assert await tickets.page(kind="TOOL") == []
        assert (await worked(remit)).counters["ok"] == 1
        assert len(await tickets.page(kind="REPLY")) == 1
        assert await tickets.follow_up() == 0


async def test_a_ticket_has_the_fields_of_the_contract_and_keeps_what_it_was_given(remit_in: OpenRemit) -> None:
    policy = {"max_turns": 3, "web_search_strategy": "wide", "web_search_budget": 2, "tool_whitelist": ["desk_look"]}
    one = {"tool_name": "desk_look", "args": {"what": "x"}, "budget": {"max_steps": 2, "max_wall_ms": 9_000}}
    steps = [{**one, "save_as": "found"}]
    async with remit_in(tools=TOOLS) as remit:
        made = await tool_ticket(remit, *steps, tool_policy=policy, triage="look")
        plain = msgspec.to_builtins(made)
        assert {"id", "type", "status", "event", "metadata"} <= plain.keys()
        meta = plain["metadata"]
        names = {"created_at", "updated_at", "kind", "assigned_to", "lease_owner", "lease_expires", "tool_input"}
        assert names | {"final_outputs"} <= meta.keys()
        assert "lease_token" not in meta
        given = {name: meta["tool_input"][name] for name in ("event", "triage", "tool_steps", "tool_policy")}
        assert given == {"event": EVENT, "triage": "look", "tool_steps": steps, "tool_policy": policy}
        await worked(remit)
        outputs = (await remit.service.tickets.get(made.id)).metadata.final_outputs
        assert list(outputs) == ["tool_context", "tool_verdict"]
        assert list(outputs["tool_context"]) == [
            "evidence", "logs_hits", "graph_nodes", "web_summaries", "tool_trace", "truncated", "turn_control",
        ]  # fmt: skip
        assert outputs["tool_context"]["turn_control"] == {"turns_used": 1, "max_turns": 3}
        assert outputs["tool_context"]["tool_trace"][0]["save_as"] == "found"
        assert outputs["tool_verdict"]["status"] == "PROCEED"


async def test_the_budget_for_searches_counts_calls_of_web_search_alone(remit_in: OpenRemit) -> None:
    async with remit_in(tools=TOOLS) as remit:
        steps = [step("web_search", query="x"), step("web_search", query="y"), step("desk_look", what="x")]
        ticket = await tool_ticket(remit, *steps, tool_policy={"web_search_budget": 1})
        await worked(remit)
        run = await remit.service.tickets.report(ticket.id)
        assert run is not None
        assert [one.code for one in run.step_reports] == [None, "BUDGET_EXCEEDED", None]
