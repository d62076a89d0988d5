"""What a client is offered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from remit import tool
from remit.mcp_server import offer
from remit.mcp_server.offer import OwnNames
from remit.tools.meta import ToolMeta
from tests.mcp_server.links import Link, code_of, facing, raw, sessions, text_of
from tests.mcp_server.upstream import Upstream, offered
from tests.opened import OpenRemit

DEFINITION: dict[str, Any] = {
    "name": "search",
    "zeta": {"unknown": [1.0, None]},
    "description": "Finds ünïcode.",
    "inputSchema": {
        "type": "object",
        "required": ["q"],
        "x-order": 3,
        "properties": {"q": {"type": "string", "default": "a"}, "a": {"type": "number", "maximum": 1.0}},
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True, "vendorHint": 1},
    "_meta": {"vendor/key": "v"},
}


@tool("text.echo", level="L0")
async def echo(text: str) -> str:
    """Give the text back."""
    return text


@tool("note.write")
async def write(text: str) -> dict[str, str]:
    """Write a note."""
    return {"written": text}


async def raw_list(client: Client) -> list[dict[str, Any]]:
    """`tools/list` as it came, without the SDK's models."""
    return list((await raw(client, "tools/list", {}))["tools"])


async def names(client: Client) -> list[str]:
    return [each["name"] for each in await raw_list(client)]


