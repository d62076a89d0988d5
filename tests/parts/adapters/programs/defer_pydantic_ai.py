"""An agent of pydantic-ai that ends its run where a person has to approve, and goes on once that is done."""

from __future__ import annotations

import asyncio
import json

from desk import desk
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults

from remit.parts.adapters.pydantic_ai import RemitToolset


async def main() -> None:
    """Run the agent until it is deferred, approve, and go on."""
    async with desk(approve=False) as remit:
        toolset = RemitToolset(remit, ["desk.*"], patience_s=0)
        agent = Agent("openai-chat:gpt", toolsets=[toolset], output_type=[str, DeferredToolRequests])
        first = await agent.run("Go.", conversation_id="order-17")
        assert isinstance(first.output, DeferredToolRequests)
        (call,) = first.output.approvals
        confirmation = first.output.metadata[call.tool_call_id]["confirmation"]
        await remit.service.confirmations.decide(confirmation, "approve", by="bob")
        given = DeferredToolResults(approvals={call.tool_call_id: True})
        second = await agent.run(message_history=first.all_messages(), deferred_tool_results=given)
        print(json.dumps({"deferred": call.tool_call_id, "answer": second.output}))


asyncio.run(main())
