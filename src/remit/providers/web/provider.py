"""The provider of web.search, web.fetch and web.extract: they only read, and what they return is untrusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import ProviderError
from remit.providers.web.shapes import SECONDS, ExtractResult, FetchArgs, FetchResult, SearchArgs, SearchResult
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.provider import CallContext, ToolResult
from remit.tools.shapes import arguments, struct_schema

if TYPE_CHECKING:
    from remit.providers.web.engine import WebEngine

_PROVIDER: Final = "web"


def _meta(name: str, description: str, takes: type[msgspec.Struct], gives: type[msgspec.Struct]) -> ToolMeta:
    return ToolMeta(
        name=name,
        provider_id=_PROVIDER,
        description=description,
        input_schema=struct_schema(takes),
        output_schema=struct_schema(gives),
        capability_level=Level.L0,
        risk_level=Risk.READ_ONLY,
        side_effects=False,
        idempotent=True,
        requires_confirm=False,
        timeout_ms=(SECONDS + 20) * 1_000,
        version="1",
        output_trusted=False,
    )


SEARCH: Final = _meta(
    "web.search",
    "Search the web: titles, addresses and snippets of pages, best first. Read a page with web.extract.",
    SearchArgs,
    SearchResult,
)
FETCH: Final = _meta("web.fetch", "Fetch a page of the web and return all its text.", FetchArgs, FetchResult)
EXTRACT: Final = _meta(
    "web.extract",
    "Fetch a page of the web and return its main text, without navigation, as Markdown.",
    FetchArgs,
    ExtractResult,
)


class WebProvider:
    """Lists the web tools, and has them done by an engine that is made for the first call."""

    def __init__(self, make: Callable[[], WebEngine], *, searches: bool) -> None:
        """Offer web.search if it `searches`: else another provider does."""
        self._make = make
        self._searches = searches
        self._engine: WebEngine | None = None
        self._closed = False

    @property
    def provider_id(self) -> str:
        return _PROVIDER

    async def list_tools(self) -> Sequence[ToolMeta]:
        """web.fetch and web.extract; with a backend web.search too."""
        self._require_open()
        return (SEARCH, FETCH, EXTRACT) if self._searches else (FETCH, EXTRACT)

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self._require_open()
        engine = self._engine = self._engine or self._make()
        if name == SEARCH.name and self._searches:
            return await engine.search(arguments(SearchArgs, args))
        if name == FETCH.name:
            return await engine.fetch(arguments(FetchArgs, args), ctx)
        if name == EXTRACT.name:
            return await engine.extract(arguments(FetchArgs, args), ctx)
        raise ProviderError(f"The web provider has no tool {name!r}.", cause=Code.ToolNotFound)

    async def close(self) -> None:
        self._closed = True
        if self._engine is not None:
            await self._engine.close()

    def _require_open(self) -> None:
        if self._closed:
            raise ProviderError("The web provider is closed.", cause=Code.ProviderClosed)
