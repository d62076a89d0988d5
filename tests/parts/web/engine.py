"""A search engine on loopback: it answers what it is told to, and keeps what it was asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web

from remit.parts.web import search

DDG = """<html><body><div class="results">
<div class="result result--ad"><a class="result__a" href="https://ad.example/">Buy</a></div>
<div class="result"><h2><a class="result__a"
 href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2Fx%3Futm_source%3Dy&rut=1">A
 title</a></h2><a class="result__snippet">Some <b>words</b></a></div>
<div class="result"><a class="result__a" href="javascript:alert(1)">Bad</a></div>
<div class="result"><a class="result__a" href="https://b.example/">B</a></div></div></body></html>"""


class Engine:
    """A server that answers what it is told to, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: Callable[[str], web.Response] = lambda _path: web.Response(text="")
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.base = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append((request.method, request.path_qs, dict(request.headers), await request.read()))
        return self.answers(request.path)

    def says(self, body: Any, status: int = 200, path: str = "") -> None:
        """Answer so, under one path or all."""
        before = self.answers
        self.answers = lambda asked: _response(body, status) if not path or asked == path else before(asked)

    def backend(self, name: str) -> search.Backend:
        """A backend that asks this engine."""
        return {
            "ddg_html": lambda: search.ddg_html(self.base),
            "searxng": lambda: search.searxng(self.base, "key"),
            "brave": lambda: search.brave("key", self.base),
            "serper": lambda: search.serper("key", self.base),
        }[name]()


def _response(body: Any, status: int) -> web.Response:
    if isinstance(body, str):
        return web.Response(text=body, status=status, content_type="text/html")
    return web.json_response(body, status=status)
