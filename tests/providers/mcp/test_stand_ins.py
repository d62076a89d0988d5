"""Without MCP servers their pinned tools are stood in for, and nothing else of theirs can be called."""

from __future__ import annotations

from typing import Any

from remit import Remit
from remit.codes import Code
from remit.gateway.outcome import Outcome
from remit.tools.meta import Level
from remit.tools.pins import Pins
from tests.opened import OpenRemit

READ: dict[str, Any] = {
    "name": "read_note",
    "description": "Read a note.",
    "inputSchema": {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]},
    "outputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
WRITE = {**READ, "name": "Write-Note", "annotations": {"readOnlyHint": False}}
SERVERS = [{"name": "notes", "command": ["/nowhere/at-all"]}, {"name": "unpinned", "command": ["/nowhere/at-all"]}]
FLAGS = {"tools.no_mcp": True, "mcp.servers": SERVERS}


async def pin(remit: Remit, *tools: dict[str, Any]) -> None:
    pins = Pins(remit.runtime.journal, trust=True, principal="alice")
    await pins.record("notes", {each["name"]: each for each in tools}, how="pin")


async def test_pinned_tools_have_stand_ins_under_their_names_and_schemas(remit_in: OpenRemit) -> None:
    async with remit_in(flags=FLAGS, work=False) as remit:
        await pin(remit, READ, WRITE)
        found = {tool.name: tool for tool in await remit.service.tools.views() if tool.name.startswith("mcp.")}
        assert sorted(found) == ["mcp.notes.Write-Note", "mcp.notes.read_note"]
        tool = remit.runtime.services.catalog.known("mcp.notes.read_note")
        assert tool is not None
        assert tool.meta.input_schema == READ["inputSchema"]
        assert (tool.meta.provider_id, tool.meta.capability_level) == ("stub", Level.L0)


async def test_a_stand_in_says_the_same_to_the_same_arguments_in_every_process(remit_in: OpenRemit) -> None:
    answers: list[Outcome] = []
    for _ in range(2):
        async with remit_in(flags=FLAGS, work=False) as remit:
            if not answers:
                await pin(remit, READ, WRITE)
            answers += [await remit.call("mcp.notes.Write-Note", {"topic": topic}) for topic in ("tea", "tea", "milk")]
    values = [answer.value for answer in answers]
    assert all(answer.ok for answer in answers)
    assert values[0] == values[1] == values[3] == values[4]
    assert values[2] == values[5] != values[0]
    assert values[0]["tool"] == "mcp.notes.Write-Note"


async def test_a_stand_in_holds_callers_to_the_pinned_schema(remit_in: OpenRemit) -> None:
    async with remit_in(flags=FLAGS, work=False) as remit:
        await pin(remit, READ)
        assert (await remit.call("mcp.notes.read_note", {"topic": 5})).code is Code.INVALID_TOOL_ARGS


async def test_what_is_not_pinned_is_unavailable_and_what_is_no_servers_unknown(remit_in: OpenRemit) -> None:
    async with remit_in(flags=FLAGS, work=False) as remit:
        await pin(remit, READ)
        for name in ("mcp.unpinned.anything", "mcp__unpinned__anything", "unpinned", "mcp.notes.other"):
            outcome = await remit.call(name, {})
            assert outcome.code is Code.MCP_REQUIRED_UNAVAILABLE, name
            assert "turned off by NO_MCP" in outcome.reason
        assert (await remit.call("mcp.never.anything", {})).code is Code.UNKNOWN_TOOL
        snapshot = await remit.service.tools.readiness()
    assert snapshot.degraded
    assert {key: state.code for key, state in snapshot.optional.items()} == dict.fromkeys(
        ("mcp", "mcp.notes", "mcp.unpinned"), "DEP_UNAVAILABLE"
    )


async def test_a_server_that_cannot_start_degrades_and_its_tools_are_unavailable(remit_in: OpenRemit) -> None:
    async with remit_in(flags={"mcp.servers": SERVERS[:1], "readiness.required": ["mcp"]}) as remit:
        before = await remit.service.tools.readiness()
        assert before.required["mcp"].code == "DEP_UNKNOWN", "looking starts nothing"
        outcome = await remit.call("mcp.notes.read_note", {})
        assert outcome.code is Code.MCP_REQUIRED_UNAVAILABLE
        assert "No such file or directory" in outcome.reason
        after = await remit.service.tools.readiness()
    assert after.degraded
    assert after.missing_required == ["mcp"]
    assert after.optional["mcp.notes"].code == "DEP_INIT_FAILED"
