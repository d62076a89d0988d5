"""An echo server of the Python SDK: `echo` gives its arguments back."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

ECHO = types.Tool(name="echo", description="Gives its arguments back.", input_schema={"type": "object"})


async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    """One tool."""
    return types.ListToolsResult(tools=[ECHO])


async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """The arguments, as JSON."""
    text = json.dumps(params.arguments, sort_keys=True)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def main() -> None:
    """Serve on stdio."""
    server = Server("echo", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


asyncio.run(main())
