"""An agent of pydantic-ai without durability, whose model is a function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from bench.peers.program import TURNS, Meter, asked


def model(turns: int, calls: int) -> FunctionModel:
    """Answer with so many calls, so many times, and then with a text."""

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        turn = len(messages) // 2
        if turn == turns:
            return ModelResponse(parts=[TextPart("Done.")])
        numbers = range(turn * calls, (turn + 1) * calls)
        return ModelResponse(parts=[ToolCallPart("read", {"number": number}, f"call_{number}") for number in numbers])

    return FunctionModel(answer)


def read(number: int) -> int:
    """Give the number back."""
    return number


def limits() -> UsageLimits:
    """None."""
    return UsageLimits(request_limit=None)


def agent(calls: int) -> Agent[None, str]:
    """The agent."""
    return Agent(model(TURNS, calls), tools=[read])


def _run(calls: int, _folder: Path) -> None:
    bound_agent: Any = agent(calls)
    meter = Meter()
    bound_agent.run_sync("Read.", usage_limits=limits())
    meter.start()
    bound_agent.run_sync("Read.", usage_limits=limits())
    meter.stop(TURNS)


if __name__ == "__main__":
    asked({"agent-1": 1, "agent-3": 3}, _run)
