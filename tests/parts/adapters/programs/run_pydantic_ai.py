"""An agent of pydantic-ai with the tools of a Remit; prints its answer, the tools on offer, and the results."""

from __future__ import annotations

import asyncio
import json
import sys

from desk import desk
from pydantic_ai import Agent
from pydantic_ai.messages import RetryPromptPart, ToolReturnPart

from remit.parts.adapters.pydantic_ai import RemitToolset


async def main(*, approve: bool) -> None:
    """Run the agent once."""
    async with desk(approve=approve) as remit:
        agent = Agent("openai-chat:gpt", toolsets=[RemitToolset(remit, ["desk.*"])])
        result = await agent.run("Go.", conversation_id="order-17")
        parts = [part for message in result.all_messages() for part in message.parts]
        found = [
            [part.tool_call_id, str(part.content)]
            for part in parts
            if isinstance(part, ToolReturnPart | RetryPromptPart) and part.tool_call_id
        ]
        print(json.dumps({"answer": result.output, "results": found}))


asyncio.run(main(approve="approve" in sys.argv))
