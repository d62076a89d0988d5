"""No way leads a page to this machine or its network: a table of them, each with a place of its own that listens."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from aiohttp import web

from remit.errors import ProviderError
from tests.parts.browser import ways
from tests.parts.browser.conftest import Driver, Open
from tests.parts.browser.site import Site

LET_THROUGH = "image of a script"
NAMES = [*ways.ELEMENTS, *ways.SCRIPTS, *ways.PAGES]


class Canary:
    """Listens where nothing may come."""

    def __init__(self) -> None:
        self.tcp: dict[str, socket.socket] = {}
        self.udp: dict[str, socket.socket] = {}
        for name in NAMES:
            self.tcp[name] = socket.create_server(("127.0.0.1", 0))
            self.udp[name] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.udp[name].bind(self.tcp[name].getsockname())

    @property
    def places(self) -> dict[str, str]:
        return {name: f"127.0.0.1:{one.getsockname()[1]}" for name, one in self.tcp.items()}

    def reached(self) -> list[str]:
        """The ways by which something came."""
        everything = [*self.tcp.items(), *self.udp.items()]
        ready, _, _ = select.select([one for _, one in everything], [], [], 0)
        return sorted({name for name, one in everything if one in ready})

    def close(self) -> None:
        for one in (*self.tcp.values(), *self.udp.values()):
            one.close()


@pytest.fixture
def canary() -> Iterator[Canary]:
    canary = Canary()
    yield canary
    canary.close()


class Hostile(Site):
    """The site, with the pages that try."""

    def __init__(self, places: dict[str, str]) -> None:
        super().__init__()
        self.places = places

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/ways":
            return web.Response(text=ways.page(self.places), content_type="text/html")
        if request.path == "/single":
            name = list(ways.PAGES)[int(request.query["number"])]
            return web.Response(text=ways.single(name, self.places[name]), content_type="text/html")
        if request.path == "/worker.js":
            fetch = f"fetch('{request.query_string}', {{mode: 'no-cors'}})"
            tries = f"self.oninstall = (event) => event.waitUntil({fetch}.catch(() => 0))"
            return web.Response(text=tries, content_type="text/javascript")
        return await super().handle(request)


def test_the_canary_would_see_it(canary: Canary) -> None:
    assert canary.reached() == []
    socket.create_connection(canary.tcp["fetch"].getsockname()).close()
    canary.udp["image"].sendto(b"x", canary.udp["STUN"].getsockname())
    assert canary.reached() == ["STUN", "fetch"]


@pytest.mark.slow
async def test_no_way_leads_out(opened: Open, canary: Canary) -> None:
    async with Hostile(canary.places).serve() as site:
        # One place may be reached, so that the others prove something.
        provider = opened(private=(site.host, canary.places[LET_THROUGH]), hosts=("*",))
        driver = Driver(provider, site, "job/hostile")
        await driver.open("/ways")
        await driver("wait_for", text="all was tried", seconds=30)
        for number in range(len(ways.PAGES)):
            with suppress(ProviderError):  # it had gone elsewhere before it was there
                await driver.open(f"/single?number={number}")
                await driver("wait_for", text="is not an allowed host", seconds=30)
        receipt = (await driver("close"))["receipt"]
        await provider.close()
    refused = {f"{one['host']}:{one['port']}" for one in receipt["connections"] if not one["allowed"]}
    assert canary.reached() == [LET_THROUGH]
    heard = {name for name, place in canary.places.items() if place in refused}
    assert set(NAMES) - heard - ways.QUIET == {LET_THROUGH}
