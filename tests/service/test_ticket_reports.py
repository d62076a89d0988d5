"""Reports on the runs of tickets."""

from __future__ import annotations

import msgspec

from remit.parts.tickets.ticket import moment
from tests.opened import OpenRemit
from tests.service.ticket_desk import TOOLS, step, tool_ticket, worked


async def test_a_report_holds_no_bytes(remit_in: OpenRemit) -> None:
    async with remit_in(tools=TOOLS) as remit:
        ticket = await tool_ticket(remit, step("desk_look", what="x" * 20_000))
        await worked(remit)
        encoded = msgspec.json.encode(await remit.service.tickets.report(ticket.id))
        assert len(encoded) < 5_000


async def test_a_report_says_under_which_settings_its_run_began_and_not_who_reads_it(remit_in: OpenRemit) -> None:
    async with remit_in(tools=TOOLS, flags={"tools.no_mcp": True}) as remit:
        ticket = await tool_ticket(remit, {"tool_name": "desk_look", "args": {"what": "x"}})
        assert (await worked(remit)).executor_config["no_mcp"] is True
    async with remit_in(tools=TOOLS, flags={"tools.no_mcp": False, "tools.schema_gate": "warn"}) as reader:
        report = await reader.service.tickets.report(ticket.id)
        assert report is not None
        assert (report.mode_snapshot["no_mcp"], report.mode_snapshot["schema_gate_mode"]) == (True, "strict")


async def test_a_report_says_of_each_step_what_its_story_says(remit_in: OpenRemit) -> None:
    rules = {"policy.rules": [{"effect": "deny", "tools": ["desk.away"]}, {"effect": "allow", "tools": ["desk.look"]}]}
    async with remit_in(tools=TOOLS, flags=rules) as remit:
        steps = [step("desk_look", what="x"), step("desk_break"), step("desk_away"), step("desk_write", text="x")]
        ticket = await tool_ticket(remit, *steps)
        await worked(remit)
        report = await remit.service.tickets.report(ticket.id)
        assert report is not None
        told = {one.step: one for one in (await remit.service.streams.narrative(report.run_id)).steps}
        for done in report.step_reports:
            of_story = told[f"s{done.step_index}"]
            assert done.status == {"waiting": "blocked"}.get(of_story.state, of_story.state)
            assert (done.code or "") == (of_story.code or ("CONFIRMATION_REQUIRED" if of_story.confirmations else ""))
            assert done.started_at == moment(of_story.started_at)
            assert done.evidence_items == of_story.evidence
            if of_story.ended_at is not None:
                assert done.ended_at == moment(of_story.ended_at)
            if done.status == "ok":
                assert done.result_summary == of_story.result_preview
