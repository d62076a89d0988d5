"""Read what parts offer, as data: their recipes in a line, and tools that are the same in every process.

`listing.json` in the folder of a part says it (`make tables` writes it, a test compares it with the code). A list of
tools or recipes reads that, and imports nothing of the part; its provider is opened with the first call.
"""

from __future__ import annotations

from functools import cache, partial
from pkgutil import get_data
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from remit.errors import ProviderError
from remit.jobs.recipe import Outline
from remit.tools.meta import ToolMeta
from remit.tools.provider import Digests, Preview, Previews, PreviewsWithin, Reconciles, Toolset, supports

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from remit.capability import Capability, Opening
    from remit.threads import Threads
    from remit.tools.provider import CallContext, ToolProvider, ToolResult

FILE: Final = "listing.json"


class ListedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool, with what follows from its words alone."""

    meta: ToolMeta
    digests: Digests
    blocks: bool
    """Whether its calls hold one of the threads for work that blocks."""


class PartListing(msgspec.Struct, frozen=True, kw_only=True):
    """What one part offers."""

    tools: tuple[ListedTool, ...] = ()
    recipes: tuple[Outline, ...] = ()


@cache
def listing_of(package: str) -> PartListing:
    """Return what stands in the folder of a part's package; nothing without the file."""
    try:
        data = get_data(package, FILE)
    except FileNotFoundError:
        data = None
    return msgspec.json.decode(data, type=PartListing) if data else PartListing()


def package_of(part: Capability) -> str:
    """Return the package of a part, by what it refers to: `remit.parts.browser`."""
    module = next(iter(part.references)).partition(":")[0]
    return ".".join(module.split(".")[:3])


def outlines_of(parts: Iterable[Capability]) -> Mapping[str, Outline]:
    """Return the recipes of these parts that their folders tell of, by name."""
    return {row.name: row for part in parts if part.recipes for row in listing_of(package_of(part)).recipes}


def providers_on_use(
    part: Capability,
    opening: Opening,
    make: Callable[[], Iterable[ToolProvider]],
    offers: Callable[[Opening, Sequence[ToolMeta]], Sequence[ToolMeta]] | None,
) -> Iterator[ProviderOnUse]:
    """Give the providers of a part's tools, which `make` opens together; `offers` is as of the part."""
    rows = {(row.meta.provider_id, row.meta.name): row for row in listing_of(package_of(part)).tools}
    metas: Sequence[ToolMeta] = [row.meta for row in rows.values()]
    if offers is not None:
        metas = offers(opening, metas)

    @cache
    def opened() -> dict[str, ToolProvider]:
        return {provider.provider_id: provider for provider in make()}

    def provider(provider_id: str) -> ToolProvider:
        return opened()[provider_id]

    for provider_id in part.provider_ids:
        tools = [replace(rows[provider_id, meta.name], meta=meta) for meta in metas if meta.provider_id == provider_id]
        yield ProviderOnUse(provider_id, tools, partial(provider, provider_id), opening.threads)


class ProviderOnUse(Toolset):
    """Lists tools that are known, and opens the provider that does what they say for the first call."""

    def __init__(
        self, provider_id: str, tools: Iterable[ListedTool], make: Callable[[], ToolProvider], threads: Threads
    ) -> None:
        self._rows = {row.meta.name: row for row in tools}
        super().__init__(provider_id, [row.meta for row in self._rows.values()])
        self._make = make
        self._threads = threads
        self._opened: ToolProvider | None = None

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        return await self._provider().invoke(name, args, ctx)

    async def reconcile(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult | None:
        provider = self._provider()
        if not supports(provider, Reconciles):
            raise ProviderError(f"{self.provider_id} cannot tell whether {name} happened")
        return await provider.reconcile(name, args, ctx)

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:
        provider = self._provider()
        return await provider.preview(name, args) if supports(provider, Previews) else None

    async def preview_within(
        self, name: str, args: dict[str, Any], sandbox: Sequence[Mapping[str, Any]]
    ) -> Preview | None:
        provider = self._provider()
        if supports(provider, PreviewsWithin):
            return await provider.preview_within(name, args, sandbox)
        return await self.preview(name, args)

    def slots(self, name: str) -> asyncio.Semaphore | None:
        return self._threads.slots if self._rows[name].blocks else None

    def digests(self, name: str) -> Digests:
        return self._rows[name].digests

    async def close(self) -> None:
        await super().close()
        if self._opened is not None:
            await self._opened.close()

    def _provider(self) -> ToolProvider:
        self._require_open()
        if self._opened is None:
            self._opened = self._make()
        return self._opened
