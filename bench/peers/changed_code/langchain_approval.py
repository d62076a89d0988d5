"""LangChain's agent with `HumanInTheLoopMiddleware`: shows the question, approves the call, counts how often it ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

_ran: list[int] = []


@tool
def refund(cents: int) -> str:
    """Refund a customer."""
    _ran.append(cents)
    return "refunded"


class _Scripted(GenericFakeChatModel):
    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        """Offer no tools: what it answers is fixed."""
        del tools
        return self


def main() -> None:
    """Run the agent up to its question, look, approve, look again."""
    call = ToolCall(name="refund", args={"cents": 5}, id="call-1")
    model = _Scripted(messages=iter([AIMessage(content="", tool_calls=[call]), AIMessage(content="done")]))
    approval = HumanInTheLoopMiddleware(interrupt_on={"refund": True})
    agent: Any = create_agent(model, [refund], middleware=[approval], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "run"}}
    waiting = agent.invoke({"messages": [("user", "refund 5 cents")]}, config)
    question = waiting["__interrupt__"][0].value
    print(f"it asks: {question['action_requests']}")
    print(f"answers: {[entry['allowed_decisions'] for entry in question['review_configs']]}")
    print(f"ran before the answer: {_ran}")
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    print(f"ran after the approval: {_ran}")


if __name__ == "__main__":
    main()
