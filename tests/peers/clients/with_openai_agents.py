"""An agent of the OpenAI Agents SDK with the tools of a server: `COMMAND [ARG]...`. Prints its last words."""

from __future__ import annotations

import asyncio
import os
import sys

from agents import Agent, Runner, set_default_openai_api
from agents.mcp import MCPServerStdio, MCPServerStdioParams


async def main() -> None:
    """Run the agent once."""
    set_default_openai_api("chat_completions")
    command = MCPServerStdioParams(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ))
    async with MCPServerStdio(command, client_session_timeout_seconds=60) as server:
        result = await Runner.run(Agent(name="Notes", model="gpt", mcp_servers=[server]), "write the note")
        print(result.final_output)


asyncio.run(main())
