"""A Remit whose pages are served on loopback, and a browser without a screen: cookies and forms."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser as Chromium

from remit import Remit
from remit.api.part import Api
from remit.api.table import ROUTES
from remit.clock import Clock, SystemClock
from remit.http.access import Access, RequestPlaces, Scope
from remit.http.guard import Guard, Token, digest_of
from remit.http.reader import Reader
from remit.http.router import PartMount, Router
from remit.http.server import listen, serve
from remit.pages.entry import ConsoleEntry
from remit.pages.part import ConsolePages
from remit.pages.table import PAGES
from tests.pages.browsing import browsing


class Got(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""
    text: str

    @property
    def csrf(self) -> str:
        """What the page's forms bring back."""
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', self.text)
        assert found is not None, self.text
        return found[1]


class Browser:
    """Keeps cookies, and sends forms as a browser does."""

    def __init__(self, session: aiohttp.ClientSession, url: str, stop: Callable[[], Awaitable[None]]) -> None:
        self.session = session
        self.url = url
        self.stop = stop
        """Stops the server."""

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Got:
        async with self.session.get(self.url + path, headers=headers, allow_redirects=False) as answer:
            return await _got(answer)

    async def send(self, path: str, fields: Sequence[tuple[str, str]], headers: Mapping[str, str] | None = None) -> Got:
        """Send a form with these fields in this order."""
        given = {"origin": self.url, "sec-fetch-site": "same-origin", **(headers or {})}
        body = aiohttp.FormData(fields)
        async with self.session.post(self.url + path, data=body, headers=given, allow_redirects=False) as answer:
            return await _got(answer)

    async def log_in(self, text: str) -> Got:
        page = await self.get("/login")
        return await self.send("/login", [("csrf", page.csrf), ("token", text), ("to", "/jobs")])


async def _got(answer: aiohttp.ClientResponse) -> Got:
    headers = {name.lower(): text for name, text in answer.headers.items()}
    return Got(answer.status, headers, await answer.text())


Served = Callable[..., AbstractAsyncContextManager[Browser]]


@asynccontextmanager
async def serving(
    remit: Remit,
    tokens: Sequence[Token] = (),
    clock: Clock | None = None,
    *,
    port: int = 0,
    readers: Sequence[Reader] = (),
    beside: Sequence[PartMount] = (),
) -> AsyncIterator[Browser]:
    """Serve the pages and the API of a Remit that is open."""
    clock = clock or SystemClock()
    guard, places, stop = Guard.of("127.0.0.1", (), tokens, clock), RequestPlaces(64), asyncio.Event()
    entry = ConsoleEntry(guard, clock)
    api = Api(remit.service, ROUTES, places, readers=readers)
    mounts = [*(PartMount(path, api, None) for path in api.paths), *beside]
    mounts.append(PartMount("/", ConsolePages(remit.service, PAGES, entry, places, clock, readers), None, entry.admit))
    with listen("127.0.0.1", port) as listening:
        running = asyncio.create_task(serve(Router(guard, mounts), listening, stop))

        async def ended() -> None:
            stop.set()
            await asyncio.wait([running])
            listening.close()

        try:
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
                yield Browser(session, f"http://127.0.0.1:{listening.getsockname()[1]}", ended)
        finally:  # a server that a failed test left would take the number of the next one's socket out of the loop
            await ended()
        running.result()


@pytest.fixture
def served() -> Served:
    return serving


@pytest_asyncio.fixture(loop_scope="module")
async def browser() -> AsyncIterator[Chromium]:
    """Give a real browser to each test: tests that shared one hung now and then."""
    async with browsing() as chromium:
        yield chromium


def token(name: str, *scopes: Scope, expires: int | None = None) -> Token:
    """The token of a client; its text is `secret-NAME`."""
    return Token(digest_of(f"secret-{name}"), Access(name, frozenset(scopes)), expires)
