"""The server card: what is said before anyone connects, and to whom."""

from __future__ import annotations

import re

import httpx2
import pytest

from remit.clock import SystemClock
from remit.http.guard import Guard
from remit.http.router import PartMount, Router
from remit.mcp_server.card import PATHS, card_mounts, card_of
from remit.mcp_server.endpoint import Endpoint
from remit.mcp_server.request import PATH
from tests.mcp_server.links import facing, person
from tests.opened import OpenRemit

URL = "https://tools.acme.example/"
HERE = "http://127.0.0.1"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (URL, "example.acme.tools/remit"),
        ("http://127.0.0.1:8321", "127.0.0.1/remit"),
        ("http://[::1]:8321", "--1/remit"),
    ],
)
def test_a_card_names_the_server_and_the_way_to_it(url: str, name: str) -> None:
    card = card_of(url, tokens=True)
    assert card["name"] == name
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", name)
    assert len(card["description"]) <= 100
    (remote,) = card["remotes"]
    assert remote["url"] == url.rstrip("/") + PATH
    assert remote["headers"][0]["isSecret"]
    assert "headers" not in card_of(url, tokens=False)["remotes"][0]


async def test_the_card_needs_no_token_and_everything_else_does(remit_in: OpenRemit) -> None:
    guard = Guard.of("127.0.0.1", [], [person("ann")], SystemClock())
    async with remit_in() as remit, facing(remit) as face:
        app = Router(guard, [PartMount(PATH, Endpoint(face), "call"), *card_mounts(URL, tokens=True)])
        transport = httpx2.ASGITransport(app)
        async with app.running(), httpx2.AsyncClient(transport=transport, base_url=HERE) as client:
            for path in (*PATHS, "/.well-known/mcp/server-card.json"):
                got = await client.get(path)
                assert (got.status_code, got.headers["content-type"]) == (200, "application/mcp-server-card+json")
                assert got.json() == card_of(URL, tokens=True)
            assert (await client.head(PATHS[0])).content == b""
            assert (await client.post(PATHS[0])).status_code == 405
            assert (await client.get(f"{PATHS[0]}/other")).status_code == 404
            assert (await client.get(PATHS[0], headers={"host": "evil.example"})).status_code >= 400
            assert (await client.post(PATH, json={})).status_code == 401


def test_without_a_public_url_there_is_no_card() -> None:
    assert card_mounts("", tokens=False) == []
