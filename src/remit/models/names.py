"""The name of a model: `provider:model`, with the address in place of a provider for servers of your own."""

from __future__ import annotations

from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from remit.errors import UsageError
from remit.nearest import did_you_mean
from remit.regex import regex

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
_LATEST: Final = "latest"
_VERSION: Final = regex(
    r"(.+?)[-@](\d{4}-\d{2}-\d{2}|\d{8}|(?:preview-|exp-)?\d{2}-\d{2}|\d{3,4}|v\d+(?::\d+)?|latest)"
)
"""`gpt-4o-2024-08-06`, `claude-3-5-sonnet-20241022`, `gemini-2.5-flash-preview-05-20`, `gemini-1.5-pro-002`."""
_TAG: Final = regex(r"(.+?):([\w.-]+)")
"""`llama3.1:8b`."""


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


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is, told apart (contract: versioning, "Registry")."""

    name: str
    """Name without a version, such as `gpt-4o`."""
    provider: str
    version: str = ""
    """The date, number or tag that the name ends with; empty: it names none, or `latest`."""
    alias: bool = False
    """Whether it names whatever its provider serves under it at the time, such as `…-latest`."""

    def is_same(self, other: ModelInfo) -> bool:
        """Return whether two are the same model as far as their names tell: an alias fits every version of its name."""
        if (self.name, self.provider) != (other.name, other.provider):
            return False
        return self.version == other.version or not (self.version and other.version)


def info_of(provider: str, model: str) -> ModelInfo:
    """Tell name, provider and version of a model apart, as its provider names it."""
    match = (_TAG if provider == "ollama" else _VERSION).fullmatch(model)
    if match is None:
        return ModelInfo(name=model, provider=provider, alias=provider not in {"scripted", "ollama"})
    version = match[2]
    alias = version == _LATEST
    return ModelInfo(name=match[1], provider=provider, version="" if alias else version, alias=alias)


def parse(text: str) -> ModelName:
    """The model that a text names. Raises UsageError."""
    if not text:
        raise UsageError("no model is named", remedy=f"Name one, or set models.default. Write {FORMS}.")
    provider, colon, rest = text.partition(":")
    known: Provider | None = next((name for name in PROVIDERS if name == provider), None)
    if not colon or not rest or known is None or len(text) > _MAX or not text.isprintable():
        meant = did_you_mean(provider, PROVIDERS) if known is None else ""
        raise UsageError(f"{text[:_MAX]!r} names no model", remedy=f"{meant} Write {FORMS}.".lstrip())
    if known != "openai-compatible":
        return ModelName(provider=known, model=rest)
    url, _, model = rest.partition("#")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None or not model:
        reason = f"{text!r} does not name a server and its model"
        raise UsageError(reason, remedy="Write openai-compatible:http://host:port/v1#MODEL, without a password in it.")
    return ModelName(provider=known, model=model, url=url.rstrip("/"))
