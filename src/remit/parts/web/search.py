"""Search backends: each asks one engine and gives the same items; what blocks or fails is never an empty list.

A backend is a request and the reading of its answer. Which ones are asked, and in which order, the settings say; what
one cannot answer, the next is asked.

The search backend `folder`: the files of a site that lie on this machine, by the addresses at which it has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import msgspec
from lxml import html

from remit.codes import Code
from remit.errors import ProviderError
from remit.files.directory import ConfinedDirectory
from remit.files.index.search import FolderIndex
from remit.files.index.store import IndexFile
from remit.http.retry import retry_after
from remit.parts.web.fetcher import FetchedPage, Fetcher, WebError, checked, without_tracking
from remit.parts.web.shapes import Item
from remit.regex import regex

if TYPE_CHECKING:
    from remit.files.replacement import Closed
    from remit.threads import StopEvent, Threads


_LIMIT: Final = 4 * 1024 * 1024
_BRAVE: Final = "https://api.search.brave.com"
_SERPER: Final = "https://google.serper.dev"
_DDG: Final = "https://html.duckduckgo.com"
_CHALLENGED, _FORBIDDEN, _TOO_MANY, _UNAUTHORIZED, _ERROR = 202, 403, 429, 401, 400
_SECONDS: Final = regex(r"[0-9]{1,7}")
"""A time to wait, and no date; months are none."""
_FUSION: Final = 60
"""The constant of reciprocal rank fusion (Cormack and others, 2009)."""


class EngineHit(NamedTuple):
    """A result as an engine gives it."""

    title: str
    url: str
    snippet: str


class SearchBackend(Protocol):
    """A backend that web.search may ask."""

    @property
    def name(self) -> str:
        """As the settings name it."""
        ...

    async def ask(self, fetcher: Fetcher, query: str, count: int) -> list[EngineHit]:
        """Return at most `count` results of web addresses. Raises WebError: a failure is never an empty list."""
        ...


class Backend(NamedTuple):
    """An engine on the web: how it is asked, and how its answer is read."""

    name: str
    url: Callable[[str, int], str]
    read: Callable[[FetchedPage], list[EngineHit]]
    headers: dict[str, str] = {}  # noqa: RUF012 - nothing changes it
    body: Callable[[str, int], bytes] | None = None
    """The body that is posted; None: it is a GET."""
    seconds: float = 15.0
    service: bool = True
    """Whether it is asked by its API, and says when to come again; of a page for people, that is unknown."""

    async def ask(self, fetcher: Fetcher, query: str, count: int) -> list[EngineHit]:
        """Request an answer and read it."""
        post = self.body(query, count) if self.body is not None else None
        page = await fetcher.fetch(
            self.url(query, count),
            seconds=self.seconds,
            limit=_LIMIT,
            headers=self.headers,
            method="GET" if post is None else "POST",
            data=post,
            redirects=0,  # a key goes to the host that it is for, and nowhere else
        )
        _check(self, page)
        return usable(self.read(page))[:count]


def usable(hits: Sequence[EngineHit]) -> list[EngineHit]:
    """Return the results that lead to addresses of the web, in the form in which they are requested."""
    usable_hits = []
    for hit in hits:
        try:
            usable_hits.append(hit._replace(url=without_tracking(checked(hit.url))))
        except ProviderError:
            continue  # not an address of the web
    return usable_hits


def ddg_html(base: str = _DDG) -> Backend:
    """DuckDuckGo's page without scripts: no key is needed, and a machine that asks often is blocked."""

    def url(query: str, _count: int) -> str:
        return f"{base}/html/?{urlencode({'q': query})}"

    return Backend("ddg_html", url, _read_ddg, service=False)


def searxng(base: str, key: str = "", seconds: float = 15.0) -> Backend:
    """A SearXNG instance of one's own, with `json` among its `search.formats`."""

    def url(query: str, _count: int) -> str:
        return f"{base.rstrip('/')}/search?{urlencode({'q': query, 'format': 'json'})}"

    return Backend("searxng", url, _read_searxng, {"Authorization": f"Bearer {key}"} if key else {}, seconds=seconds)


