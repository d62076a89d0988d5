"""The Python SDK 1.x: `COMMAND [ARG]...`. Lists the tools; then makes each call that a line of stdin names."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    """Print an answer a line."""
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ))
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        print(json.dumps([tool.name for tool in (await session.list_tools()).tools]), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            result = await session.call_tool(*json.loads(line))
            print(json.dumps([result.isError, *(block.text for block in result.content)]), flush=True)


asyncio.run(main())
