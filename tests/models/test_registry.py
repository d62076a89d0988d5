from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.clock import SystemClock
from remit.errors import UsageError
from remit.models.prompt import Ask
from remit.models.registry import Endpoints, Models
from remit.models.reply import unwatched
from remit.models.thread import EMPTY
from remit_testing.models import (
    AnthropicSpeech,
    ChatSpeech,
    GeminiSpeech,
    ModelServer,
    Received,
    ResponsesSpeech,
    Scene,
    Speech,
    Streamed,
)

KEYS = {
    "OPENAI_API_KEY": "key-openai",
    "ANTHROPIC_API_KEY": "key-anthropic",
    "GOOGLE_API_KEY": "key-google",
}
SPEECHES: dict[str, Callable[[], Speech]] = {
    "/chat/completions": ChatSpeech,
    "/responses": ResponsesSpeech,
    "/v1/messages": AnthropicSpeech,
    "/v1beta/models/m:streamGenerateContent?alt=sse": GeminiSpeech,
}


def _answer(request: Received) -> Streamed:
    return Streamed(events=SPEECHES[request.path]().events(Scene(text=("hi",))))


@asynccontextmanager
async def _models(tmp_path: Path) -> AsyncIterator[tuple[Models, ModelServer]]:
    async with ModelServer(_answer).listening() as server:
        url = server.url
        endpoints = Endpoints(openai=url, anthropic=url, google=url, ollama=url)
        models = Models(endpoints, KEYS, tmp_path, SystemClock())
        try:
            yield models, server
        finally:
            await models.close()
            await models.close()


async def test_every_provider_gets_its_own_key_and_no_other(tmp_path: Path) -> None:
    async with _models(tmp_path) as (models, server):
        names = ["openai:m", "anthropic:m", "google:m", "ollama:m", f"openai-compatible:{server.url}#m"]
        for name in names:
            model = models.get(name)
            assert (await model.send(model.prepare(Ask(thread=EMPTY)), unwatched)).text == "hi"
        sent = [{value for value in request.headers.values() if "key-" in value} for request in server.received]
    assert sent == [{"Bearer key-openai"}, {"key-anthropic"}, {"key-google"}, set(), set()]


async def test_a_model_is_made_once(tmp_path: Path) -> None:
    async with _models(tmp_path) as (models, _server):
        assert models.get("openai:m") is models.get("openai:m")


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    models = Models(Endpoints(), {}, tmp_path, SystemClock())
    with pytest.raises(UsageError) as caught:
        models.get("google:m")
    assert "GEMINI_API_KEY or GOOGLE_API_KEY" in caught.value.remedy
