"""A provider of identities that says what a test wants, and a Remit whose people log in there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from remit import Remit
from remit.api.part import Api
from remit.api.table import ROUTES
from remit.clock import SECOND
from remit.http.access import RequestPlaces
from remit.http.guard import Guard
from remit.http.router import PartMount, Router
from remit.http.server import listen, serve
from remit.pages.entry import NOBODY, PROVIDER, ConsoleEntry
from remit.pages.part import ConsolePages
from remit.pages.table import PAGES
from remit.parts.login.part import LoginPart
from remit.parts.login.provider import LoginProvider
from remit.parts.login.sessions import LoginSessions
from remit.parts.login.settings import LoginGrant, LoginSettings
from remit_testing.clock import ManualClock
from tests.http.issuer import NOW_S, Issuer
from tests.pages.conftest import Browser

GRANTS = (LoginGrant(scopes=("read",)), LoginGrant(group="payments", scopes=("read", "decide")))


class Idp(Issuer):
    """Gives ID tokens; the test says which."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: dict[str, Any] = {"groups": ["payments"], "sid": "s1"}
        self.error: tuple[int, dict[str, Any]] | None = None
        """What the token endpoint answers instead."""
        self.more: dict[str, Any] = {"refresh_token": "r1"}
        self.nonce = ""

    async def _token(self, request: Request) -> Response:
        self.forms.append({name: str(value) for name, value in (await request.form()).items()})
        if self.error is not None:
            return JSONResponse(self.error[1], status_code=self.error[0])
        claims = {"aud": "remit", "nonce": self.nonce, "iat": NOW_S, "exp": NOW_S + 7_200, **self.claims}
        return JSONResponse({"id_token": self.token(**claims), "access_token": "a1", **self.more})


@pytest.fixture
async def idp() -> AsyncIterator[Idp]:
    async with Idp() as serving:
        serving.metadata = {
            "authorization_endpoint": f"{serving.url}/auth",
            "device_authorization_endpoint": f"{serving.url}/token",
        }
        yield serving


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_S * SECOND)


@pytest.fixture
async def remit(clock: ManualClock) -> AsyncIterator[Remit]:
    async with Remit(":memory:", clock=clock) as opened:
        yield opened


@pytest.fixture
def sessions(remit: Remit, idp: Idp) -> LoginSessions:
    return people_of(remit, idp)


def people_of(remit: Remit, idp: Issuer, grants: tuple[LoginGrant, ...] = GRANTS, **own: Any) -> LoginSessions:
    settings = LoginSettings(issuer=idp.url, client_id="remit", **own)
    return LoginSessions(remit.runtime.journal, LoginProvider(settings, "", remit.clock), grants)


class Person(Browser):
    """Logs in as a browser does, without the pages of the provider."""

    async def begin(self, to: str = "/inbox") -> dict[str, str]:
        """Go to the provider; what it is asked."""
        answer = await self.get(f"{PROVIDER}?to={to}")
        assert answer.status == HTTPStatus.SEE_OTHER, answer.text
        return dict(parse_qsl(urlsplit(answer.headers["location"]).query))

    async def back(self, idp: Idp, state: str, **fields: str) -> Any:
        """Come back from it."""
        query = {"code": "c1", "state": state, "iss": idp.url, **fields}
        async with self.session.get(f"{self.url}{PROVIDER}/callback", params=query, allow_redirects=False) as answer:
            return answer.status, {key.lower(): text for key, text in answer.headers.items()}, await answer.text()

    async def logged_in(self, idp: Idp) -> None:
        asked = await self.begin()
        idp.nonce = asked["nonce"]
        status, headers, text = await self.back(idp, asked["state"])
        assert (status, headers["location"]) == (HTTPStatus.SEE_OTHER, "/inbox"), text

    async def sees(self) -> bool:
        """Return whether the inbox is shown, and not the form to log in."""
        return (await self.get("/inbox")).status == HTTPStatus.OK


@asynccontextmanager
async def serving_people(remit: Remit, sessions: LoginSessions) -> AsyncIterator[Person]:
    """Serve the pages to people; a browser without cookies yet."""

    async def stranger(_headers: Mapping[str, str]) -> Any:
        return NOBODY

    guard = Guard.of("127.0.0.1", (), (), remit.clock, people=sessions)
    entry, places, stop = ConsoleEntry(guard, remit.clock), RequestPlaces(64), asyncio.Event()
    api = Api(remit.service, ROUTES, places)
    mounts = [
        *(PartMount(path, api, None) for path in api.paths),
        PartMount("/", ConsolePages(remit.service, PAGES, entry, places, remit.clock), None, entry.admit),
        PartMount(PROVIDER, LoginPart(sessions, "", remit.clock), None, stranger),
    ]
    with listen("127.0.0.1", 0) as listening:
        running = asyncio.create_task(serve(Router(guard, mounts), listening, stop))

        async def ended() -> None:
            stop.set()
            await asyncio.wait([running])

        try:
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
                yield Person(session, f"http://127.0.0.1:{listening.getsockname()[1]}", ended)
        finally:
            await ended()
        running.result()


@pytest.fixture
async def person(remit: Remit, sessions: LoginSessions) -> AsyncIterator[Person]:
    async with serving_people(remit, sessions) as browser:
        yield browser
