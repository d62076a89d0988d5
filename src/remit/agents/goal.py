"""A goal: the task of an agent, with which model and tools, and within which limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.gateway.asking import OUTPUT
from remit.gateway.spending import Budget
from remit.models.prompt import Sampling
from remit.record.results import LONG_RESULT

CHAT: Final = "chat"
"""Name of the signals by which people say more to an agent at work; the payload is the text."""


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """A task and its limits."""

    task: str
    """The question to the agent; the newest message of its conversation."""
    tools: tuple[str, ...] = ()
    """Full names of tools that it may call, or patterns of them."""
    recipes: tuple[str, ...] = ()
    """Names of recipes that it may run as parts of its job, or patterns of them; never the agent's own."""
    model: str = ""
    """Name of the model; empty: the configured one."""
    instructions: str = ""
    """The system message, if there is no conversation so far."""
    output: Any = None
    """A type or JSON schema that the answer must have the form of."""
    turns: int = 50
    """Answers of the model, at most."""
    calls_per_tool: int | None = None
    """Calls of one tool, at most."""
    wall_s: float | None = None
    """Seconds after which no new turn begins, waiting for people included."""
    budget: Budget = Budget()
    """Tokens, dollars and calls of models, over the whole job."""
    sampling: Sampling = Sampling()
    long_result: int = LONG_RESULT
    """Characters of a tool's result that the model gets at once; it can read on."""
    context_tokens: int | None = None
    """Input tokens from which on older turns are shortened; None: only if the model says that its context is full."""


def admit(given: Mapping[str, Any]) -> None:
    """Refuse a budget in tokens that covers no answer. Raise UsageError (INVALID_BUDGET)."""
    tokens, most = given.get("tokens"), given.get("max_output_tokens") or OUTPUT
    if tokens is not None and tokens <= most:
        why = f"a budget of {tokens} tokens covers no answer of a model, for which {most} are reserved"
        raise UsageError(why, code=Code.INVALID_BUDGET, remedy=f"Give more: {most}, and what the question takes.")