def brave(key: str, base: str = _BRAVE) -> Backend:
    """Brave's search API."""

    def url(query: str, count: int) -> str:
        return f"{base}/res/v1/web/search?{urlencode({'q': query, 'count': count, 'text_decorations': 'false'})}"

    headers = {"X-Subscription-Token": key, "Accept": "application/json"}
    return Backend("brave", url, lambda page: _hits(page, ("web", "results"), "url", "description"), headers)


def serper(key: str, base: str = _SERPER) -> Backend:
    """Serper's search API."""

    def body(query: str, count: int) -> bytes:
        return msgspec.json.encode({"q": query, "num": count})

    headers = {"X-API-KEY": key, "Content-Type": "application/json"}
    return Backend(
        "serper", lambda _query, _count: f"{base}/search", lambda page: _hits(page, ("organic",), "link", "snippet"),
        headers, body,
    )  # fmt: skip


def items(hits: Sequence[EngineHit], provider: str) -> list[Item]:
    """Return results in the shape that every provider of web.search gives."""
    return [
        Item(title=hit.title, url=hit.url, snippet=hit.snippet, provider=provider, rank=rank)
        for rank, hit in enumerate(hits, 1)
    ]


def fused(lists: Sequence[Sequence[Item]], count: int) -> list[Item]:
    """Return one list of several, by reciprocal ranks: what many engines rank high comes first."""
    scores: dict[str, float] = {}
    first: dict[str, Item] = {}
    names: dict[str, list[str]] = {}
    for ranked in lists:
        for item in ranked:
            scores[item.url] = scores.get(item.url, 0.0) + 1 / (_FUSION + item.rank)
            first.setdefault(item.url, item)
            names.setdefault(item.url, []).append(item.provider)
    best = sorted(scores, key=lambda url: (-scores[url], first[url].rank, url))[:count]
    return [
        msgspec.structs.replace(first[url], provider="+".join(names[url]), rank=rank)
        for rank, url in enumerate(best, 1)
    ]


def again_s(error: WebError, now: int) -> float | None:
    """Return in how many seconds a service that refused wants to be asked again; None if it does not say.

    `now` is in microseconds since the Unix epoch. Of several limits (`X-RateLimit-*`, as Brave writes them), those that
    are used up count.
    """
    pause_s = retry_after(error.headers, now)
    if pause_s is not None:
        return pause_s
    resets = error.headers.get("x-ratelimit-reset", "").split(",")
    remaining = error.headers.get("x-ratelimit-remaining", "").split(",")
    spent = [reset for reset, left in zip(resets, remaining, strict=False) if left.strip() == "0"] or resets
    return max((float(text) for text in map(str.strip, spent) if _SECONDS.fullmatch(text)), default=None)


def _check(backend: Backend, page: FetchedPage) -> None:
    name = backend.name
    if page.status == _CHALLENGED or (not backend.service and b"challenge-form" in page.body):
        raise WebError(
            f"{name}: it asks for a proof of being a person", Code.WebBlocked, blocked_by=Code.captcha_required
        )
    if page.status in {_FORBIDDEN, _TOO_MANY}:
        detail = Code.http_403 if page.status == _FORBIDDEN else Code.http_429
        headers = page.headers if backend.service and page.status == _TOO_MANY else None
        raise WebError(f"{name}: it answered {page.status}", Code.WebBlocked, blocked_by=detail, headers=headers)
    if page.status == _UNAUTHORIZED:
        raise WebError(f"{name}: it does not take the key", Code.AuthError)
    if page.status >= _ERROR or page.status in range(300, 400):
        raise WebError(f"{name}: it answered {page.status}", Code.WebProviderError)


def _json(page: FetchedPage) -> Any:
    try:
        return msgspec.json.decode(page.body)
    except msgspec.DecodeError as error:
        raise WebError(f"{page.final_url}: its answer is not JSON", Code.WebParseError) from error


