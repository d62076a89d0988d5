"""Tools that are functions of this process (`@tool`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from remit.blocking import Threads
from remit.capability import Opening
from remit.codes import Code
from remit.errors import NameInvalidError, ProviderError
from remit.frames import place_of
from remit.process.enclosure import Enclosures
from remit.providers.functions.enclosed import call_enclosed
from remit.tools.function import PROVIDER_ID, FunctionTool
from remit.tools.meta import ToolMeta
from remit.tools.naming import check_provider_id
from remit.tools.provider import CallContext, ToolResult


class FunctionProvider:
    """Serves a set of function tools."""

    def __init__(
        self,
        tools: Iterable[FunctionTool[..., Any]],
        *,
        provider_id: str = PROVIDER_ID,
        threads: Threads | None = None,
        enclosures: Enclosures | None = None,
    ) -> None:
        """Take the tools; synchronous functions run in `threads`, sandboxed ones in `enclosures`.

        Raises NameInvalidError if two have one name.
        """
        self._enclosures = enclosures
        self._threads = threads or Threads()
        self._provider_id = check_provider_id(provider_id)
        self._tools: dict[str, FunctionTool[..., Any]] = {}
        self._closed = False
        for each in tools:
            other = self._tools.setdefault(each.meta.name, each)
            if other is not each:
                raise NameInvalidError(
                    f"two functions define the tool {each.meta.name}: "
                    f"{place_of(other.function)} and {place_of(each.function)}",
                    remedy="Give one of them another name.",
                )

    @property
    def provider_id(self) -> str:
        return self._provider_id

    async def list_tools(self) -> Sequence[ToolMeta]:
        self._check_open()
        metas = (self._tools[name].meta for name in sorted(self._tools))
        return [msgspec.structs.replace(meta, provider_id=self._provider_id) for meta in metas]

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self._check_open()
        found = self._tools.get(name)
        if found is None:
            raise ProviderError(f"no function defines the tool {name}", cause=Code.ToolNotFound)
        if found.terms is None:
            return await found.invoke(args, ctx, self._threads)
        if self._enclosures is None:  # never in this process instead (rule 9)
            raise ProviderError("there is no sandbox for it here", cause=None, code=Code.SANDBOX_UNAVAILABLE)
        return await call_enclosed(found, found.terms, args, ctx, self._enclosures)

    def slots(self, name: str) -> asyncio.Semaphore | None:
        found = self._tools.get(name)
        return None if found is None or found.is_async or found.terms is not None else self._threads.slots

    def typed(self, name: str) -> bool:
        found = self._tools.get(name)
        return found is not None and found.built

    async def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise ProviderError(f"the provider {self._provider_id} is closed", cause=Code.ProviderClosed)


def open_functions(opening: Opening) -> tuple[FunctionProvider]:
    """The provider of the user's functions. Raises NameInvalidError if two have one name."""
    return (FunctionProvider(opening.tools, threads=opening.threads, enclosures=opening.enclosures),)
