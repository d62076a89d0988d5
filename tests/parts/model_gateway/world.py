"""A gateway over a journal in memory, before scripted providers on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, TypeVar

import aiohttp
import pytest

from remit import Remit
from remit.clock import SystemClock
from remit.http import server
from remit.http.guard import LOOPBACK, Guard, Token
from remit.http.router import Router
from remit.journal.event import HeadQuery
from remit.journal.kinds import Payload, decode
from remit.parts.model_gateway.wiring import open_mounts
from remit.settings import load
from remit_testing.models import Canned, ModelServer, Received, Streamed
from tests.patience import PATIENCE_S

P = TypeVar("P", bound=Payload)
Answers = Callable[[Received], Streamed | Canned]
KEY: Final = "provider-key"
KEYS: Final = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
QUESTIONS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "chat": (
        "/openai/v1/chat/completions",
        {"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": "hi"}]},
    ),
    "responses": (
        "/openai/v1/responses",
        {"model": "gpt-4o", "stream": True, "input": [{"role": "user", "content": "hi"}]},
    ),
    "messages": (
        "/anthropic/v1/messages",
        {
            "model": "claude-sonnet-4-5",
            "stream": True,
            "max_tokens": 50,
            "messages": [{"role": "user", "content": "hi"}],
        },
    ),
    "gemini": (
        "/gemini/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    ),
}
"""A question on each wire, as path and body."""


class World(NamedTuple):
    """A gateway, its journal and its provider."""

    remit: Remit
    provider: ModelServer
    url: str
    http: aiohttp.ClientSession

    async def ask(self, wire: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Ask a question on a wire; status, headers and body."""
        path, body = QUESTIONS[wire]
        async with self.http.post(self.url + path, json=body, headers=headers) as response:
            names = {name.lower(): value for name, value in response.headers.items()}
            return response.status, names, await response.read()

    async def events(self, kind: type[P]) -> list[P]:
        """Return every event of a kind, in all sessions."""
        journal, found = self.remit.runtime.journal, list[P]()
        await journal.drained()
        for head in await journal.heads(HeadQuery(kind="session", limit=100)):
            for event in await journal.read(head.stream):
                payload = decode(event.kind, event.data)
                if isinstance(payload, kind):
                    found.append(payload)
        return found

    async def until(self, kind: type[P], count: int) -> list[P]:
        """Wait until there are so many events of a kind."""
        journal = self.remit.runtime.journal
        async with asyncio.timeout(PATIENCE_S):
            mark = await journal.heads_changed(0)
            while not (heads := await journal.heads(HeadQuery(kind="session", limit=1))):
                mark = await journal.heads_changed(mark)
            async for _ in self.remit.service.streams.follow(heads[0].stream):
                if len(found := await self.events(kind)) >= count:
                    return found
        return []


@asynccontextmanager
async def world(
    answers: Answers, patch: pytest.MonkeyPatch, *, tokens: tuple[Token, ...] = (), **flags: Any
) -> AsyncIterator[World]:
    """Open a gateway before a provider that answers so; flags have `__` in the place of a dot."""
    for name in KEYS:
        patch.setenv(name, KEY)
    async with ModelServer(answers).listening() as provider:
        urls = {"openai_url": f"{provider.url}/v1", "anthropic_url": provider.url, "google_url": provider.url}
        given = {name.replace("__", "."): value for name, value in flags.items()}
        models = {f"models.{name}": url for name, url in urls.items()}
        settings = load(env={}, flags={"journal.url": ":memory:", **models, **given})
        async with Remit(settings=settings, work=False) as remit, aiohttp.ClientSession() as http:
            guard = Guard(LOOPBACK, tokens, SystemClock())
            router, stop = Router(guard, open_mounts(remit, guard)), asyncio.Event()
            taken = server.listen("127.0.0.1", 0)
            task = asyncio.create_task(server.serve(router, taken, stop))
            try:
                yield World(remit, provider, f"http://127.0.0.1:{taken.getsockname()[1]}", http)
            finally:
                stop.set()
                await task
                taken.close()