async def test_the_catalog_is_offered_under_wire_names_in_order(remit_in: OpenRemit, link: Link) -> None:
    async with remit_in(tools=[echo, write]) as remit, facing(remit) as face, link.connect(face) as client:
        listed = {each["name"]: each for each in await raw_list(client)}
    assert list(listed) == sorted(listed)
    assert listed["text__echo"]["description"] == "Give the text back."
    assert listed["text__echo"]["inputSchema"] == echo.meta.input_schema
    assert listed["text__echo"]["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert listed["note__write"]["outputSchema"] == write.meta.output_schema
    assert "outputSchema" not in listed["text__echo"]  # clients take objects only


async def test_a_server_s_definition_is_passed_on_as_its_owner_wrote_it(remit_in: OpenRemit, link: Link) -> None:
    far = Upstream(offered(DEFINITION))
    async with remit_in(providers=[far]) as remit, facing(remit) as face, link.connect(face) as client:
        listed = {each["name"]: each for each in await raw_list(client)}
    given = listed["mcp__far__search"]
    # Compared as text: order, 1.0 and what nobody knows are as they were written.
    assert json.dumps(given) == json.dumps({**DEFINITION, "name": "mcp__far__search"})


async def test_a_wrapped_server_s_tools_keep_their_own_names_and_nothing_else_is_offered(
    remit_in: OpenRemit, link: Link
) -> None:
    far = Upstream(offered(DEFINITION))
    async with (
        remit_in(tools=[echo], providers=[far]) as remit,
        facing(remit, names=OwnNames("far")) as face,
        link.connect(face) as client,
    ):
        assert json.dumps(await raw_list(client)) == json.dumps([DEFINITION])
        for hidden in ("text.echo", "text__echo", "fs.read", "folder.search"):
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool(hidden, {"text": "x"})
    (events,) = (await journal_of(remit_in)).values()
    assert [event.KIND for event in events] == ["session_opened", *["gate_refused"] * 4]


async def journal_of(remit_in: OpenRemit) -> Any:
    async with remit_in() as remit:
        return await sessions(remit)


async def test_a_call_that_comes_before_the_first_list_finds_its_tool(remit_in: OpenRemit, link: Link) -> None:
    listed = asyncio.Event()

    class Slow(Upstream):
        async def list_tools(self) -> Sequence[ToolMeta]:
            listed.set()
            await asyncio.sleep(0)  # noqa: TID251 - the list comes a moment later
            return await super().list_tools()

    odd = offered({**DEFINITION, "name": "odd"}, withheld="")
    odd = msgspec.structs.replace(odd, definition={**DEFINITION, "name": "odd.name"}, name="mcp.far.odd-name")
    far = Slow(odd)
    async with (
        remit_in(providers=[far]) as remit,
        facing(remit, names=OwnNames("far")) as face,
        link.connect(face) as client,
    ):
        result = await raw(client, "tools/call", {"name": "odd.name", "arguments": {"q": "x"}})
    assert result["content"] == [{"type": "text", "text": "far"}]


async def test_a_quarantined_tool_is_hidden_and_a_call_is_told_why(remit_in: OpenRemit, link: Link) -> None:
    far = Upstream(offered(DEFINITION, withheld="it changed since far was pinned. See the change: remit mcp diff far"))
    async with remit_in(providers=[far]) as remit, facing(remit) as face, link.connect(face) as client:
        assert "mcp__far__search" not in await names(client)
        refused = await client.call_tool("mcp__far__search", {"q": "x"})
    assert code_of(refused) == "TOOL_QUARANTINED"
    assert "it changed since far was pinned" in text_of(refused)
    assert refused.meta is not None
    assert refused.meta["dev.remit/outcome"]["remedy"] == "See the change: remit mcp diff far"
    assert far.calls == []


async def test_a_forbidden_tool_is_hidden_and_a_call_is_told_why(remit_in: OpenRemit, link: Link) -> None:
    rule = {"id": "no-notes", "effect": "deny", "tools": ["note.*"], "callers": ["mcp:tester"], "reason": "No notes."}
    async with (
        remit_in(tools=[echo, write], flags={"policy.rules": [rule]}) as remit,
        facing(remit) as face,
        facing(remit, principal="other") as others,
        link.connect(face) as client,
        link.connect(others) as other,
    ):
        assert "note__write" not in await names(client)
        assert "note__write" in await names(other)
        refused = await client.call_tool("note__write", {"text": "x"})
    assert code_of(refused) == "POLICY_DENIED"
    assert "No notes." in text_of(refused)


async def test_a_tool_forbidden_for_some_arguments_only_is_offered(remit_in: OpenRemit, link: Link) -> None:
    rule = {"effect": "deny", "tools": ["text.echo"], "when": {"text": {"in": ["x"]}}}
    async with (
        remit_in(tools=[echo], flags={"policy.rules": [rule]}) as remit,
        facing(remit) as face,
        link.connect(face) as client,
    ):
        assert "text__echo" in await names(client)
        assert code_of(await client.call_tool("text__echo", {"text": "x"})) == "POLICY_DENIED"
        assert text_of(await client.call_tool("text__echo", {"text": "y"})) == "y"


@pytest.mark.parametrize("schema", [{"properties": {}}, {"type": ["object"]}, {"anyOf": [{"type": "object"}]}, True])
async def test_an_odd_root_is_left_out_and_the_rest_stays(remit_in: OpenRemit, link: Link, schema: Any) -> None:
    far = Upstream(offered({**DEFINITION, "name": "odd", "inputSchema": schema}), offered(DEFINITION))
    async with remit_in(providers=[far]) as remit, facing(remit) as face, link.connect(face) as client:
        listed = await names(client)
    assert "mcp__far__search" in listed
    assert "mcp__far__odd" not in listed


async def test_a_slow_server_delays_nobody_beyond_patience(
    remit_in: OpenRemit, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offer, "PATIENCE_S", 0.01)
    awake = asyncio.Event()

    class Sleeper(Upstream):
        async def list_tools(self) -> Sequence[ToolMeta]:
            await awake.wait()
            return await super().list_tools()

    far = Sleeper(offered(DEFINITION))
    async with remit_in(tools=[echo], providers=[far]) as remit, facing(remit) as face, link.connect(face) as client:
        early = await names(client)
        assert "text__echo" in early
        assert "mcp__far__search" not in early
        assert text_of(await client.call_tool("text__echo", {"text": "at once"})) == "at once"
        awake.set()
        await remit.runtime.services.catalog.tools()
        assert "mcp__far__search" in await names(client)


async def test_a_list_that_changes_while_it_is_made_is_not_kept(remit_in: OpenRemit, link: Link) -> None:
    second = {**DEFINITION, "name": "second"}

    class Restless(Upstream):
        """Changes while it is listed for the first time."""

        async def list_tools(self) -> Sequence[ToolMeta]:
            before = await super().list_tools()
            if len(before) == 1:
                self.change(*before, offered(second))
            return before

    far = Restless(offered(DEFINITION))
    async with remit_in(providers=[far]) as remit, facing(remit) as face, link.connect(face) as client:
        await names(client)
        assert {"mcp__far__search", "mcp__far__second"} <= set(await names(client))
