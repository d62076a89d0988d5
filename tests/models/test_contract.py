from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest

from remit.clock import SystemClock
from remit.models.names import ModelName, parse
from remit.models.port import Limiter, Model
from remit.models.remote import RemoteModel, http_client
from remit.models.wires.anthropic import AnthropicMessages
from remit.models.wires.gemini import Gemini
from remit.models.wires.openai_chat import OpenAIChat
from remit.models.wires.openai_responses import OpenAIResponses
from remit.models.wires.wire import Wire
from remit_testing.models import (
    KEY,
    MODEL_CHECKS,
    AnthropicSpeech,
    ChatSpeech,
    GeminiSpeech,
    ResponsesSpeech,
    Speech,
    Subject,
)
from remit_testing.models.checks import Check, Factory

WIRES: list[tuple[str, Callable[[], Wire], Speech]] = [
    ("openai:m", lambda: OpenAIChat("openai"), ChatSpeech()),
    ("openai:m", OpenAIResponses, ResponsesSpeech()),
    ("anthropic:m", AnthropicMessages, AnthropicSpeech()),
    ("google:m", Gemini, GeminiSpeech()),
]


class _Clients:
    def __init__(self) -> None:
        self.opened: list[aiohttp.ClientSession] = []

    def factory(self, name: ModelName, wire: Wire) -> Factory:
        async def new(url: str, patience_s: float) -> Model:
            clock = SystemClock()
            self.opened.append(http_client(patience_s))
            limiter = Limiter(clock, 8)
            return RemoteModel(name, wire, url=url, key=KEY, client=self.opened[-1], limiter=limiter, clock=clock)

        return new


@pytest.fixture
async def clients() -> AsyncIterator[_Clients]:
    found = _Clients()
    yield found
    for client in found.opened:
        await client.close()


@pytest.mark.parametrize("check", MODEL_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire[2].name)
async def test_every_wire_keeps_the_promises_of_the_port(
    wire: tuple[str, Callable[[], Wire], Speech], check: Check, clients: _Clients
) -> None:
    name, make, speech = wire
    await check(Subject(clients.factory(parse(name), make()), speech))
