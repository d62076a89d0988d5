"""An agent of pydantic-ai with the tools of a server: `COMMAND [ARG]...`. Prints its last words."""

from __future__ import annotations

import asyncio
import os
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset


async def main() -> None:
    """Run the agent once."""
    server = MCPToolset(StdioTransport(sys.argv[1], sys.argv[2:], env=dict(os.environ)), init_timeout=60)
    agent = Agent("openai-chat:gpt", toolsets=[server])
    async with agent:
        print((await agent.run("write the note")).output)


asyncio.run(main())
