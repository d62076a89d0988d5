"""A program: an agent of a framework with one tool, asked as its environment says; prints its last words.

python frameworks.py langchain|pydantic-ai|pydantic-ai-responses|openai-agents
"""

from __future__ import annotations

import sys
from typing import Any

TASK = "add one and two"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    sys.stdout.write(f"{a} + {b}\n")
    return a + b


def langchain() -> Any:
    from langchain.agents import create_agent  # noqa: PLC0415 - each run has one framework
    from langchain_openai import ChatOpenAI  # noqa: PLC0415 - the same

    model = ChatOpenAI(model="gpt-4o", max_retries=0)
    ended = create_agent(model, [add]).invoke({"messages": [{"role": "user", "content": TASK}]})
    return ended["messages"][-1].text


def pydantic_ai(wire: str) -> Any:
    from pydantic_ai import Agent  # noqa: PLC0415 - the same

    return Agent(f"{wire}:gpt-4o", tools=[add]).run_sync(TASK).output


def openai_agents() -> Any:
    from agents import Agent, Runner, function_tool  # noqa: PLC0415 - the same

    return Runner.run_sync(Agent(name="sums", model="gpt-4o", tools=[function_tool(add)]), TASK).final_output


if __name__ == "__main__":
    match sys.argv[1]:
        case "langchain":
            told = langchain()
        case "pydantic-ai":
            told = pydantic_ai("openai-chat")
        case "pydantic-ai-responses":
            told = pydantic_ai("openai-responses")
        case _:
            told = openai_agents()
    sys.stdout.write(f"{told}\n")
