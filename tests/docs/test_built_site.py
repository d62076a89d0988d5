"""The site as `make docs` built it: what a reader sees of it, and what a program reads of it."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterator
from functools import cache
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urldefrag

import lxml.html
import pytest
from playwright.async_api import expect

from tests.pages.browsing import browsing, window

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build/site"
NAMES = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))
UNREAD = ("script", "style", "pre", "code", "svg")
"""Elements whose text is no prose."""
RENDERED = ["start", "approvals", "comparison"]
"""Pages that a browser draws in light and dark: the first day, and wide tables."""
PALE = ("color-contrast", "link-in-text-block")
"""Rules of axe-core on what can be seen."""

pytestmark = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="needs build/site: `make docs` builds it")


class Reading(NamedTuple):
    """What a test asks of a page: its prose, its anchors, and where it leads."""

    prose: str
    ids: frozenset[str]
    links: tuple[str, ...]
    loads: tuple[str, ...]


@cache
def reading(name: str) -> Reading:
    tree = lxml.html.fromstring((SITE / f"{name}.html").read_bytes())
    return Reading(
        "".join(tree.xpath(f"//body//text()[not({' or '.join(f'ancestor::{tag}' for tag in UNREAD)})]")),
        frozenset(tree.xpath("//@id | //@name")),
        tuple(tree.xpath("//a/@href")),
        tuple(tree.xpath("//@src | //link[@rel='stylesheet' or @rel='alternate' or @rel='icon']/@href")),
    )


def test_it_has_every_page_and_the_markdown_of_each_beside_it() -> None:
    assert [name for name in NAMES if not (SITE / f"{name}.html").is_file()] == []
    assert [name for name in NAMES if not (SITE / f"{name}.md").read_text(encoding="utf-8").startswith("# ")] == []
    assert [name for name in NAMES if f"{name}.md" not in reading(name).loads] == []


def test_the_list_for_programs_has_every_page_with_a_summary() -> None:
    lines = (SITE / "llms.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Remit"
    assert sorted(line.partition("](")[2].partition(".md): ")[0] for line in lines if line.startswith("- [")) == [
        name for name in NAMES if name != "index"
    ]


@pytest.mark.parametrize("name", NAMES)
def test_no_markdown_is_left_in_the_prose_of_a_page(name: str) -> None:
    prose = reading(name).prose
    assert [mark for mark in ("```", "](", "**", "|---", "| |", "<!--") if mark in prose] == []
    assert re.findall(r"^\s*(?:\||- |\d+\. ).*", prose, re.MULTILINE) == []


@pytest.mark.parametrize("name", NAMES)
def test_no_link_of_a_page_is_dead(name: str) -> None:
    dead = []
    for link in reading(name).links:
        path, anchor = urldefrag(unquote(link))
        if "://" in path or path.startswith("mailto:"):
            continue
        target = SITE / path if path and path != "." else SITE / f"{name}.html"
        missing = anchor and target.suffix == ".html" and anchor not in reading(target.stem).ids
        if not target.exists() or missing:
            dead.append(link)
    assert dead == []


@pytest.mark.parametrize("name", NAMES)
def test_a_page_loads_what_the_site_holds_and_nothing_from_elsewhere(name: str) -> None:
    loads = [load.partition("?")[0] for load in reading(name).loads]
    assert [load for load in loads if "://" in load or not (SITE / load).is_file()] == []


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve the site on loopback: the search needs a server."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the library
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(SITE))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
async def test_no_page_is_wider_than_a_phone(address: str) -> None:
    wide = []
    async with browsing() as browser, window(browser, address, viewport={"width": 390, "height": 800}) as shown:
        for name in NAMES:
            await shown.open(f"/{name}.html")
            if await shown.width() > 390:
                wide.append(name)
    assert wide == []


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "palette"), [("light", "default"), ("dark", "slate")])
async def test_a_page_can_be_read_in_light_and_dark(address: str, scheme: str, palette: str) -> None:
    troubles: list[str] = []
    async with (
        browsing() as browser,
        window(browser, address, color_scheme=scheme, viewport={"width": 1280, "height": 900}) as shown,
    ):
        for name in RENDERED:
            page = await shown.open(f"/{name}.html")
            await expect(page.locator("body")).to_have_attribute("data-md-color-scheme", palette)
            assert await shown.width() <= 1280
            troubles += [f"{name}: {trouble}" for trouble in await shown.troubles() if trouble.startswith(PALE)]
    assert troubles == []


@pytest.mark.slow
async def test_the_search_finds_a_guide_first(address: str) -> None:
    async with browsing() as browser, window(browser, address, viewport={"width": 1280, "height": 900}) as shown:
        page = await shown.open("/index.html")
        await page.locator("input[name=query]").fill("approve")
        hit = page.locator(".md-search-result__link").first
        await expect(hit).to_have_attribute("href", f"{address}/approvals.html")
