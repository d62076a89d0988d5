"""Search backends against a real server on loopback, with the forms that engines answer in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit.codes import Code
from remit.files.replacement import Closed
from remit.parts.web import search
from remit.parts.web.fetcher import Fetcher, WebError
from remit.parts.web.search import FolderBackend
from remit.parts.web.settings import WebSettings, backends_of
from remit.parts.web.shapes import Item
from remit.threads import Threads
from tests.parts.web.engine import DDG, Engine

SEARXNG = {"results": [{"title": "A", "url": "https://a.example/", "content": "words"}, {"title": "no url"}, 7]}
BRAVE = {"web": {"results": [{"title": "A", "url": "https://a.example/", "description": "words"}]}}
SERPER = {"organic": [{"title": "A", "link": "https://a.example/", "snippet": "words"}]}
FOUND = [("A", "https://a.example/", "words")]


@pytest.mark.parametrize(
    ("name", "body", "hits"),
    [
        ("ddg_html", DDG, [("A title", "https://a.example/x", "Some words"), ("B", "https://b.example/", "")]),
        ("ddg_html", '<div class="no-results">No results.</div>', []),
        ("searxng", SEARXNG, FOUND),
        ("searxng", {"results": []}, []),
        ("brave", BRAVE, FOUND),
        ("brave", {}, []),
        ("serper", SERPER, FOUND),
    ],
)
async def test_an_answer_is_read(engine: Engine, fetcher: Fetcher, name: str, body: Any, hits: list[Any]) -> None:
    engine.says(body)
    assert await engine.backend(name).ask(fetcher, "a question", 5) == hits


@pytest.mark.parametrize(
    ("name", "body", "status", "cause", "detail"),
    [
        ("ddg_html", "", 202, Code.WebBlocked, Code.captcha_required),
        ("ddg_html", '<form id="challenge-form"></form>', 200, Code.WebBlocked, Code.captcha_required),
        ("ddg_html", "<html>a new design</html>", 200, Code.WebParseError, None),
        ("ddg_html", "", 200, Code.WebParseError, None),
        ("searxng", {"results": [], "unresponsive_engines": [["brave", "timeout"]]}, 200, Code.WebProviderError, None),
        ("searxng", "<html>no json here</html>", 200, Code.WebParseError, None),
        ("searxng", {}, 403, Code.WebBlocked, Code.http_403),
        ("searxng", {"results": "many"}, 200, Code.WebParseError, None),
        ("brave", {}, 429, Code.WebBlocked, Code.http_429),
        ("brave", {}, 401, Code.AuthError, None),
        ("serper", {}, 500, Code.WebProviderError, None),
        ("serper", {}, 302, Code.WebProviderError, None),
    ],
)
async def test_what_blocks_or_fails_is_never_an_empty_list(
    engine: Engine, fetcher: Fetcher, name: str, body: Any, status: int, cause: Code, detail: Code | None
) -> None:
    engine.says(body, status)
    with pytest.raises(WebError) as caught:
        await engine.backend(name).ask(fetcher, "q", 5)
    assert (caught.value.cause, caught.value.blocked_by) == (cause, detail)


async def test_engines_that_did_not_answer_are_named_with_what_searxng_says_of_them(
    engine: Engine, fetcher: Fetcher
) -> None:
    engine.says({"results": [], "unresponsive_engines": [["brave", "CAPTCHA"], ["qwant"], "bing", [], 7]})
    with pytest.raises(WebError, match=r"brave \(CAPTCHA\), qwant, bing, \[\], 7$"):
        await engine.backend("searxng").ask(fetcher, "q", 5)


@pytest.mark.parametrize(
    ("name", "method", "path", "header"),
    [
        ("ddg_html", "GET", "/html/?q=a+b", None),
        ("searxng", "GET", "/search?q=a+b&format=json", ("Authorization", "Bearer key")),
        ("brave", "GET", "/res/v1/web/search?q=a+b&count=3&text_decorations=false", ("X-Subscription-Token", "key")),
        ("serper", "POST", "/search", ("X-API-KEY", "key")),
    ],
)
async def test_an_engine_is_asked_as_its_documentation_says(
    engine: Engine, fetcher: Fetcher, name: str, method: str, path: str, header: tuple[str, str] | None
) -> None:
    engine.says({"searxng": SEARXNG, "brave": BRAVE, "serper": SERPER}.get(name, DDG))
    await engine.backend(name).ask(fetcher, "a b", 3)
    ((was, asked, headers, body),) = engine.requests
    assert (was, asked) == (method, path)
    assert header is None or headers[header[0]] == header[1]
    assert name != "serper" or body == b'{"q":"a b","num":3}'


def test_lists_are_fused_by_rank_and_pages_that_many_name_come_first() -> None:
    def items(provider: str, *urls: str) -> list[Item]:
        return search.items([search.EngineHit(url, url, "") for url in urls], provider)

    best = search.fused([items("a", "x", "y", "z"), items("b", "z", "w")], 3)
    assert [(item.url, item.provider, item.rank) for item in best] == [("z", "a+b", 1), ("x", "a", 2), ("w", "b", 3)]


async def test_a_folder_gives_the_addresses_of_its_files(tmp_path: Path, fetcher: Fetcher) -> None:
    site = tmp_path / "site"
    (site / "a b").mkdir(parents=True)
    (site / "pool.html").write_text("<title>Pool</title><p>The pool opens at noon, and the water is warm.</p>")
    (site / "a b" / "pools.md").write_text("# Pools\n\nEach pool of the town.\n\n" + "The pool again. " * 200)
    (site / "other.md").write_text("Nothing of it.")
    backend = FolderBackend(site, "https://town.example/x/", tmp_path / "cache", Closed(()), Threads())
    hits = await backend.ask(fetcher, "when does the pool open", 5)
    assert {hit.url for hit in hits} == {"https://town.example/x/pool.html", "https://town.example/x/a%20b/pools.md"}
    assert hits[0].title == "Pool"
    assert "noon" in hits[0].snippet
    missing = FolderBackend(tmp_path / "none", "https://town.example", tmp_path / "cache", Closed(()), Threads())
    with pytest.raises(WebError) as caught:
        await missing.ask(fetcher, "pool", 5)
    assert caught.value.cause is Code.WebProviderError


@pytest.mark.parametrize(
    ("given", "names", "said"),
    [
        ({}, [], ""),
        ({"search": ("ddg_html",)}, ["ddg_html"], ""),
        ({"search": ("searxng",)}, [], "SEARXNG_BASE_URL"),
        ({"search": ("searxng",), "searxng_url": "http://127.0.0.1:8888"}, ["searxng"], ""),
        ({"search": ("brave", "ddg_html")}, ["ddg_html"], "BRAVE_API_KEY"),
        ({"search": ("serper",), "serper_key": "k"}, ["serper"], ""),
        ({"search": ("folder",), "folder": "site"}, [], "WEB_SEARCH_FOLDER_URL"),
        ({"search": ("folder",), "folder": "site", "folder_url": "https://e.example"}, ["folder"], ""),
        ({"search": ("bing",)}, [], "shut down"),
        ({"search": ("gogle",)}, [], "WEB_SEARCH_BACKEND"),
    ],
)
def test_a_backend_that_cannot_be_asked_is_named_with_its_setting(
    given: dict[str, Any], names: list[str], said: str
) -> None:
    found, warnings = backends_of(WebSettings(**given))
    assert found == names
    assert said in " ".join(warnings)
    assert bool(warnings) is bool(said)
