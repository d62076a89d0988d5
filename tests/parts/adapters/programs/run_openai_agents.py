"""An agent of the OpenAI Agents SDK with the tools of a Remit; prints its answer and the results."""

from __future__ import annotations

import asyncio
import json
import sys

from agents import Agent, Runner, ToolCallOutputItem, set_default_openai_api
from desk import desk

from remit.parts.adapters.openai_agents import function_tools


async def main(*, approve: bool) -> None:
    """Run the agent once."""
    set_default_openai_api("chat_completions")
    async with desk(approve=approve) as remit:
        tools = await function_tools(remit, ["desk.*"], run="order-17")
        result = await Runner.run(Agent(name="Desk", model="gpt", tools=tools), "Go.")
        found = [
            [item.raw_item["call_id"], item.output] for item in result.new_items if isinstance(item, ToolCallOutputItem)
        ]
        print(json.dumps({"answer": result.final_output, "results": found}))


asyncio.run(main(approve="approve" in sys.argv))
