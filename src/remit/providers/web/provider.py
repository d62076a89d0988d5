"""The provider of web.search, web.fetch and web.extract: they only read, and what they return is untrusted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from remit.providers.web.search import SECONDS, ExtractResult, FetchArgs, FetchResult, SearchArgs, SearchResult
from remit.tools.provider import CallContext, ToolResult, Toolset, arguments, declare

if TYPE_CHECKING:
    from remit.providers.web.engine import WebEngine

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
