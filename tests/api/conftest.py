"""A Remit served over HTTP on loopback, and a client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple, TextIO

import aiohttp
import pytest

from remit import Remit
from remit.api.part import Api
from remit.api.route import BODY_S
from remit.api.table import ROUTES
from remit.clock import SystemClock
from remit.http.access import Access, RequestPlaces, Scope
from remit.http.guard import Guard, Token, digest_of
from remit.http.router import AccessLog, PartMount, Router
from remit.http.server import HEAD_S, listen, serve


class Answered(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    json: Any


class Client:
    """Asks the server."""

    def __init__(self, session: aiohttp.ClientSession, url: str, places: RequestPlaces) -> None:
        self.session = session
        self.url = url
        self.places = places

    async def ask(self, method: str, path: str, json: Any = None, **more: Any) -> Answered:
        """One request; `json` is its body."""
        given = {"json": json} if json is not None else {}
        async with self.session.request(method, self.url + path, **given, **more) as response:
            body = await response.read()
            value = await response.json(content_type=None) if "json" in response.content_type else None
            headers = {name.lower(): text for name, text in response.headers.items()}
            return Answered(response.status, headers, body, value)

    async def get(self, path: str, **more: Any) -> Answered:
        return await self.ask("GET", path, **more)

    async def post(self, path: str, json: Any = None, **more: Any) -> Answered:
        return await self.ask("POST", path, json, **more)


Served = Callable[..., AbstractAsyncContextManager[Client]]


@asynccontextmanager
async def _served(
    remit: Remit,
    tokens: Sequence[Token] = (),
    *,
    places: int = 64,
    log: TextIO | None = None,
    counts_warnings: bool = False,
    body_s: float = BODY_S,
    head_s: float = HEAD_S,
) -> AsyncIterator[Client]:
    """Serve a Remit that is open."""
    guard = Guard.of("127.0.0.1", (), tokens, SystemClock())
    stop = asyncio.Event()
    with listen("127.0.0.1", 0) as listening:
        held = RequestPlaces(places)
        api = Api(remit.service, ROUTES, held, counts_warnings=counts_warnings, body_s=body_s)
        router = Router(guard, [PartMount("/", api, None)], AccessLog(log, SystemClock()) if log else None)
        serving = asyncio.create_task(serve(router, listening, stop, head_s=head_s))
        try:
            async with aiohttp.ClientSession() as session:
                yield Client(session, f"http://127.0.0.1:{listening.getsockname()[1]}", held)
        finally:
            stop.set()
            await serving


@pytest.fixture
def served() -> Served:
    return _served


def token(name: str, *scopes: Scope, tools: tuple[str, ...] = ()) -> Token:
    """The token of a client."""
    return Token(digest_of(f"secret-{name}"), Access(name, frozenset(scopes), tools))


def bearer(name: str) -> dict[str, str]:
    """The header that brings it."""
    return {"authorization": f"Bearer secret-{name}"}
