"""Pages that are asked for again only if they changed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from remit.clock import Clock, SystemClock
from remit.codes import Code
from remit.errors import ProviderError
from remit.journal.event import Blob, HeadPatch
from remit.journal.journal import Journal
from remit.journal.sqlite.store import SqliteStore
from remit.parts.web.engine import SearchTerms, WebEngine
from remit.parts.web.fetcher import FetchedPage, Fetcher
from remit.parts.web.kept import KeptPages
from remit.parts.web.kinds import SearchBlocked
from remit.parts.web.wiring import WebProvider
from remit_testing.clock import ManualClock
from remit_testing.providers import call_context
from tests.parts.web.loopback import ARTICLE, Loopback

TERMS = SearchTerms(max_bytes=200_000, pause_s=0.0)


@pytest.fixture
async def site() -> AsyncIterator[Loopback]:
    async with Loopback().serve() as site:
        yield site


@asynccontextmanager
async def opened(place: Path, clock: Clock | None = None) -> AsyncIterator[Journal]:
    clock = clock or SystemClock()
    journal = Journal(SqliteStore(str(place / "journal.db"), clock), clock)
    try:
        yield journal
    finally:
        await journal.close()


@asynccontextmanager
async def reading(journal: Journal, *hosts: str, pages: int = 9, size: int = 1_000_000) -> AsyncIterator[WebProvider]:
    """The tools as another process has them."""
    engine = WebEngine(
        Fetcher(private=hosts), journal.clock, TERMS, pages=KeptPages(journal, pages=pages, size=size, days=7)
    )
    provider = WebProvider(lambda: engine, searches=False)
    try:
        yield provider
    finally:
        await provider.close()


async def hit(provider: WebProvider, url: str, stream: str = "session/s") -> bool:
    context = msgspec.structs.replace(call_context(), stream=stream)
    return bool((await provider.invoke("web.fetch", {"url": url}, context)).value["cache_hit"])


async def bytes_kept(journal: Journal) -> list[bytes]:
    found: list[bytes] = []
    after = ""
    while page := await journal.blobs(after):
        found += [blob.data for blob in page]
        after = page[-1].digest
    return [data for data in found if data]


def page_of(url: str, body: bytes = b"text", cache: str = "") -> FetchedPage:
    return FetchedPage(url=url, final_url=url, status=200, headers={"etag": '"1"', "cache-control": cache}, body=body)


async def test_a_page_is_asked_for_again_only_if_it_changed_after_a_restart_too(site: Loopback, tmp_path: Path) -> None:
    url = site.url("/kept")
    async with opened(tmp_path) as journal, reading(journal, site.host) as first:
        assert [await hit(first, url) for _ in range(2)] == [False, True]
        async with opened(tmp_path) as beside, reading(beside, site.host) as second:
            assert await hit(second, url)
    async with opened(tmp_path) as journal, reading(journal, site.host) as third:
        assert await hit(third, url)
        site.pages["/kept"] = lambda _: web.Response(text="new", content_type="text/html", headers={"etag": '"2"'})
        assert not await hit(third, url)
        value = (await third.invoke("web.fetch", {"url": url}, call_context())).value
        assert (value["text"], value["final_url"]) == ("new", url)


@pytest.mark.parametrize(
    "headers",
    [
        {"cache-control": "no-store"},
        {"cache-control": "max-age=60, Private"},
        {"set-cookie": "a=b"},
        {"vary": "*"},
        {"etag": ""},
    ],
    ids=lambda headers: next(iter(headers)),
)
async def test_what_a_site_means_for_one_reader_is_not_kept(
    journal: Journal, site: Loopback, headers: dict[str, str]
) -> None:
    given = {name: value for name, value in {"etag": '"1"', **headers}.items() if value}
    site.pages["/own"] = lambda _: web.Response(text=ARTICLE, content_type="text/html", headers=given)
    async with reading(journal, site.host) as provider:
        assert [await hit(provider, site.url("/own")) for _ in range(2)] == [False, False]
    assert await bytes_kept(journal) == []


async def test_a_page_that_is_not_to_be_kept_any_more_is_erased(journal: Journal) -> None:
    kept = KeptPages(journal, pages=9, size=10_000, days=7)
    await kept.keep(page_of("https://a.example/"), "session/s")
    assert len(await bytes_kept(journal)) == 1
    await kept.keep(page_of("https://a.example/", cache="private"), "session/s")
    assert await bytes_kept(journal) == []
    assert await kept.find("https://a.example/", 100) is None


async def test_what_is_fetched_about_a_subject_is_not_kept(journal: Journal, site: Loopback) -> None:
    about = journal.writer("job/j", "job")
    blocked = SearchBlocked(cause="http_403", until=1)
    await journal.append(about, blocked, synced=True, patch=HeadPatch(subject="customer-7"))
    async with reading(journal, site.host) as provider:
        before = await bytes_kept(journal)
        assert not await hit(provider, site.url("/kept"), "job/j")
        assert await bytes_kept(journal) == before
        assert not await hit(provider, site.url("/kept"), "job/other")
        assert await hit(provider, site.url("/kept"), "job/j")


async def test_robots_txt_closes_a_page_that_is_kept(journal: Journal, site: Loopback) -> None:
    async with reading(journal, site.host) as first:
        await hit(first, site.url("/kept"))
    site.robots = "User-agent: *\nDisallow: /kept"
    async with reading(journal, site.host) as later:
        with pytest.raises(ProviderError) as caught:
            await hit(later, site.url("/kept"))
    assert caught.value.cause is Code.WebBlocked


async def test_a_redirect_that_leads_elsewhere_now_is_not_taken_for_the_page_that_was_kept(
    journal: Journal, site: Loopback
) -> None:
    def leads_to(path: str) -> Callable[[web.Request], web.StreamResponse]:
        return lambda _: web.Response(status=302, headers={"location": path})

    def tagged(text: str) -> Callable[[web.Request], web.StreamResponse]:
        def answer(request: web.Request) -> web.StreamResponse:
            if request.headers.get("if-none-match") == '"1"':
                return web.Response(status=304)
            return web.Response(text=text, content_type="text/html", headers={"etag": '"1"'})

        return answer

    site.pages |= {"/away": leads_to("/one"), "/one": tagged("one"), "/two": tagged("two")}
    async with reading(journal, site.host) as provider:
        assert [await hit(provider, site.url("/away")) for _ in range(2)] == [False, True]
        site.pages["/away"] = leads_to("/two")
        value = (await provider.invoke("web.fetch", {"url": site.url("/away")}, call_context())).value
    assert (value["text"], value["final_url"], value["cache_hit"]) == ("two", site.url("/two"), False)


async def test_an_answer_that_nobody_asked_for_is_no_page(journal: Journal, site: Loopback) -> None:
    site.pages["/odd"] = lambda _: web.Response(status=304)
    async with reading(journal, site.host) as provider:
        with pytest.raises(ProviderError) as caught:
            await hit(provider, site.url("/odd"))
    assert caught.value.cause is Code.BadGateway


async def test_the_oldest_make_room(journal: Journal) -> None:
    kept = KeptPages(journal, pages=2, size=10_000, days=7)
    urls = [f"https://a.example/{number}" for number in range(4)]
    for url in urls:
        await kept.keep(page_of(url), "session/s")
    assert [await kept.find(url, 100) is not None for url in urls] == [False, False, True, True]
    assert len(await bytes_kept(journal)) == 2
    room = sum(map(len, await bytes_kept(journal))) + 64  # one page is a few bytes longer than another: it has its time
    small = KeptPages(journal, pages=9, size=room, days=7)
    await small.keep(page_of(urls[0]), "session/s")
    assert [await small.find(url, 100) is not None for url in urls] == [True, False, False, True]
    await small.keep(page_of(urls[1], random.Random(1).randbytes(20_000)), "session/s")
    assert await small.find(urls[1], 100_000) is None
    assert len(await bytes_kept(journal)) == 2


async def test_pages_that_are_kept_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    urls = [f"https://a.example/{number}" for number in range(12)]
    async with opened(tmp_path) as one, opened(tmp_path) as other:
        both = [KeptPages(journal, pages=99, size=100_000, days=7) for journal in (one, other)]
        await asyncio.gather(*(both[n % 2].keep(page_of(url), "session/s") for n, url in enumerate(urls)))
        assert all([await both[0].find(url, 100) for url in urls])
        assert len(await bytes_kept(one)) == len(urls)


async def test_a_page_that_expired_or_is_damaged_is_transferred_again(journal: Journal, site: Loopback) -> None:
    clock = ManualClock()
    journal.clock = clock
    async with reading(journal, site.host) as provider:
        url = site.url("/kept")
        assert [await hit(provider, url) for _ in range(2)] == [False, True]
        clock.advance(8 * 24 * 3_600)
        assert await journal.prune() == 1
        assert [await hit(provider, url) for _ in range(2)] == [False, True]
        await journal.put_blobs([Blob(blob.digest, b"") for blob in await journal.blobs()])
        clock.advance(1)
        assert [await hit(provider, url) for _ in range(2)] == [False, True]


async def test_a_page_larger_than_the_limit_of_now_is_transferred_again(journal: Journal) -> None:
    kept = KeptPages(journal, pages=9, size=10_000, days=0)
    await kept.keep(page_of("https://a.example/", b"x" * 500), "session/s")
    assert await kept.find("https://a.example/", 499) is None
    assert await kept.find("https://a.example/", 500) is not None


async def test_a_journal_that_cannot_be_written_costs_no_page(site: Loopback, tmp_path: Path, caplog: Any) -> None:
    async with opened(tmp_path) as journal:
        await journal.close()
        async with reading(journal, site.host) as provider:
            assert not await hit(provider, site.url("/kept"))
    assert "is not kept" in caplog.text
