"""The name of a model: `provider:model`, with the address in place of a provider for servers of your own."""

from __future__ import annotations

from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from remit.errors import UsageError

Provider = Literal["openai", "anthropic", "google", "ollama", "openai-compatible", "scripted"]
PROVIDERS: Final[tuple[Provider, ...]] = (
    "openai",
    "anthropic",
    "google",
    "ollama",
    "openai-compatible",
    "scripted",
)
FORMS: Final = "openai:MODEL, anthropic:MODEL, google:MODEL, ollama:MODEL, openai-compatible:URL#MODEL or scripted:FILE"
_MAX: Final = 512


class ModelName(msgspec.Struct, frozen=True, kw_only=True):
    """A model to ask."""

    provider: Provider
    model: str
    """As its provider names it; for a script, its file."""
    url: str = ""
    """Where an `openai-compatible` server listens; empty for the others."""

    def __str__(self) -> str:
        place = f"{self.url}#{self.model}" if self.url else self.model
        return f"{self.provider}:{place}"

    @property
    def producer(self) -> str:
        """Return who wrote a message, as messages name it."""
        return f"{self.provider}/{self.model}"


def parse(text: str) -> ModelName:
    """The model that a text names. Raises UsageError."""
    provider, colon, rest = text.partition(":")
    known: Provider | None = next((name for name in PROVIDERS if name == provider), None)
    if not colon or not rest or known is None or len(text) > _MAX or not text.isprintable():
        raise UsageError(f"{text[:_MAX]!r} names no model", remedy=f"Write {FORMS}.")
    if known != "openai-compatible":
        return ModelName(provider=known, model=rest)
    url, _, model = rest.partition("#")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None or not model:
        why = f"{text!r} does not name a server and its model"
        raise UsageError(why, remedy="Write openai-compatible:http://host:port/v1#MODEL, without a password in it.")
    return ModelName(provider=known, model=model, url=url.rstrip("/"))
