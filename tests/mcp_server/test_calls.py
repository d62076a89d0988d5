"""What comes of a client's calls, and what is recorded of them."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from remit import CallContext, tool
from remit.journal.kinds import GateRefused, SessionOpened, ToolInvocationFinished, ToolInvocationStarted
from remit.mcp_server.offer import OwnNames
from tests.mcp_server.links import Link, code_of, facing, kinds, raw, sessions, text_of
from tests.mcp_server.test_listing import DEFINITION, echo, write
from tests.mcp_server.upstream import Upstream, offered
from tests.opened import OpenRemit


@tool("math.divide", level="L0")
async def divide(a: float, b: float) -> float:
    """Divide."""
    return a / b


@tool("count.up", level="L0")
async def count(to: int, ctx: CallContext) -> int:
    """Report every step."""
    for number in range(1, to + 1):
        ctx.progress(number, to, f"step {number}")
    return to


class Door:
    """A tool that waits, and tells the test when it began and whether it was told to stop."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.open = asyncio.Event()
        self.stopped = asyncio.Event()
        self.inside = 0

        @tool("door.pass", level="L0")
        async def enter() -> str:
            """Wait for the door."""
            self.inside += 1
            self.began.set()
            try:
                await self.open.wait()
            except asyncio.CancelledError:
                self.stopped.set()
                raise
            return "through"

        self.tool = enter


async def test_a_call_that_only_reads_runs_and_its_session_tells_all_of_it(remit_in: OpenRemit, link: Link) -> None:
    info = types.Implementation(name="a-client", version="7")
    async with (
        remit_in(tools=[echo], work=False) as remit,
        facing(remit, transport=link.transport) as face,
        link.connect(face, client_info=info) as client,
    ):
        result = await client.call_tool("text__echo", {"text": "hé"})
        assert (text_of(result), result.is_error) == ("hé", False)
        ((stream, events),) = (await sessions(remit)).items()
        opened, started, finished = events
        report = await remit.service.streams.verify()
    assert isinstance(opened, SessionOpened)
    assert stream == f"session/{opened.session}"
    assert (opened.face, opened.principal, opened.client, opened.client_version, opened.via) == (
        "mcp",
        "tester",
        "a-client",
        "7",
        link.transport,
    )
    assert isinstance(started, ToolInvocationStarted)
    assert isinstance(finished, ToolInvocationFinished)
    assert started.principal == "tester"
    assert result.meta is not None
    assert result.meta["dev.remit/outcome"] == {"invocation": started.invocation_id}
    assert report.ok
    assert report.events == 3


async def test_a_failing_tool_is_an_error_result_with_its_code(remit_in: OpenRemit, link: Link) -> None:
    async with remit_in(tools=[divide]) as remit, facing(remit) as face, link.connect(face) as client:
        failed = await client.call_tool("math__divide", {"a": 1.0, "b": 0.0})
        refused = await client.call_tool("math__divide", {"a": "one", "c": 2})
    assert code_of(failed) == "TOOL_EXEC_FAILED"
    assert "ZeroDivisionError" in text_of(failed)
    assert code_of(refused) == "INVALID_TOOL_ARGS"


async def test_an_unknown_tool_is_a_protocol_error_and_recorded(remit_in: OpenRemit, link: Link) -> None:
    async with remit_in(tools=[echo]) as remit, facing(remit) as face, link.connect(face) as client:
        with pytest.raises(MCPError, match="Unknown tool: text__eco") as raised:
            await client.call_tool("text__eco", {})
        ((_, refused),) = (await sessions(remit)).values()
    assert raised.value.error.code == types.INVALID_PARAMS
    assert raised.value.error.data["code"] == "UNKNOWN_TOOL"
    assert raised.value.error.data["remedy"] == "Did you mean text__echo?"
    assert isinstance(refused, GateRefused)
    assert (refused.tool_name, refused.code, refused.principal) == ("text__eco", "UNKNOWN_TOOL", "tester")


async def test_a_call_of_a_wrapped_server_that_is_down_says_so(remit_in: OpenRemit, link: Link) -> None:
    class Down(Upstream):
        async def list_tools(self) -> Any:
            raise ConnectionError("nobody there")

    async with (
        remit_in(providers=[Down()]) as remit,
        facing(remit, names=OwnNames("far")) as face,
        link.connect(face) as client,
    ):
        down = await client.call_tool("search", {"q": "x"})
    assert code_of(down) == "MCP_REQUIRED_UNAVAILABLE"
    assert "nobody there" in text_of(down)


