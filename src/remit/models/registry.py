"""The models of this process, made once for each name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from remit.errors import UsageError
from remit.models.names import ModelName, Provider, parse
from remit.models.port import Limiter

if TYPE_CHECKING:
    import aiohttp

    from remit.clock import Clock
    from remit.models.port import Model
    from remit.models.wires.wire import Wire

KEYS: Final[Mapping[Provider, tuple[str, ...]]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "openai-compatible": ("OPENAI_COMPATIBLE_API_KEY",),
}
"""Environment names of each provider's key; the first that is set counts, and no other provider ever gets it."""
_NEEDS_KEY: Final[frozenset[Provider]] = frozenset({"openai", "anthropic", "google"})


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """Where models are asked, and how patiently."""

    openai: str = "https://api.openai.com/v1"
    anthropic: str = "https://api.anthropic.com"
    google: str = "https://generativelanguage.googleapis.com"
    ollama: str = "http://127.0.0.1:11434/v1"
    patience_s: float = 120.0
    """Seconds that an answer may be silent."""
    at_once: int = 64
    """Requests under way at the same time, for each model and key."""


class Models:
    """Models by name."""

    def __init__(self, endpoints: Endpoints, environ: Mapping[str, str], folder: Path, clock: Clock) -> None:
        self._endpoints = endpoints
        self._environ = environ
        self._folder = folder
        self._clock = clock
        self._models: dict[str, Model] = {}
        self._limiters: dict[tuple[str, str, str], Limiter] = {}
        self._client: aiohttp.ClientSession | None = None

    def get(self, name: str) -> Model:
        """The model of a name. Raises UsageError if it is unknown, or its key is missing."""
        model = self._models.get(name)
        if model is None:
            model = self._models[name] = self._made(parse(name))
        return model

    @property
    def opened(self) -> tuple[str, ...]:
        """Names of the models that were asked for so far."""
        return tuple(self._models)

    async def close(self) -> None:
        """Close what is open; may be called twice."""
        models, self._models = list(self._models.values()), {}
        for model in models:
            await model.close()
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _made(self, name: ModelName) -> Model:
        if name.provider == "scripted":
            from remit.models.script import load  # noqa: PLC0415 - only a script needs it

            return load(name, self._folder)
        try:
            from remit.models.remote import RemoteModel, http_client  # noqa: PLC0415 - the extra "models"
        except ModuleNotFoundError as error:
            reason = f"{name} needs the package {error.name}"
            raise UsageError(reason, remedy="Install Remit with its extra: pip install 'remit[models]'.") from error
        key = self._key(name)
        if self._client is None:
            self._client = http_client(self._endpoints.patience_s)
        wire, url = self._wire(name)
        place = (url, name.model, sha256(key.encode()).hexdigest())
        limiter = self._limiters.setdefault(place, Limiter(self._clock, self._endpoints.at_once))
        return RemoteModel(name, wire, url=url, key=key, client=self._client, limiter=limiter, clock=self._clock)

    def _key(self, name: ModelName) -> str:
        names = KEYS.get(name.provider, ())
        key = next((self._environ[variable] for variable in names if self._environ.get(variable)), "")
        if not key and name.provider in _NEEDS_KEY:
            raise UsageError(f"{name} needs an API key", remedy=f"Set {' or '.join(names)} in the environment.")
        return key

    def _wire(self, name: ModelName) -> tuple[Wire, str]:
        makers: dict[Provider, tuple[Callable[[], Wire], str]] = {
            "openai": (_responses, self._endpoints.openai),
            "anthropic": (_anthropic, self._endpoints.anthropic),
            "google": (_gemini, self._endpoints.google),
            "ollama": (lambda: _chat("ollama"), self._endpoints.ollama),
            "openai-compatible": (lambda: _chat("openai-compatible"), name.url),
        }
        make, url = makers[name.provider]
        return make(), url.rstrip("/")


def _responses() -> Wire:
    from remit.models.wires.openai_responses import OpenAIResponses  # noqa: PLC0415 - each only for who uses it

    return OpenAIResponses()


def _anthropic() -> Wire:
    from remit.models.wires.anthropic import AnthropicMessages  # noqa: PLC0415 - the same

    return AnthropicMessages()


def _gemini() -> Wire:
    from remit.models.wires.gemini import Gemini  # noqa: PLC0415 - the same

    return Gemini()


def _chat(provider: str) -> Wire:
    from remit.models.wires.openai_chat import OpenAIChat  # noqa: PLC0415 - the same

    return OpenAIChat(provider, limit_field="max_tokens", strict=False)
