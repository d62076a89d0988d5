"""The section `[models]`."""

from typing import Annotated

import msgspec

from remit.settings.address import url_or_empty
from remit.settings.section import About, Count, Millis, Seconds, Section, Tables


class ModelSettings(Section, frozen=True):
    """Which models are asked, where, and for how much."""

    default: Annotated[
        str,
        About("The model to use if none is named, such as `openai:MODEL`.", env=("REMIT_MODEL",)),
    ] = ""
    openai_url: Annotated[
        str, About("The base URL of OpenAI's API.", env=("OPENAI_BASE_URL",), resolve=url_or_empty)
    ] = "https://api.openai.com/v1"
    anthropic_url: Annotated[
        str, About("The base URL of Anthropic's API.", env=("ANTHROPIC_BASE_URL",), resolve=url_or_empty)
    ] = "https://api.anthropic.com"
    google_url: Annotated[str, About("The base URL of Google's API.", resolve=url_or_empty)] = (
        "https://generativelanguage.googleapis.com"
    )
    ollama_url: Annotated[str, About("The base URL of Ollama.", resolve=url_or_empty)] = "http://127.0.0.1:11434/v1"
    patience_seconds: Annotated[
        Seconds, About("Seconds that a model may send nothing before its answer counts as cut off.")
    ] = 120
    at_once: Annotated[Count, About("Concurrent requests, for each model and key.")] = 64
    attempts: Annotated[
        Count,
        About(
            "How often a question is asked in all, if the provider fails or is away. Deaths of workers do not count."
        ),
    ] = 12
    first_pause_ms: Annotated[
        Millis, About("Milliseconds before a question is asked again; each further pause is twice as long.")
    ] = 500
    longest_pause_seconds: Annotated[
        Seconds, About("Seconds that such a pause takes at most, unless the provider names a longer one.")
    ] = 60
    day_tokens: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=2**50)],
        About("Tokens that each principal may use in a day (UTC), over all jobs; 0: no limit."),
    ] = 0
    day_cents: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=2**40)],
        About("US cents that each principal may spend in a day (UTC), over all jobs; 0: no limit."),
    ] = 0
    prices: Annotated[
        Tables,
        About("Prices of your own, one `[[models.prices]]` table each. A JSON array in the environment."),
    ] = ()
