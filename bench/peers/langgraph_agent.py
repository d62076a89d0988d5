"""An agent of LangChain on LangGraph's SQLite checkpointer; every step is kept before the next begins."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.peers.program import TURNS, Meter, asked


@tool
def read(number: int) -> int:
    """Give the number back."""
    return number


class Scripted(BaseChatModel):
    """Answers with so many calls, again and again, and then with a text."""

    calls: int

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_options: Any) -> Any:  # noqa: ARG002 - it knows them
        """Make no difference."""
        return self

    def _generate(self, messages: Any, *_arguments: Any, **_options: Any) -> ChatResult:
        turn = sum(isinstance(message, AIMessage) for message in messages)
        numbers = range(turn * self.calls, (turn + 1) * self.calls)
        asked_for = [{"name": "read", "args": {"number": number}, "id": f"call_{number}"} for number in numbers]
        reply = AIMessage("Done.") if turn == TURNS else AIMessage("", tool_calls=asked_for)
        return ChatResult(generations=[ChatGeneration(message=reply)])


def _run(calls: int, folder: Path) -> None:
    saver = SqliteSaver(sqlite3.connect(folder / "langgraph.db", check_same_thread=False))
    agent: Any = create_agent(Scripted(calls=calls), tools=[read], checkpointer=saver)
    question = {"messages": [{"role": "user", "content": "Read."}]}
    meter = Meter()
    for thread in ("warm", "run"):
        if thread == "run":
            meter.start()
        config = {"configurable": {"thread_id": thread}, "recursion_limit": 10 * TURNS}
        agent.invoke(question, config, durability="sync")
    meter.stop(TURNS)


if __name__ == "__main__":
    asked({"agent-1": 1, "agent-3": 3}, _run)
