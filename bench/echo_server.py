"""A bare server of the official SDK: `python bench/echo_server.py [--http] [DELAY_S]`; over HTTP it prints its URL."""

from __future__ import annotations

import asyncio
import socket
import sys
import time

import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def listed(_ctx: ServerRequestContext, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    """The one tool."""
    return types.ListToolsResult(tools=[types.Tool(name="echo", description="Says it again.", input_schema=SCHEMA)])


async def called(_ctx: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
    """What was said."""
    text = (params.arguments or {})["text"]
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


SERVER = Server("echo", on_list_tools=listed, on_call_tool=called)


async def serve_stdio() -> None:
    """Serve one client."""
    async with stdio_server() as (reading, writing):
        await SERVER.run(reading, writing, SERVER.create_initialization_options())


def serve_http() -> None:
    """Serve many."""
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    app = SERVER.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    delays = [word for word in sys.argv[1:] if word != "--http"]
    if delays:
        time.sleep(float(delays[0]))  # noqa: TID251 - a server that is slow to start
    if "--http" in sys.argv:
        serve_http()
    else:
        asyncio.run(serve_stdio())
