"""The recipe conversation: keeps a conversation from elsewhere as a job, to be continued by `remit chat`."""

from __future__ import annotations

from typing import Any

import msgspec

from remit.jobs.recipe import recipe
from remit.jobs.run import Run
from remit.models.openai_messages import from_openai


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
