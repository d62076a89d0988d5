"""An agent of LangChain on LangGraph with the tools of a Remit; prints its answer and the results."""

from __future__ import annotations

import asyncio
import json
import sys

from desk import desk
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage

from remit.parts.adapters.langgraph import langchain_tools


async def main(*, approve: bool, in_thread: bool) -> None:
    """Run the agent once."""
    async with desk(approve=approve) as remit:
        agent = create_agent("openai:gpt", tools=await langchain_tools(remit, ["desk.*"]))
        question = {"messages": [{"role": "user", "content": "Go."}]}
        config = {"configurable": {"thread_id": "order-17"}}
        if in_thread:
            result = await asyncio.to_thread(agent.invoke, question, config)
        else:
            result = await agent.ainvoke(question, config)
        said = result["messages"]
        found = [[one.tool_call_id, one.content] for one in said if isinstance(one, ToolMessage)]
        print(json.dumps({"answer": said[-1].text, "results": found}))


asyncio.run(main(approve="approve" in sys.argv, in_thread="thread" in sys.argv))
