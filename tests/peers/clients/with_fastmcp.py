"""The client of fastmcp: `COMMAND [ARG]...`. Lists the tools; then makes each call that a line of stdin names."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main() -> None:
    """Print an answer a line."""
    async with Client(StdioTransport(sys.argv[1], sys.argv[2:], env=dict(os.environ))) as client:
        print(json.dumps([tool.name for tool in await client.list_tools()]), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            result = await client.call_tool(*json.loads(line), raise_on_error=False)
            print(json.dumps([result.is_error, *(block.text for block in result.content)]), flush=True)


asyncio.run(main())
