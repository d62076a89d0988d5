"""The SDK's own sessions work over it, and do not know the difference."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import pytest
from mcp.client.session import ClientSession
from mcp.server.connection import Connection
from mcp.server.lowlevel.server import Server
from mcp.server.runner import ServerRunner
from mcp.shared.exceptions import MCPError

from tests.jsonrpc.pair import Side

TOOL = types.Tool(name="add", description="Adds.", input_schema={"type": "object"})


async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[TOOL])


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name != "add":
        raise MCPError(types.INVALID_PARAMS, f"there is no {params.name}")
    args = params.arguments or {}
    await context.session.report_progress(1, 1, "added")
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(args["a"] + args["b"]))])


async def test_a_client_and_a_server_of_the_sdk_talk_over_it() -> None:
    server = Server("adder", on_list_tools=list_tools, on_call_tool=call_tool)
    here, there = Side(), Side(inline=frozenset({"initialize"}))
    here.wire.deliver = there.dispatcher.received
    there.wire.deliver = here.dispatcher.received
    reports: list[Any] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async with server.lifespan(server) as lifespan:
        runner = ServerRunner(server, Connection.for_loop(there.dispatcher), lifespan)
        serving = asyncio.create_task(there.dispatcher.run(runner.on_request, runner.on_notify))
        async with ClientSession(dispatcher=here.dispatcher) as session:
            assert (await session.initialize()).server_info.name == "adder"
            assert (await session.list_tools()).tools == [TOOL]
            result = await session.call_tool("add", {"a": 1, "b": 2}, progress_callback=heard)
            assert result.content == [types.TextContent(type="text", text="3")]
            assert reports == [(1.0, 1.0, "added")]
            with pytest.raises(MCPError, match="there is no sub"):
                await session.call_tool("sub", {})
        there.dispatcher.close("the client has left")
        await serving