@pytest.mark.parametrize("params", [{"arguments": {}}, {"name": 7}, {"name": "text__echo", "arguments": [1]}])
async def test_what_is_no_call_is_refused(remit_in: OpenRemit, link: Link, params: dict[str, Any]) -> None:
    async with remit_in(tools=[echo]) as remit, facing(remit) as face, link.connect(face) as client:
        with pytest.raises(MCPError) as raised:
            await raw(client, "tools/call", params)
    # The header that names the tool is no name either, and is looked at first.
    odd_header = link.transport == "http" and link.modern and params.get("name") == 7
    assert raised.value.error.code == (types.HEADER_MISMATCH if odd_header else types.INVALID_PARAMS)


async def test_progress_comes_in_order_and_before_the_answer(remit_in: OpenRemit, link: Link) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with remit_in(tools=[count]) as remit, facing(remit) as face, link.connect(face) as client:
        result = await client.call_tool("count__up", {"to": 50}, progress_callback=progressed)
        seen = len(told)
        await client.list_tools()  # what came after the answer would be here by now
    assert text_of(result) == "50"
    assert told == [(n, 50, f"step {n}") for n in range(1, 51)]
    assert seen >= len(told) - 1  # the client hands notices to tasks of its own


async def test_progress_after_the_answer_is_sent_to_nobody(remit_in: OpenRemit, link: Link) -> None:
    kept: list[CallContext] = []
    told: list[float] = []

    @tool("late.report", level="L0")
    async def late(ctx: CallContext) -> str:
        """Keep the way to report."""
        kept.append(ctx)
        return "done"

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async with remit_in(tools=[late]) as remit, facing(remit) as face, link.connect(face) as client:
        await client.call_tool("late__report", {}, progress_callback=progressed)
        kept[0].progress(1, 2, "too late")
        await client.list_tools()
        await client.list_tools()
    assert told == []


async def test_a_client_that_gives_up_stops_the_tool(remit_in: OpenRemit, link: Link) -> None:
    door = Door()
    async with remit_in(tools=[door.tool, echo]) as remit, facing(remit) as face, link.connect(face) as client:
        call = asyncio.create_task(client.call_tool("door__pass", {}))
        await door.began.wait()
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled()
        await door.stopped.wait()
        assert text_of(await client.call_tool("text__echo", {"text": "still here"})) == "still here"


async def test_calls_of_one_client_run_at_once(remit_in: OpenRemit, link: Link) -> None:
    door = Door()
    async with remit_in(tools=[door.tool, echo]) as remit, facing(remit) as face, link.connect(face) as client:
        waiting = [asyncio.create_task(client.call_tool("door__pass", {})) for _ in range(3)]
        await door.began.wait()
        assert text_of(await client.call_tool("text__echo", {"text": "meanwhile"})) == "meanwhile"
        assert door.inside == 3
        door.open.set()
        assert [text_of(await call) for call in waiting] == ["through"] * 3
        assert (await kinds(remit)).count("session_opened") == 1


async def test_the_outcome_is_durable_before_the_answer_leaves(remit_in: OpenRemit, link: Link) -> None:
    async with remit_in(tools=[echo], work=False) as remit, facing(remit) as face, link.connect(face) as client:
        synced: list[bool] = []
        journal = remit.runtime.journal
        append = journal.append

        async def watched(*args: Any, **given: Any) -> Any:
            synced.append(given.get("synced", True))
            return await append(*args, **given)

        journal.append = watched  # type: ignore[method-assign]
        await client.call_tool("text__echo", {"text": "x"})
    assert synced[-1] is True


async def test_a_call_leads_to_the_server_behind_with_its_trace(remit_in: OpenRemit, link: Link) -> None:
    far = Upstream(offered(DEFINITION))
    async with remit_in(providers=[far], tools=[write]) as remit, facing(remit) as face, link.connect(face) as client:
        await client.call_tool("mcp__far__search", {"q": "x"})
        (events,) = (await sessions(remit)).values()
    assert far.calls == [("mcp.far.search", {"q": "x"})]
    started = events[1]
    assert isinstance(started, ToolInvocationStarted)
    assert started.provider_id == "mcp_far"
