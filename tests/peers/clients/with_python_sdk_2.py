"""The Python SDK 2.x: `COMMAND [ARG]...`. Lists the tools; then makes each call that a line of stdin names."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters


async def main() -> None:
    """Print an answer a line."""
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ))
    async with Client(server) as client:
        print(json.dumps([tool.name for tool in (await client.list_tools()).tools]), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            result = await client.call_tool(*json.loads(line))
            print(json.dumps([result.is_error, *(block.text for block in result.content)]), flush=True)


asyncio.run(main())
