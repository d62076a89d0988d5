"""Rules of robots files as RFC 9309 reads them, and the pace of requests."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from remit.clock import SECOND
from remit.codes import Code
from remit.parts.web.fetcher import Fetcher, WebError
from remit.parts.web.robots import Pace, Robots, parse
from remit_testing.clock import ManualClock


@pytest.mark.parametrize(
    ("robots", "path", "allowed"),
    [
        ("", "/a", True),
        ("User-agent: *\nDisallow: /", "/a", False),
        ("User-agent: *\nDisallow:", "/a", True),
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True),
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/c", False),
        ("User-agent: other\nDisallow: /\n\nUser-agent: *\nAllow: /", "/a", True),
        ("User-agent: remit\nDisallow: /x\n\nUser-agent: *\nDisallow: /", "/y", True),
        ("User-agent: remit\nDisallow: /x\n\nUser-agent: *\nDisallow: /", "/x", False),
        ("User-agent: *\nNoindex: /q\nDisallow: /p", "/p", False),
        ("\ufeffUser-agent: *\nDisallow: /p", "/p", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/x.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/x.pdf?a", True),
        ("<html>not a robots file</html>", "/a", True),
    ],
)
def test_rules(robots: str, path: str, *, allowed: bool) -> None:
    assert parse(robots.encode(), 0).allows(f"http://e.example{path}") is allowed


def test_a_pause_that_a_site_asks_for_is_bounded() -> None:
    assert parse(b"User-agent: *\nCrawl-delay: 2", 0).pause_s == 2
    assert parse(b"User-agent: *\nCrawl-delay: 86400", 0).pause_s == 30


class Site:
    def __init__(self) -> None:
        self.status, self.text, self.asked, self.base = 200, "", 0, ""

    async def robots(self, _request: web.Request) -> web.Response:
        self.asked += 1
        return web.Response(status=self.status, text=self.text)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    app = web.Application()
    app.router.add_get("/robots.txt", site.robots)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    site.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield site
    await runner.cleanup()


@pytest.mark.parametrize(("status", "allowed"), [(200, True), (404, True), (403, True), (500, False), (503, False)])
async def test_a_missing_file_allows_and_a_failing_server_forbids(site: Site, status: int, *, allowed: bool) -> None:
    site.status, clock = status, ManualClock()
    fetcher = Fetcher(private=(site.base.removeprefix("http://"),))
    robots = Robots(fetcher, clock)
    for _ in range(2):
        if allowed:
            await robots.check(f"{site.base}/a")
        else:
            with pytest.raises(WebError) as caught:
                await robots.check(f"{site.base}/a")
            assert caught.value.cause is Code.WebBlocked
    assert site.asked == 1
    clock.advance(25 * 3_600)
    site.status = 404
    await robots.check(f"{site.base}/a")
    assert site.asked == 2
    await fetcher.close()


async def test_a_site_that_cannot_be_reached_is_not_said_to_forbid_robots() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens there
        place = f"127.0.0.1:{closed.getsockname()[1]}"
        fetcher = Fetcher(private=(place,))
        robots = Robots(fetcher, ManualClock())
        for base, cause in ((place, Code.connect_failed), ("2130706433", Code.InvalidInput)) * 2:
            with pytest.raises(WebError) as caught:
                await robots.check(f"http://{base}/a")
            assert (caught.value.cause, "robots" in str(caught.value)) == (cause, False)
        await fetcher.close()


async def test_requests_to_one_host_are_a_pause_apart_and_others_are_not() -> None:
    clock = ManualClock()
    pace = Pace(clock, 2.0)
    begun = clock.now()
    async with pace.turn("a.example"):
        pass
    async with pace.turn("b.example"):
        assert clock.now() == begun
    clock.advance(2)
    async with pace.turn("a.example"):
        assert clock.now() - begun == 2 * SECOND
