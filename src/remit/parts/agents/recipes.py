"""The recipes of agents: work with tools under limits, one question to a model, a conversation from elsewhere."""

from __future__ import annotations

from typing import Any

import msgspec

from remit.errors import PayloadErasedError, RunError
from remit.gateway.budget import Budget
from remit.jobs.answers import AgentAnswer
from remit.jobs.recipe import recipe
from remit.jobs.run import Run
from remit.models.message import Message, system, user
from remit.models.openai_messages import from_openai
from remit.models.prompt import Sampling
from remit.models.thread import EMPTY
from remit.parts.agents.loop import AgentLoop, Goal, admit
from remit.parts.agents.skills import taken_up
from remit.record.transcript import EarlierConversation, recall


@recipe("agent", version="1")
async def agent(
    run: Run,
    task: str,
    tools: list[str] | None = None,
    model: str = "",
    instructions: str = "",
    output: dict[str, Any] | None = None,
    turns: int = 50,
    tokens: int | None = None,
    dollars: float | None = None,
    seconds: float | None = None,
    calls_per_tool: int | None = None,
    context_tokens: int | None = None,
    messages: list[dict[str, Any]] | None = None,
    earlier: dict[str, Any] | list[dict[str, Any]] | None = None,
    results: dict[str, str] | None = None,
    recipes: list[str] | None = None,
    skills: list[str] | None = None,
) -> AgentAnswer:
    """Have a model work on `task` with `tools` (names or patterns, also separated by commas) until it has answered.

    It may also run `recipes`, named likewise, as parts of its own job. Under `skills` it may call their tools alone.
    `output` is a JSON schema for the answer. `turns`, `tokens`, `dollars`, `seconds` and `calls_per_tool` bound it.
    `messages` is a conversation to continue, in OpenAI's format. `earlier` refers to one that another job recorded,
    as `remit chat` does; jobs of older versions hold its messages, and in `results` those that are cut in it, whole.
    """
    goal = Goal(
        task=task,
        tools=_patterns(tools),
        recipes=_patterns(recipes),
        model=model,
        instructions=instructions,
        output=output,
        turns=turns,
        calls_per_tool=calls_per_tool,
        wall_s=seconds,
        budget=Budget(tokens=tokens, cost=dollars),
        context_tokens=context_tokens,
    )
    if isinstance(earlier, dict):
        named = msgspec.convert(earlier, EarlierConversation)
        try:
            before, whole = await recall(run.journal, named)
        except PayloadErasedError as error:  # forever: nothing is gained by waiting
            raise RunError(error.message, code=error.code, remedy="Start a new conversation.") from error
        run.adopt(named.tip, named.job)
        return await AgentLoop(run, goal, before.add(*named.more), whole, await taken_up(run, _patterns(skills))).run()
    messages_given = [msgspec.convert(message, Message) for message in earlier or ()] or from_openai(messages or [])
    return await AgentLoop(
        run, goal, EMPTY.add(*messages_given), results or {}, await taken_up(run, _patterns(skills))
    ).run()


agent.admits = admit


def _patterns(entries: list[str] | None) -> tuple[str, ...]:
    return tuple(name.strip() for entry in entries or () for name in entry.split(",") if name.strip())


@recipe("ask_model", version="1")
async def ask_model(
    run: Run,
    prompt: str,
    model: str = "",
    instructions: str = "",
    output: dict[str, Any] | None = None,
    temperature: float | None = None,
    max_output_tokens: int | None = None,
    tokens: int | None = None,
    dollars: float | None = None,
) -> Any:
    """Ask a model `prompt` and return the text of its answer, or its value if `output` is a JSON schema for it."""
    thread = EMPTY.add(*([system(instructions)] if instructions else []), user(prompt))
    answer = await run.model(
        thread,
        model=model,
        output=output,
        sampling=Sampling(temperature=temperature, max_output_tokens=max_output_tokens),
        budget=Budget(tokens=tokens, cost=dollars),
    )
    return answer.text if output is None else answer.value


ask_model.admits = admit


class KeptConversation(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken in: the conversation, and what the agent that continues it is given."""

    messages: int
    tools: tuple[str, ...]
    model: str
    turns: int
    tokens: int | None
    dollars: float | None


@recipe("conversation", version="1")
async def conversation(
    run: Run,  # noqa: ARG001 - nothing is done: the conversation is in the job's input
    messages: list[dict[str, Any]],
    tools: list[str] | None = None,
    model: str = "",
    turns: int = 50,
    tokens: int | None = None,
    dollars: float | None = None,
) -> KeptConversation:
    """Keep a conversation in OpenAI's message format.

    The agent that continues it gets `tools` and `model`, and the limits `turns`, `tokens` and `dollars`.
    """
    messages_read = from_openai(messages)
    return KeptConversation(
        messages=len(messages_read), tools=tuple(tools or ()), model=model, turns=turns, tokens=tokens, dollars=dollars
    )
