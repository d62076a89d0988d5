"""Pages of a real server on loopback, and everything that must not be reached."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from remit.codes import Code
from remit.parts.web.fetcher import Fetcher, Inflate, WebError, checked, joined, without_tracking

LIMIT = 100_000


async def _page(request: web.Request) -> web.Response:
    kind = request.match_info["kind"]
    text = b"hello " * 1_000
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    bodies = {
        "plain": (text, None),
        "gzip": (gzip.compress(text), "gzip"),
        "members": (gzip.compress(text[:3_000]) + gzip.compress(text[3_000:]), "gzip"),
        "padded": (gzip.compress(text) + b"\0" * 20, "gzip"),
        "zlib": (zlib.compress(text), "deflate"),
        "raw": (deflate.compress(text) + deflate.flush(), "deflate"),
        "bomb": (gzip.compress(b"\0" * 50_000_000), "gzip"),
        "large": (b"x" * 300_000, None),
        "damaged": (b"\x1f\x8b\x08\x00 no gzip at all", "gzip"),
        "brotli": (text, "br"),
    }
    body, encoding = bodies[kind]
    return web.Response(body=body, headers={"content-encoding": encoding} if encoding else {})


async def _redirect(request: web.Request) -> web.Response:
    return web.Response(status=302, headers={"location": request.query["to"]})


async def _silent(_request: web.Request) -> web.StreamResponse:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


@pytest.fixture
async def site() -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/page/{kind}", _page)
    app.router.add_get("/to", _redirect)
    app.router.add_get("/silent", _silent)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    server = web.TCPSite(runner, "127.0.0.1", 0)
    await server.start()
    yield f"127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.fixture
async def fetcher(site: str) -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(private=(site,))
    yield fetcher
    await fetcher.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "gzip", "members", "padded", "zlib", "raw"])
async def test_a_body_is_decoded(site: str, fetcher: Fetcher, kind: str) -> None:
    page = await fetcher.fetch(f"http://{site}/page/{kind}", seconds=60, limit=LIMIT)
    assert (page.status, page.body, page.truncated) == (200, b"hello " * 1_000, False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bomb", "large"])
async def test_the_decoded_size_is_bounded_and_a_cut_is_said(site: str, fetcher: Fetcher, kind: str) -> None:
    page = await fetcher.fetch(f"http://{site}/page/{kind}", seconds=60, limit=LIMIT)
    assert (len(page.body), page.truncated) == (LIMIT, True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["damaged", "brotli"])
async def test_a_body_that_cannot_be_decoded_is_a_fault(site: str, fetcher: Fetcher, kind: str) -> None:
    with pytest.raises(WebError) as caught:
        await fetcher.fetch(f"http://{site}/page/{kind}", seconds=60, limit=LIMIT)
    assert caught.value.cause is Code.parse_failed


@pytest.mark.parametrize(
    ("target", "cause"),
    [
        ("http://127.0.0.1:8080/", Code.ssrf_blocked),
        ("http://[::1]:8080/", Code.ssrf_blocked),
        ("http://[::ffff:7f00:1]/", Code.ssrf_blocked),
        ("http://169.254.169.254/latest/meta-data/", Code.ssrf_blocked),
        ("http://localhost:8080/", Code.ssrf_blocked),
        ("http://0x7f000001/", Code.ssrf_blocked),
        ("http://user:pw@8.8.8.8/", Code.InvalidInput),
        ("file:///etc/passwd", Code.InvalidInput),
        ("gopher://8.8.8.8/", Code.InvalidInput),
        ("http://8.8.8.8:25/", Code.InvalidInput),
    ],
)
async def test_a_redirect_is_judged_like_a_url(site: str, fetcher: Fetcher, target: str, cause: Code) -> None:
    for url in (target, f"http://{site}/to?to={target.replace('&', '%26')}"):
        with pytest.raises(WebError) as caught:
            await fetcher.fetch(url, seconds=60, limit=LIMIT)
        assert caught.value.cause is cause


@pytest.mark.parametrize(
    ("url", "place"), [("http://127.0.0.1:8080/x", "127.0.0.1:8080"), ("https://localhost/x", "localhost:443")]
)
async def test_a_private_address_names_the_setting_that_allows_it(fetcher: Fetcher, url: str, place: str) -> None:
    with pytest.raises(WebError, match=f'put "{place}" into web.private'):
        await fetcher.fetch(url, seconds=60, limit=LIMIT)


@pytest.mark.slow
async def test_redirects_are_followed_and_end(site: str, fetcher: Fetcher) -> None:
    page = await fetcher.fetch(f"http://{site}/to?to=/page/plain", seconds=60, limit=LIMIT)
    assert (page.final_url, page.url) == (f"http://{site}/page/plain", f"http://{site}/to?to=/page/plain")
    with pytest.raises(WebError, match="more than 8 redirects"):
        await fetcher.fetch(f"http://{site}/to?to=", seconds=60, limit=LIMIT)


async def test_one_address_that_is_private_blocks_a_name() -> None:
    async def both(_host: str, _port: int) -> list[str]:
        return ["8.8.8.8", "10.0.0.1"]

    fetcher = Fetcher(resolve=both)
    with pytest.raises(WebError) as caught:
        await fetcher.fetch("http://evil.example/", seconds=60, limit=LIMIT)
    assert caught.value.cause is Code.ssrf_blocked
    await fetcher.close()


async def test_a_name_without_an_address_is_dns_failed() -> None:
    async def none(_host: str, _port: int) -> list[str]:
        raise OSError("no such host")

    fetcher = Fetcher(resolve=none)
    with pytest.raises(WebError) as caught:
        await fetcher.fetch("http://gone.example/", seconds=60, limit=LIMIT)
    assert caught.value.cause is Code.dns_failed
    await fetcher.close()


async def test_one_deadline_holds_for_everything(site: str, fetcher: Fetcher) -> None:
    with pytest.raises(WebError) as caught:
        await fetcher.fetch(f"http://{site}/silent", seconds=0.05, limit=LIMIT)
    assert caught.value.cause is Code.timeout_read


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("HTTP://Example.COM:80/a", "http://example.com/a"),
        ("https://example.com:443/x#frag", "https://example.com/x"),
        ("http://b\u00fccher.example/\u00e4", "http://xn--bcher-kva.example/%C3%A4"),
        ("http://example.com.:8080", "http://example.com:8080/"),
        ("http://[2606:4700::1111]/", "http://[2606:4700::1111]/"),
    ],
)
def test_a_url_is_requested_in_one_form(url: str, form: str) -> None:
    assert checked(url) == form
    assert checked(form) == form


def test_keys_that_track_visitors_are_dropped_and_others_stay() -> None:
    assert without_tracking("http://e.example/?utm_source=a&id=1&fbclid=2") == "http://e.example/?id=1"
    assert without_tracking("http://e.example/?q=a%20b&x") == "http://e.example/?q=a%20b&x"


def test_a_link_is_taken_from_its_page() -> None:
    assert joined("http://e.example/a/b?c", "../d#x") == "http://e.example/d"


def test_inflating_never_yields_more_than_the_limit() -> None:
    inflate = Inflate(1_000)
    bomb = gzip.compress(b"\0" * 10_000_000)
    assert sum(len(inflate.feed(bomb[start : start + 100])) for start in range(0, len(bomb), 100)) == 1_000
