"""LangChain's tools of a server: `COMMAND [ARG]...`. Lists them; then makes each call that a line of stdin names.

Each call starts the server anew, as its client does unless it is told otherwise.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from langchain_core.tools import ToolException
from langchain_mcp_adapters.client import MultiServerMCPClient


async def main() -> None:
    """Print an answer a line."""
    server = {"transport": "stdio", "command": sys.argv[1], "args": sys.argv[2:], "env": dict(os.environ)}
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"server": server}).get_tools()}
    print(json.dumps(list(tools)), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, arguments = json.loads(line)
        try:
            answer = [False, *(block["text"] for block in await tools[name].ainvoke(arguments))]
        except ToolException as error:
            answer = [True, str(error)]
        print(json.dumps(answer), flush=True)


asyncio.run(main())
