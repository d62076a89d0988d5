"""The section `[models]`."""

from __future__ import annotations

from typing import Annotated

import msgspec

from remit.settings.section import About, Count, Seconds, Section, Tables


class ModelSettings(Section, frozen=True):
    """Which models are asked, where, and for how much."""

    default: Annotated[
        str,
        About("The model that is asked if nothing else is named, such as `openai:MODEL`.", env=("REMIT_MODEL",)),
    ] = ""
    openai_url: Annotated[str, About("Where OpenAI's wires are asked.", env=("OPENAI_BASE_URL",))] = (
        "https://api.openai.com/v1"
    )
    anthropic_url: Annotated[str, About("Where Anthropic's wire is asked.", env=("ANTHROPIC_BASE_URL",))] = (
        "https://api.anthropic.com"
    )
    google_url: Annotated[str, About("Where Google's wire is asked.")] = "https://generativelanguage.googleapis.com"
    ollama_url: Annotated[str, About("Where Ollama is asked.")] = "http://127.0.0.1:11434/v1"
    patience_seconds: Annotated[Seconds, About("How long an answer may be silent before it counts as cut.")] = 120
    at_once: Annotated[Count, About("Requests under way at the same time, for each model and key.")] = 64
    day_tokens: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=2**50)],
        About("Tokens that each principal may spend in a day (UTC), over all jobs; 0: no limit."),
    ] = 0
    day_cents: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=2**40)],
        About("US cents that each principal may spend in a day (UTC), over all jobs; 0: no limit."),
    ] = 0
    prices: Annotated[
        Tables,
        About("Prices of your own, one `[[models.prices]]` table each. A JSON array in the environment."),
    ] = ()
