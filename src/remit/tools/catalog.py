"""All tools of all providers, one per name (contract: tools, "Providers and the catalog").

Providers are listed once, together, and again only after `invalidate`; in between every look-up is a dictionary access.
Where several offer one name, order or safety decides among them, and the choice does not move on its own: if the chosen
tool is quarantined, the name is withheld rather than answered by the next best.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Final, Literal

from remit.canonical import digest
from remit.codes import Code
from remit.errors import NameInvalidError, ProviderError, UsageError
from remit.tools.meta import Risk, ToolMeta
from remit.tools.naming import check_provider_id
from remit.tools.provider import ToolProvider
from remit.tools.suggestions import listed, suggestion
from remit.tools.tool import Tool, admit, quarantine

__all__ = ["Catalog", "ResolveError", "Tool"]

PREFERRED: Final = ("builtin", "mcp_*", "stub")
LIST_TIMEOUT_S: Final = 30.0
"""Seconds after which a provider that does not list its tools counts as failed."""

_RISK: Final = {Risk.READ_ONLY: 0, Risk.WRITE: 1, Risk.UNKNOWN: 2}

Args = dict[str, Any]


class ResolveError(UsageError):
    """A name means no tool that could be called."""

    default = Code.UNKNOWN_TOOL

    @property
    def reason(self) -> str:
        """What is wrong with the name."""
        return self.message


class _Index:
    """What one listing of everything amounts to; replaced as a whole."""

    def __init__(
        self, winners: Sequence[Tool] = (), nameless: Sequence[Tool] = (), shadowed: Mapping[str, tuple[str, ...]] = {}
    ) -> None:
        self.shadowed = shadowed
        self.nameless = {tool.meta.name: tool for tool in nameless}
        chosen = sorted(winners, key=lambda tool: tool.meta.name)
        self.tools = sorted([*chosen, *nameless], key=lambda tool: str(tool.meta.name))
        self.by_name = {name: tool for tool in chosen for name in (tool.meta.name, tool.wire_name)}
        covered: dict[str, list[Tool]] = {}
        for tool in chosen:
            covered.setdefault(tool.key, []).append(tool)
        self.by_key = {key: _operations(tools) for key, tools in covered.items()}

    @cached_property
    def version(self) -> str:
        return digest([[tool.meta.name, tool.contract_hash] for tool in self.tools if tool.quarantined is None])


class Catalog:
    """Finds the tool a name means."""

    def __init__(
        self,
        providers: Sequence[ToolProvider],
        *,
        order: Sequence[str] = PREFERRED,
        choose: Literal["order", "safest"] = "order",
        closed: bool = True,
        list_timeout_s: float = LIST_TIMEOUT_S,
    ) -> None:
        """Take the providers, whose ids are unique. Raises NameInvalidError.

        `order` holds patterns of provider ids, such as `mcp_*`; who matches none comes after, as registered. `choose`
        decides between several tools of one name: by that order, or the one of the lowest level and risk. `closed`
        refuses arguments no schema declares.
        """
        self._providers = {check_provider_id(provider.provider_id): provider for provider in providers}
        if len(self._providers) < len(providers):
            ids = [provider.provider_id for provider in providers]
            twice = next(each for each in ids if ids.count(each) > 1)
            raise NameInvalidError(f"two providers are called {twice}", remedy="Give one of them another id.")
        self._order = tuple(order)
        self._choose = choose
        self._closed = closed
        self._list_timeout_s = list_timeout_s
        self._lock = asyncio.Lock()
        self._stale = set(self._providers)
        self._again: set[str] = set()
        self._listed: dict[str, list[Tool]] = {}
        self._index = _Index()
        self.failures: dict[str, str] = {}
        """Why a provider could not be listed, by its id; it has no tools until it is listed again."""

    @property
    def shadowed(self) -> Mapping[str, tuple[str, ...]]:
        """Providers that offer a name but were not chosen for it, by the name."""
        return self._index.shadowed

    @property
    def version(self) -> str:
        """Digest over the names and contracts of all tools that can be called, as last listed."""
        return self._index.version

    async def tools(self) -> list[Tool]:
        """Every tool, quarantined ones included, by name."""
        await self._ensure()
        return list(self._index.tools)

    async def resolve(self, name: str, args: Args) -> tuple[Tool, Args]:
        """The tool a full name, wire name or key means, and its arguments (without `operation` where a key took it).

        Suspends only where the answer may depend on a provider that has to be listed. Raises ResolveError with
        UNKNOWN_TOOL, INVALID_TOOL_STEP or TOOL_QUARANTINED.
        """
        tool = self._index.by_name.get(name)
        if tool is None or (self._stale and tool.meta.provider_id in self._stale):
            await self._ensure()
            return self.lookup(name, args)
        if tool.quarantined is not None:
            raise _quarantined(tool)
        return tool, args

    def lookup(self, name: str, args: Args) -> tuple[Tool, Args]:
        """As `resolve`, from what was last listed. Raises ResolveError."""
        tool = self._index.by_name.get(name)
        if tool is None:
            tool, args = self._by_key(name, args)
        if tool.quarantined is not None:
            raise _quarantined(tool)
        return tool, args

    def known(self, name: str) -> Tool | None:
        """The tool of a full or wire name as last listed, even a quarantined one."""
        return self._index.by_name.get(name)

    def invalidate(self, provider_id: str | None = None) -> None:
        """Have a provider (all of them) listed again before its tools are next used."""
        every = set(self._providers)
        named = every if provider_id is None else every & {provider_id}
        self._stale |= named
        self._again |= named

    async def refresh(self) -> None:
        """List every provider again, now."""
        self.invalidate()
        await self._ensure()

    async def close(self) -> None:
        """Close every provider; what one of them raises does not keep the others open."""
        providers = list(self._providers.values())
        results = await asyncio.gather(*(provider.close() for provider in providers), return_exceptions=True)
        for provider, result in zip(providers, results, strict=True):
            if isinstance(result, Exception):
                self.failures[provider.provider_id] = _words(result)

    # --- listing

    async def _ensure(self) -> None:
        if not self._stale:
            return
        async with self._lock:
            # They stay stale until listed: who comes meanwhile waits, and after a cancellation the next one lists them.
            stale = sorted(self._stale)
            if not stale:
                return
            self._again.clear()
            found = await asyncio.gather(*(self._list(self._providers[each]) for each in stale))
            self._listed.update(zip(stale, found, strict=True))
            self._stale = self._stale - set(stale) | self._again
            self._index = self._chosen()

    async def _list(self, provider: ToolProvider) -> list[Tool]:
        """What one provider offers; nothing, and the reason kept, where it fails."""
        deadline = asyncio.timeout(self._list_timeout_s)
        try:
            async with deadline:
                metas = await provider.list_tools()
            tools = self._admitted(metas, provider)
        except Exception as error:  # noqa: BLE001 - one failing provider never empties the others
            why = f"no list within {self._list_timeout_s:g} s" if deadline.expired() else _words(error)
            self.failures[provider.provider_id] = why
            return []
        self.failures.pop(provider.provider_id, None)
        return tools

    def _admitted(self, metas: Sequence[ToolMeta], provider: ToolProvider) -> list[Tool]:
        times = Counter(meta.name for meta in metas)
        return [
            admit(meta, provider, closed=self._closed)
            if times[meta.name] == 1
            else quarantine(meta, provider, f"its provider lists the name {times[meta.name]} times")
            for meta in {meta.name: meta for meta in metas}.values()
        ]

    def _chosen(self) -> _Index:
        offers: dict[str, list[Tool]] = {}
        nameless: list[Tool] = []
        for provider_id in self._providers:  # as registered
            for tool in self._listed.get(provider_id, ()):
                (offers.setdefault(tool.meta.name, []) if tool.key else nameless).append(tool)
        ranks = {provider_id: self._rank(provider_id) for provider_id in self._providers}
        winners, shadowed = [], {}
        for name, rivals in offers.items():
            best, *others = sorted(rivals, key=lambda tool: self._preference(tool, ranks))
            winners.append(best)
            if others:
                shadowed[name] = tuple(other.meta.provider_id for other in others)
        return _Index(winners, nameless, shadowed)

    def _rank(self, provider_id: str) -> int:
        matching = (place for place, pattern in enumerate(self._order) if fnmatchcase(provider_id, pattern))
        return next(matching, len(self._order))

    def _preference(self, tool: Tool, ranks: Mapping[str, int]) -> tuple[int, int, int]:
        """Lower goes first; a stable sort keeps equals as registered."""
        meta = tool.meta
        rank = ranks[meta.provider_id]
        return (meta.capability_level, _RISK[meta.risk_level], rank) if self._choose == "safest" else (rank, 0, 0)

    # --- keys

    def _by_key(self, name: str, args: Args) -> tuple[Tool, Args]:
        choices = self._index.by_key.get(name)
        if choices is None:
            if name in self._index.nameless:
                return self._index.nameless[name], args
            raise self._unknown(name)
        if len(choices) == 1:
            return next(iter(choices.values())), args
        operation = args.get("operation")
        chosen = choices.get(operation) if isinstance(operation, str) else None
        if chosen is None:
            given = f"{operation!r:.100} is none of them" if "operation" in args else "args.operation is missing"
            raise ResolveError(
                f"the key {name} covers {len(choices)} tools and {given}",
                code=Code.INVALID_TOOL_STEP,
                remedy=f"Set args.operation to one of: {listed(choices)}.",
            )
        return chosen, {key: value for key, value in args.items() if key != "operation"}

    def _unknown(self, name: str) -> ResolveError:
        known = [*self._index.by_name, *self._index.by_key]
        known = [each for each in known if ("__" in each) == ("__" in name)]  # models spell names otherwise than people
        failed = "".join(f"; the tools of {each} are not known: {why}" for each, why in sorted(self.failures.items()))
        return ResolveError(f"no tool is called {name!r:.100}{failed}", remedy=suggestion(name, known))


def _operations(tools: Sequence[Tool]) -> dict[str, Tool]:
    """What `args.operation` may be: the last part of a name where that is unambiguous, else the full name."""
    last = [tool.meta.name.rpartition(".")[2] for tool in tools]
    times = Counter(last)
    return {part if times[part] == 1 else tool.meta.name: tool for part, tool in zip(last, tools, strict=True)}


def _quarantined(tool: Tool) -> ResolveError:
    return ResolveError(
        f"{tool.meta.name} is withheld: {tool.quarantined}",
        code=Code.TOOL_QUARANTINED,
        remedy=f"Mend the tool at its provider ({tool.meta.provider_id}), then list it again.",
    )


def _words(error: Exception) -> str:
    if isinstance(error, ProviderError):
        return f"{error.cause}: {error}"
    return f"{type(error).__name__}: {error}".removesuffix(": ")
