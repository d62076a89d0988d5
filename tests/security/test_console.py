"""Stolen cookies, forms and logins of the console: an answer counts as of the token that logged in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest

from remit import Remit
from tests.opened import OpenRemit, until_waiting
from tests.pages.conftest import Browser, serving, token
from tests.security.test_chained import PAID, buy, pay

pytestmark = pytest.mark.slow
TOKENS = [token("ann", "read", "call", "decide"), token("bob", "read", "decide"), token("eve", "read")]


class Desk:
    """A call that ann's job asks about, and the console."""

    def __init__(self, remit: Remit, browser: Browser, stack: AsyncExitStack, job: str, question: str) -> None:
        self.remit, self.browser, self.job, self.question = remit, browser, job, question
        self._stack = stack

    async def another(self, cookie: str = "") -> Browser:
        """A browser of someone else, with a cookie that they stole."""
        headers = {"cookie": cookie} if cookie else {}
        session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), headers=headers)
        return Browser(await self._stack.enter_async_context(session), self.browser.url, self.browser.stop)

    def cookie(self) -> str:
        """What the browser would send."""
        return "; ".join(f"{one.key}={one.value}" for one in self.browser.session.cookie_jar)

    async def approve(self, browser: Browser, csrf: str) -> int:
        """Send the form; the status."""
        (found,) = await self.remit.service.confirmations.pending()
        fields = [("csrf", csrf), ("digest", found.digest)]
        return (await browser.send(f"/inbox/{self.question}/approve", fields)).status

    async def answers(self) -> int:
        """How many answers count."""
        return len((await self.remit.service.confirmations.answers(self.question)).decisions)


@pytest.fixture
async def desk(remit_in: OpenRemit) -> AsyncIterator[Desk]:
    PAID.clear()

    @asynccontextmanager
    async def opened() -> AsyncIterator[Desk]:
        flags = {"confirm.proof": "token", "app.principal": "ann"}
        async with AsyncExitStack() as stack:
            remit = await stack.enter_async_context(remit_in(tools=[pay], recipes=[buy], flags=flags))
            browser = await stack.enter_async_context(serving(remit, TOKENS))
            job = await remit.start(buy())
            await until_waiting(remit, job.id)
            (question,) = await remit.service.confirmations.pending(job.id)
            yield Desk(remit, browser, stack, job.id, question.confirmation)

    async with opened() as one:
        yield one


async def test_the_login_of_another_principal_approves(desk: Desk) -> None:
    await desk.browser.log_in("secret-bob")
    csrf = (await desk.browser.get(f"/inbox/{desk.question}")).csrf
    assert await desk.approve(desk.browser, csrf) == 303
    assert await desk.remit.job(desk.job) == "paid ann"
    assert PAID == ["ann"]


@pytest.mark.parametrize("who", ["ann", "eve"])
async def test_who_asked_and_who_may_not_decide_cannot(desk: Desk, who: str) -> None:
    await desk.browser.log_in(f"secret-{who}")
    csrf = (await desk.browser.get("/jobs")).csrf
    assert await desk.approve(desk.browser, csrf) in {400, 403, 409}
    assert await desk.answers() == 0
    assert PAID == []


async def test_a_stolen_cookie_alone_answers_nothing(desk: Desk) -> None:
    """Its bearer can read pages until the session ends; a form needs what a page of this process gave."""
    await desk.browser.log_in("secret-bob")
    thief = await desk.another(desk.cookie())
    for csrf in ("", "0" * 64, "f" * 64):
        assert await desk.approve(thief, csrf) == 403
    assert await desk.answers() == 0


async def test_a_stolen_cookie_is_no_token_of_the_api(desk: Desk) -> None:
    await desk.browser.log_in("secret-bob")
    value = desk.cookie().partition("=")[2]
    thief = await desk.another(desk.cookie())
    for headers in ({}, {"authorization": f"Bearer {value}"}, {"authorization": "Bearer"}):
        assert (await thief.get("/v1/confirmations", headers)).status == 401


async def test_a_cookie_ends_with_the_logout_of_its_owner(desk: Desk) -> None:
    await desk.browser.log_in("secret-bob")
    thief = await desk.another(desk.cookie())
    page = await desk.browser.get("/jobs")
    assert (await thief.get("/jobs")).status == 200
    await desk.browser.send("/logout", [("csrf", page.csrf)])
    assert (await thief.get("/jobs")).status == 401
    assert await desk.approve(thief, page.csrf) in {401, 403}
    assert await desk.answers() == 0


async def test_a_cookie_from_before_the_login_is_no_session(desk: Desk) -> None:
    """Planting it beforehand gains nothing (session fixation)."""
    await desk.browser.get("/login")
    planted = desk.cookie()
    await desk.browser.log_in("secret-bob")
    assert desk.cookie() != planted
    assert (await (await desk.another(planted)).get("/jobs")).status == 401


async def test_the_form_of_one_login_is_not_that_of_another(desk: Desk) -> None:
    await desk.browser.log_in("secret-eve")
    eves = (await desk.browser.get("/jobs")).csrf
    await desk.browser.log_in("secret-bob")
    assert await desk.approve(desk.browser, eves) == 403
    assert await desk.answers() == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://127.0.0.1"},
        {"origin": "http://localhost"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://127.0.0.1:1@evil"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"host": "evil.example", "origin": "http://evil.example"},
    ],
)
async def test_a_form_from_elsewhere_answers_nothing(desk: Desk, headers: dict[str, str]) -> None:
    await desk.browser.log_in("secret-bob")
    page = await desk.browser.get(f"/inbox/{desk.question}")
    (found,) = await desk.remit.service.confirmations.pending()
    fields = [("csrf", page.csrf), ("digest", found.digest)]
    got = await desk.browser.send(f"/inbox/{desk.question}/approve", fields, headers)
    assert got.status in {401, 403, 421}
    assert await desk.answers() == 0


@pytest.mark.parametrize("digest", ["", "sha256:" + "0" * 64, "x"])
async def test_an_answer_to_another_call_does_not_count(desk: Desk, digest: str) -> None:
    await desk.browser.log_in("secret-bob")
    page = await desk.browser.get(f"/inbox/{desk.question}")
    got = await desk.browser.send(f"/inbox/{desk.question}/approve", [("csrf", page.csrf), ("digest", digest)])
    assert got.status >= 400
    assert await desk.answers() == 0
