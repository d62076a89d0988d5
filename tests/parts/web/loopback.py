"""A small web on loopback: pages of every kind that the web tools meet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

SENTENCE = "The committee meets on the third of May and decides about the budget. "
ARTICLE = f"""<html lang="en"><head><title>The  budget &amp; more</title></head><body>
<nav><a href="/home">Home</a></nav>
<article><h1>The budget</h1><p>{SENTENCE * 8}</p><p>See <a href="minutes?utm_source=x">the minutes</a>, or
<a href="mailto:ann@e.example">write</a>.</p></article><footer>Imprint</footer></body></html>"""

BASED = f"""<html><head><base href="https://base.example/dir/sub/"></head><body><article><p>{SENTENCE * 8}</p>
<p><a href="../up">Up</a> <a href="/top">Top</a> <a href="p a
th">Path</a></p></article></body></html>"""


class Loopback:
    """Counts requests, and answers by path."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.robots = ""
        self.waits: dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {}
        self.host = ""
        self.pages: dict[str, Callable[[web.Request], web.StreamResponse]] = {
            "/article": lambda _: _html(ARTICLE),
            "/latin": lambda _: web.Response(
                body="<p>caf\u00e9</p>".encode("cp1252"), headers={"content-type": "text/html"}
            ),
            "/meta": lambda _: web.Response(
                body='<meta charset="koi8-r"><p>\u043f\u0440\u0438\u0432\u0435\u0442</p>'.encode("koi8-r"),
                headers={"content-type": "text/html"},
            ),
            "/gb": lambda _: web.Response(
                body="<p>\u9555\u57fa</p>".encode("gbk"), headers={"content-type": "text/html; charset=GB2312"}
            ),
            "/odd": lambda _: web.Response(
                body="<p>caf\u00e9</p>".encode(), headers={"content-type": "text/html; charset=utf8mb4"}
            ),
            "/api": lambda _: web.json_response({"b": 2}, content_type="application/vnd.api+json"),
            "/based": lambda _: _html(BASED),
            "/data": lambda _: web.json_response({"a": 1}),
            "/image": lambda _: web.Response(body=b"\x89PNG", content_type="image/png"),
            "/untyped": lambda _: web.Response(body=b"\0\1\2", headers={"content-type": ""}),
            "/long": lambda _: web.Response(text="word " * 100_000),
            "/forbidden": lambda _: web.Response(status=403),
            "/busy": lambda _: web.Response(status=429),
            "/broken": lambda _: web.Response(status=500),
            "/missing": lambda _: web.Response(status=404),
            "/challenge": lambda _: _html("<title>Just a moment</title><div class='cf-challenge'></div>"),
            "/challenged": lambda _: web.Response(status=403, text="<div id='h-captcha'>", content_type="text/html"),
            "/old": lambda _: web.Response(status=301, headers={"location": "/article"}),
            "/agree": lambda _: web.Response(status=302, headers={"location": "/consent-page"}),
            "/consent-page": lambda _: _html("<p>Before you continue</p><form action='/consent-page'></form>"),
            "/kept": _kept,
            "/stored": lambda _: _html(ARTICLE, etag='"1"', **{"cache-control": "no-store"}),
        }

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request.path)
        if request.path == "/robots.txt":
            return web.Response(text=self.robots)
        if (slow := self.waits.get(request.path)) is not None:
            return await slow(request)
        answer = self.pages.get(request.path)
        return answer(request) if answer is not None else web.Response(status=404)

    def url(self, path: str) -> str:
        """The address of a page."""
        return f"http://{self.host}{path}"

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Loopback]:
        """Answer on a free port."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.host = f"127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()


def _html(text: str, **headers: str) -> web.Response:
    return web.Response(text=text, content_type="text/html", headers=headers)


def _kept(request: web.Request) -> web.StreamResponse:
    if request.headers.get("if-none-match") == '"1"':
        return web.Response(status=304)
    return _html(ARTICLE, etag='"1"')
