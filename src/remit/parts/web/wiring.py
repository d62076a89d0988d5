"""The web part of a process, made of its settings: the provider, and the offline one where nothing else searches.

The provider of web.search, web.fetch and web.extract: they only read, and what they return is untrusted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.capability import Check, Look
from remit.codes import Code
from remit.errors import ProviderError, RemitError
from remit.files.replacement import Closed
from remit.http.urls import place_of
from remit.parts.web.settings import STUB, WebSettings, backends_of
from remit.parts.web.shapes import SECONDS, ExtractResult, FetchArgs, FetchResult, Item, SearchArgs, SearchResult
from remit.settings.parts import settings_of
from remit.tools.provider import CallContext, Digests, ToolResult, Toolset, arguments, declare
from remit.tools.stub import StubProvider

if TYPE_CHECKING:
    from remit.capability import Opening
    from remit.parts.web.engine import WebEngine
    from remit.tools.provider import ToolProvider


_PROVIDER: Final = "web"


_tool: Final = partial(declare, provider=_PROVIDER, timeout_ms=(SECONDS + 20) * 1_000, output_trusted=False)
SEARCH: Final = _tool(
    "web.search",
    "Search the web: titles, addresses and snippets of pages, best first. Read a page with web.extract.",
    SearchArgs,
    SearchResult,
)
FETCH: Final = _tool("web.fetch", "Fetch a page of the web and return all its text.", FetchArgs, FetchResult)
EXTRACT: Final = _tool(
    "web.extract",
    "Fetch a page of the web and return its main text, without navigation, as Markdown.",
    FetchArgs,
    ExtractResult,
)


class WebProvider(Toolset):
    """Lists the web tools, and has them done by an engine that is made for the first call."""

    def __init__(self, make: Callable[[], WebEngine], *, searches: bool) -> None:
        super().__init__(_PROVIDER, (SEARCH, FETCH, EXTRACT) if searches else (FETCH, EXTRACT))
        self._make = make
        self._engine: WebEngine | None = None

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self._require(name)
        engine = self._engine = self._engine or self._make()
        if name == SEARCH.name:
            return await engine.search(arguments(SearchArgs, args))
        if name == FETCH.name:
            return await engine.fetch(arguments(FetchArgs, args), ctx)
        return await engine.extract(arguments(FetchArgs, args), ctx)

    async def close(self) -> None:
        await super().close()
        if self._engine is not None:
            await self._engine.close()


_OFFLINE: Final = "stub_web"
"""Id of the provider that answers where no backend does."""


def open_web(opening: Opening) -> list[ToolProvider]:
    """Return the providers of the web tools; a backend that cannot be asked is left out."""
    names, _ = backends_of(settings_of(opening.settings, "web", WebSettings))
    return [WebProvider(lambda: _engine(opening, names), searches=bool(names)), _stub()]


async def check_search(look: Look) -> list[Check]:
    """Return what is wrong with each search backend that cannot be asked, for `remit doctor`."""
    try:
        _, warnings = backends_of(settings_of(look.settings, "web", WebSettings))
    except RemitError as error:
        return [Check.failed("web", error)]
    return [
        Check("web", "fail", warning, "Correct web.search; docs/web.md lists the backends.") for warning in warnings
    ]


def _engine(opening: Opening, names: Sequence[str]) -> WebEngine:
    """Make what the tools use. Raises ProviderError where the extra is not installed."""
    settings, journal = settings_of(opening.settings, "web", WebSettings), opening.journal
    try:
        # An extra, and slow to load: with the first call.
        from remit.parts.web import search  # noqa: PLC0415 - as above
        from remit.parts.web.engine import SearchTerms, WebEngine  # noqa: PLC0415 - as above
        from remit.parts.web.fetcher import Fetcher  # noqa: PLC0415 - as above
        from remit.parts.web.kept import Cooldowns, KeptPages  # noqa: PLC0415 - as above
        from remit.parts.web.search import FolderBackend  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        reason = f"{error.name} is not installed: pip install 'remit[web]'"
        raise ProviderError(reason, cause=Code.SpawnFailed) from error
    makers: dict[str, Callable[[], search.SearchBackend]] = {
        "folder": lambda: FolderBackend(
            opening.settings.folder / settings.folder,
            settings.folder_url,
            opening.settings.folder / ".remit" / "cache",
            Closed(opening.private),
            opening.threads,
        ),
        "ddg_html": search.ddg_html,
        "searxng": lambda: search.searxng(
            settings.searxng_url, settings.searxng_key, settings.searxng_timeout_ms / 1_000
        ),
        "brave": lambda: search.brave(settings.brave_key),
        "serper": lambda: search.serper(settings.serper_key),
    }
    terms = SearchTerms(
        max_bytes=settings.max_bytes,
        robots=settings.robots,
        pause_s=settings.pause_ms / 1_000,
        fuse=settings.fuse,
    )
    days = opening.settings.evidence.retention_days
    return WebEngine(
        Fetcher(private=(*settings.private, *_own(settings))),
        journal.clock,
        terms,
        [makers[name]() for name in names],
        Cooldowns(journal, settings.cooldown_seconds),
        KeptPages(journal, pages=settings.pages, size=settings.pages_bytes, days=days),
    )


def _own(settings: WebSettings) -> tuple[str, ...]:
    """Return the operator's own instance, as it may stand in a private network."""
    place = place_of(settings.searxng_url)
    return (place,) if place else ()


class OfflineSearch(StubProvider):
    """Answers web.search where no backend does; structs make its schemas."""

    def digests(self, name: str) -> Digests | None:  # noqa: ARG002 - the port's
        return None


def _stub() -> OfflineSearch:
    """Return what answers web.search where no backend does: the same words each time, and no page of the web."""
    offered = msgspec.structs.replace(SEARCH, provider_id=_OFFLINE)
    return OfflineSearch([offered], {SEARCH.name: _stub_answer}, provider_id=_OFFLINE)


def _stub_answer(args: dict[str, Any]) -> dict[str, Any]:
    item = Item(
        title=f"No search: {str(args.get('query', ''))[:100]}",
        url="https://stub.invalid/",
        snippet="No search backend is set. Name one in web.search (WEB_SEARCH_BACKEND), such as searxng.",
        provider=STUB,
        rank=1,
    )
    return {"items": [msgspec.to_builtins(item)]}
