"""The web tools against a web on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from aiohttp import web

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import ProviderError
from remit.parts.web import search
from remit.parts.web.engine import SearchTerms, WebEngine
from remit.parts.web.fetcher import Fetcher
from remit.parts.web.kept import Cooldowns
from remit.parts.web.settings import WebSettings
from remit.parts.web.wiring import WebProvider, open_web
from remit_testing.clock import ManualClock
from remit_testing.providers import PROVIDER_CHECKS, Check, Sample, call_context
from tests.parts.documents.made import pdf
from tests.parts.web.engine import DDG, Engine
from tests.parts.web.loopback import SENTENCE, Loopback

if TYPE_CHECKING:
    from remit.capability import Opening

FAST = SearchTerms(max_bytes=200_000, pause_s=0.0)


@pytest.fixture
async def site() -> AsyncIterator[Loopback]:
    async with Loopback().serve() as site:
        yield site


def over(site: Loopback) -> WebProvider:
    return WebProvider(lambda: WebEngine(Fetcher(private=(site.host,)), SystemClock(), FAST), searches=False)


def searching(engine: WebEngine) -> WebProvider:
    return WebProvider(lambda: engine, searches=True)


@pytest.fixture
async def provider(site: Loopback) -> AsyncIterator[WebProvider]:
    provider = over(site)
    yield provider
    await provider.close()


async def call(provider: Any, tool: str, **args: Any) -> Any:
    return (await provider.invoke(tool, args, call_context())).value


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
async def test_it_keeps_the_promises_of_a_provider(site: Loopback, check: Check) -> None:
    await check(lambda: over(site), Sample("web.fetch", {"url": site.url("/article")}))


async def test_a_page_is_fetched_as_text_with_its_title(site: Loopback, provider: WebProvider) -> None:
    page = await call(provider, "web.fetch", url=site.url("/old"))
    assert (page["status_code"], page["title"], page["final_url"]) == (200, "The budget & more", site.url("/article"))
    assert SENTENCE.strip() in page["text"]
    assert (page["truncated"], page["cache_hit"], page["content_type"]) == (False, False, "text/html")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/latin", "caf\u00e9"),
        ("/meta", "\u043f\u0440\u0438\u0432\u0435\u0442"),
        ("/gb", "\u9555\u57fa"),
        ("/odd", "caf\u00e9"),
        ("/data", '{"a": 1}'),
        ("/api", '{"b": 2}'),
    ],
)
async def test_a_page_is_read_in_its_own_characters(
    site: Loopback, provider: WebProvider, path: str, text: str
) -> None:
    assert (await call(provider, "web.fetch", url=site.url(path)))["text"] == text


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        ("/image", Code.unsupported_content_type),
        ("/untyped", Code.unsupported_content_type),
        ("/forbidden", Code.http_403),
        ("/busy", Code.http_429),
        ("/broken", Code.BadGateway),
        ("/missing", Code.BadGateway),
        ("/challenge", Code.captcha_required),
        ("/challenged", Code.captcha_required),
    ],
)
async def test_what_is_no_page_is_a_coded_failure(
    site: Loopback, provider: WebProvider, path: str, cause: Code
) -> None:
    for tool in ("web.fetch", "web.extract"):
        with pytest.raises(ProviderError) as caught:
            await call(provider, tool, url=site.url(path))
        assert caught.value.cause is cause


async def test_a_cut_page_says_so(site: Loopback, provider: WebProvider) -> None:
    for tool in ("web.fetch", "web.extract"):
        page = await call(provider, tool, url=site.url("/long"))
        assert (page["truncated"], len(page["text"])) == (True, 200_000)
        assert next(iter(page)) == "truncated"  # a preview of the step shows it


@pytest.mark.slow
async def test_the_main_text_is_extracted_with_links_of_the_page(site: Loopback, provider: WebProvider) -> None:
    page = await call(provider, "web.extract", url=site.url("/article"))
    assert (page["method"], page["language"], page["title"]) == ("trafilatura", "en", "The budget & more")
    assert "Imprint" not in page["text"]
    assert page["links"] == [site.url("/home"), site.url("/minutes?utm_source=x")]
    based = await call(provider, "web.extract", url=site.url("/based"))
    assert based["links"] == [
        "https://base.example/dir/up", "https://base.example/top", "https://base.example/dir/sub/p%20ath",
    ]  # fmt: skip
    assert (await call(provider, "web.extract", url=site.url("/agree")))["consent"] is True
    assert (await call(provider, "web.extract", url=site.url("/data")))["method"] == "text"


@pytest.mark.slow
async def test_a_pdf_is_read_with_the_places_of_its_pages(
    site: Loopback, provider: WebProvider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = pdf(["The first page.", "The second one says more."], title="Minutes")
    served = {"/a.pdf": (whole, "application/pdf"), "/b": (whole, "application/octet-stream")}
    served |= {"/bad": (whole[:200], "application/pdf"), "/large": (whole + b" " * 200_000, "application/pdf")}
    for path, (body, kind) in served.items():
        answer = partial(web.Response, body=body, content_type=kind)
        site.pages[path] = lambda _, answer=answer: answer()  # type: ignore[misc] # one for each
    for path in ("/a.pdf", "/b"):
        page = await call(provider, "web.extract", url=site.url(path))
        assert (page["title"], page["method"], page["truncated"]) == ("Minutes", "pdfium", False)
        assert page["text"][page["pages"][1] :] == "The second one says more."
        assert (await call(provider, "web.fetch", url=site.url(path)))["text"] == page["text"]
    for path, cause in (("/bad", Code.parse_failed), ("/large", Code.content_too_large)):
        with pytest.raises(ProviderError) as caught:
            await call(provider, "web.extract", url=site.url(path))
        assert caught.value.cause is cause
    (tmp_path / "pypdfium2.py").write_text("raise ModuleNotFoundError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    bare = over(site)
    with pytest.raises(ProviderError, match=r"remit\[documents\]") as caught:
        await call(bare, "web.extract", url=site.url("/a.pdf"))
    assert caught.value.cause is Code.unsupported_content_type
    await bare.close()


async def test_robots_txt_is_asked_once_and_obeyed(site: Loopback, provider: WebProvider) -> None:
    site.robots = "User-agent: *\nDisallow: /old"
    await call(provider, "web.fetch", url=site.url("/article"))
    with pytest.raises(ProviderError) as caught:
        await call(provider, "web.fetch", url=site.url("/old"))
    assert caught.value.cause is Code.WebBlocked
    assert site.requests == ["/robots.txt", "/article"]


async def test_robots_txt_is_asked_before_a_redirect_is_followed() -> None:
    async with Loopback().serve() as first, Loopback().serve() as other:
        other.robots = "User-agent: *\nDisallow: /article"
        target = other.url("/article")
        first.pages["/away"] = lambda _: web.Response(status=302, headers={"location": target})
        engine = WebEngine(Fetcher(private=(first.host, other.host)), SystemClock(), FAST)
        provider = WebProvider(lambda: engine, searches=False)
        with pytest.raises(ProviderError) as caught:
            await call(provider, "web.fetch", url=first.url("/away"))
        await provider.close()
    assert caught.value.cause is Code.WebBlocked
    assert other.requests == ["/robots.txt"]


async def test_a_path_that_a_redirect_leads_to_is_judged_by_the_same_robots_txt(
    site: Loopback, provider: WebProvider
) -> None:
    site.robots = "User-agent: *\nDisallow: /article"
    with pytest.raises(ProviderError) as caught:
        await call(provider, "web.fetch", url=site.url("/old"))
    assert caught.value.cause is Code.WebBlocked
    assert site.requests == ["/robots.txt", "/old"]


async def test_a_redirect_to_what_a_rule_keeps_from_the_caller_is_not_followed(
    site: Loopback, provider: WebProvider
) -> None:
    def hidden(tool: str, args: dict[str, Any]) -> bool:
        return tool == "web.fetch" and args == {"url": site.url("/article")}

    context = msgspec.structs.replace(call_context(), hidden=hidden)
    with pytest.raises(ProviderError) as caught:
        await provider.invoke("web.fetch", {"url": site.url("/old")}, context)
    assert caught.value.code is Code.POLICY_DENIED
    assert "/article" not in site.requests


async def test_without_a_backend_web_search_is_the_stubs_and_says_how_to_search(journal: Any) -> None:
    opening = cast(
        "Opening", SimpleNamespace(settings=SimpleNamespace(declared={"web": WebSettings()}), journal=journal)
    )
    pages, stub = open_web(opening)
    assert [tool.name for tool in await pages.list_tools()] == ["web.fetch", "web.extract"]
    answer = await call(stub, "web.search", query="x")
    assert answer == await call(stub, "web.search", query="x")
    assert answer["items"][0]["provider"] == "stub"
    assert "WEB_SEARCH_BACKEND" in answer["items"][0]["snippet"]
    await pages.close()


async def test_the_next_backend_is_asked_and_one_that_blocked_is_left_alone(journal: Any, engine: Engine) -> None:
    clock = ManualClock()
    journal.clock = clock
    fetcher = Fetcher(private=(engine.base.removeprefix("http://"),))
    blocked, other = engine.backend("brave"), engine.backend("ddg_html")
    provider = searching(WebEngine(fetcher, clock, FAST, [blocked, other], Cooldowns(journal, 900)))

    engine.says(DDG)
    engine.says({}, 429, path="/res/v1/web/search")
    first = await call(provider, "web.search", query="q")
    assert {item["provider"] for item in first["items"]} == {"ddg_html"}
    assert [item["rank"] for item in first["items"]] == [1, 2]
    await call(provider, "web.search", query="q")
    paths = [path.partition("?")[0] for _, path, _, _ in engine.requests]
    assert paths == ["/res/v1/web/search", "/html/", "/html/"]
    again = searching(WebEngine(fetcher, clock, FAST, [blocked], Cooldowns(journal, 900)))  # another process
    with pytest.raises(ProviderError) as caught:
        await call(again, "web.search", query="q")
    assert (caught.value.cause, getattr(caught.value, "blocked_by", None)) == (Code.WebBlocked, Code.captcha_cooldown)
    clock.advance(901)
    with pytest.raises(ProviderError) as caught:
        await call(again, "web.search", query="q")
    assert getattr(caught.value, "blocked_by", None) is Code.http_429
    await provider.close()


@pytest.mark.parametrize(
    ("name", "headers", "asked", "left_s"),
    [
        ("brave", {"x-ratelimit-reset": "1, 1419704", "x-ratelimit-remaining": "0, 15000"}, 2, 0),
        ("brave", {"x-ratelimit-reset": "1, 1419704", "x-ratelimit-remaining": "1, 0"}, 1, 1_419_704),
        ("serper", {"retry-after": "3"}, 2, 0),
        ("serper", {"retry-after": "60"}, 1, 60),
        ("searxng", {}, 1, 900),
        ("ddg_html", {"retry-after": "3"}, 1, 900),
    ],
)
async def test_a_service_is_asked_again_when_it_says_and_a_page_after_the_long_pause(
    journal: Any, engine: Engine, name: str, headers: dict[str, str], asked: int, left_s: int
) -> None:
    clock = ManualClock()
    journal.clock = clock
    cooldowns = Cooldowns(journal, 900)
    fetcher = Fetcher(private=(engine.base.removeprefix("http://"),))
    provider = searching(WebEngine(fetcher, clock, FAST, [engine.backend(name)], cooldowns))
    good = _good(name)
    engine.answers = lambda _path: (
        web.Response(status=429, headers=headers) if len(engine.requests) == 1 else good  # the first alone is too soon
    )
    searched = asyncio.create_task(call(provider, "web.search", query="q"))
    if asked > 1:
        await clock.until_asleep()
        clock.advance(5)
        assert (await searched)["items"]
    else:
        with pytest.raises(ProviderError):
            await searched
    assert (len(engine.requests), await cooldowns.seconds_left(name)) == (asked, left_s)
    await provider.close()


def _good(name: str) -> web.Response:
    if name == "ddg_html":
        return web.Response(text=DDG, content_type="text/html")
    return web.json_response(
        {"web": {"results": [{"url": "https://a.example/"}]}, "organic": [{"link": "https://a.example/"}]}
    )


async def test_a_page_that_hangs_holds_no_other_of_its_host(site: Loopback, provider: WebProvider) -> None:
    never, arrived = asyncio.Event(), asyncio.Semaphore(0)

    async def hang(_request: web.Request) -> web.StreamResponse:
        arrived.release()
        await never.wait()
        return web.Response()

    site.waits["/hang"] = hang
    slow = [asyncio.create_task(call(provider, "web.fetch", url=site.url("/hang"))) for _ in range(5)]
    for _ in slow:
        await arrived.acquire()
    assert (await call(provider, "web.fetch", url=site.url("/data")))["status_code"] == 200
    never.set()
    await asyncio.gather(*slow)


async def test_several_backends_are_fused_where_that_is_set(journal: Any, engine: Engine) -> None:
    engine.says({"web": {"results": [{"url": "https://a.example/"}]}, "organic": [{"link": "https://a.example/"}]})
    fetcher = Fetcher(private=(engine.base.removeprefix("http://"),))
    backends = [search.brave("k", engine.base), search.serper("k", engine.base)]
    engines = WebEngine(fetcher, SystemClock(), FAST._replace(fuse=True), backends, Cooldowns(journal, 900))
    provider = searching(engines)
    (item,) = (await call(provider, "web.search", query="q"))["items"]
    assert item["provider"] == "brave+serper"
    await provider.close()