def _hits(page: FetchedPage, path: tuple[str, ...], url: str, snippet: str) -> list[EngineHit]:
    value = _json(page)
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            return []
    if not isinstance(value, list):
        raise WebError(f"{page.final_url}: its results are not a list", Code.WebParseError)
    return [_hit(entry, url, snippet) for entry in value if isinstance(entry, dict) and entry.get(url)]


def _hit(entry: dict[str, Any], url: str, snippet: str) -> EngineHit:
    return EngineHit(_line(entry.get("title")), str(entry[url]), _line(entry.get(snippet)))


def _read_searxng(page: FetchedPage) -> list[EngineHit]:
    hits = _hits(page, ("results",), "url", "content")
    failed = _json(page).get("unresponsive_engines") or []
    if not hits and failed:
        engines = ", ".join(map(_engine, failed[:5]))
        raise WebError(f"searxng: its engines did not answer: {engines}", Code.WebProviderError)
    return hits


def _engine(failed: Any) -> str:
    """Return the name of an engine that did not answer and, in brackets, what SearXNG says of it."""
    name, *reason = failed if isinstance(failed, list) and failed else [failed]
    return f"{name!s:.40} ({reason[0]!s:.80})" if reason else f"{name!s:.40}"


def _read_ddg(page: FetchedPage) -> list[EngineHit]:
    if not page.body.strip():
        raise WebError("ddg_html: its answer is empty", Code.WebParseError)
    tree = html.document_fromstring(page.body.decode("utf-8", "replace"))
    hits = []
    for block in tree.find_class("result"):
        anchors = block.find_class("result__a")
        if not anchors or "result--ad" in (block.get("class") or ""):
            continue
        snippets = block.find_class("result__snippet")
        target = _target(str(anchors[0].get("href") or ""))
        hits.append(
            EngineHit(_line(anchors[0].text_content()), target, _line(snippets[0].text_content() if snippets else ""))
        )
    if not hits and not tree.find_class("no-results"):
        raise WebError("ddg_html: its page has another form than is known", Code.WebParseError)
    return hits


def _target(link: str) -> str:
    """Return where a result leads: the engine's own links carry it in `uddg`."""
    query = parse_qs(urlsplit(link).query)
    if "uddg" in query:
        return query["uddg"][0]
    return f"https:{link}" if link.startswith("//") else link


def _line(value: object) -> str:
    return " ".join(str(value or "").split())[:1_000]


_PASSAGES_PER_FILE: Final = 4


class FolderBackend:
    """Ranks files by their best passages."""

    name: Final = "folder"

    def __init__(self, folder: Path, base: str, index_dir: Path, closed: Closed, threads: Threads) -> None:
        self._folder = folder
        self._base = base.rstrip("/")
        self._index_dir = index_dir
        self._closed = closed
        self._threads = threads

    async def ask(self, fetcher: Fetcher, query: str, count: int) -> list[EngineHit]:  # noqa: ARG002 - nothing is fetched
        """Search the folder. Raises WebError (WebProviderError)."""
        try:
            hits = await self._threads.stoppable(lambda stop: self._hits(query, count, stop))
        except (ProviderError, OSError) as error:
            raise WebError(f"folder: {error}", Code.WebProviderError) from error
        return usable(hits)[:count]

    def _hits(self, query: str, count: int, stop: StopEvent) -> list[EngineHit]:
        folder = self._folder.resolve(strict=True)
        index = FolderIndex(IndexFile(self._index_dir, folder), ConfinedDirectory(folder), folder)
        hits = index.search(query, _PASSAGES_PER_FILE * count, stop, lambda _done, _total: None, self._is_open)
        best = {match.hit.path: match for match in reversed(hits.matches)}  # of each file the best passage
        ranked = sorted(best.values(), key=lambda match: -match.score)
        return [EngineHit(match.hit.title, f"{self._base}/{quote(match.hit.path)}", match.snippet) for match in ranked]

    def _is_open(self, path: str) -> bool:
        return str(self._folder / path) not in self._closed
