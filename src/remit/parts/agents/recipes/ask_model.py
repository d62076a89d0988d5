"""The recipe ask_model: one question to a model, as a job of its own or as a node of a plan."""

from __future__ import annotations

from typing import Any

from remit.gateway.budget import Budget
from remit.jobs.recipe import recipe
from remit.jobs.run import Run
from remit.models.message import system, user
from remit.models.prompt import Sampling
from remit.models.thread import EMPTY
from remit.parts.agents.loop import admit


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
