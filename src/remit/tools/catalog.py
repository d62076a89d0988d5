"""All tools of all providers, one per name (contract: tools, "Providers and the catalog").

A provider is listed when its tools are first asked for, and again only after it was invalidated; in between every
look-up is a dictionary access. Each listing has its own task (`listing.py`) and enters the index (`index.py`) as soon
as it is there, so that of many slow, dying and changing providers none is felt by who does not need it:

- A call waits only for providers that can decide what its name means. An MCP server's tool bears the server's name, so
  that is the server alone (its place may be taken by a stand-in, which is asked where the server does not have the
  tool); any other tool is not theirs. A key may be either.
- A listing that an invalidation has overtaken resolves no call that comes after that invalidation.
- Code that shows tools to others is told when they may have changed, and may ask for what is known within some time.

The sum of all listings: one tool per name, and what each key covers. Made as a whole, then never changed.

Where several providers offer one name, order or safety decides among them, and the choice does not move on its own: if
the chosen tool is quarantined, the name is withheld rather than answered by the next best.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cached_property, partial
from itertools import chain
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from remit.canonical import digest
from remit.codes import Code
from remit.errors import NameInvalidError, NotCanonicalError, ProviderError, UsageError
from remit.nearest import did_you_mean
from remit.tools.listings import Listings, ToolVersionRegistry, cancelled
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.names import check_provider_id, provider_of
from remit.tools.provider import Follows, Reserves, ToolProvider, Watched, supports
from remit.tools.remote import Probed
from remit.tools.schema import schema_hash
from remit.tools.tool import Tool, admit, quarantine

_RISK: Final = {Risk.READ_ONLY: 0, Risk.WRITE: 1, Risk.UNKNOWN: 2}

Args = dict[str, Any]


_DOWN: Final = Code.MCP_REQUIRED_UNAVAILABLE


class ResolveError(UsageError):
    """A name means no tool that could be called."""

    default = Code.UNKNOWN_TOOL

    @property
    def reason(self) -> str:
        """Return what is wrong with the name."""
        return self.message


class Preference(msgspec.Struct, frozen=True):
    """The choice among tools of a name that several offer."""

    ranks: Mapping[str, int]
    """The place of every provider in the order, by its id; the lowest goes first."""
    safest: bool
    """Whether level and risk go before that order."""

    def __call__(self, tool: Tool) -> tuple[int, int, int]:
        """Lower goes first; a stable sort keeps equals as registered."""
        meta = tool.meta
        rank = self.ranks[meta.provider_id]
        return (meta.capability_level, _RISK[meta.risk_level], rank) if self.safest else (rank, 0, 0)


class NameIndex:
    """One tool per name."""

    def __init__(self, offers: Iterable[Iterable[Tool]], preference: Preference) -> None:
        chosen: dict[str, Tool] = {}
        rivals: dict[str, list[Tool]] = {}
        nameless: list[Tool] = []
        for tool in chain.from_iterable(offers):
            name = tool.meta.name
            if not tool.key:
                nameless.append(tool)
            elif chosen.setdefault(name, tool) is not tool:
                rivals.setdefault(name, [chosen[name]]).append(tool)
        self.shadowed: dict[str, tuple[Tool, ...]] = {}
        for name, tools in rivals.items():
            chosen[name], *others = sorted(tools, key=preference)
            self.shadowed[name] = tuple(others)
        self.by_name = chosen | {tool.wire_name: tool for tool in chosen.values()}
        self.tools = sorted([*chosen.values(), *nameless], key=lambda tool: str(tool.meta.name))
        self._nameless = {tool.meta.name: tool for tool in nameless}
        self._covered: dict[str, list[Tool]] = {}
        for tool in self.tools:
            if tool.key:
                self._covered.setdefault(tool.key, []).append(tool)
        self._choices: dict[str, dict[str, Tool]] = {}

    @cached_property
    def version(self) -> str:
        """Digest over the names and contracts of all tools that can be called."""
        return digest([[tool.meta.name, tool.contract_hash] for tool in self.tools if tool.quarantined is None])

    def lookup(self, name: str, args: Args, missing: Mapping[str, str]) -> tuple[Tool, Args]:
        """The tool a name or key means, and its arguments.

        `missing` says of providers, by their id, why their tools are not known. Raises ResolveError with UNKNOWN_TOOL,
        MCP_REQUIRED_UNAVAILABLE, INVALID_TOOL_STEP or TOOL_QUARANTINED.
        """
        tool = self.by_name.get(name)
        if tool is None:
            tool, args = self._by_key(name, args, missing)
        if tool.quarantined is not None:
            raise _withheld(tool, tool.quarantined)
        return tool, args

    def _by_key(self, name: str, args: Args, missing: Mapping[str, str]) -> tuple[Tool, Args]:
        tools = self._covered.get(name)
        if tools is None:
            if name in self._nameless:
                return self._nameless[name], args
            raise self._unknown(name, missing)
        if len(tools) == 1:
            return tools[0], args
        choices = self._choices.get(name)
        if choices is None:
            choices = self._choices[name] = _operations(tools)
        operation = args.get("operation")
        chosen = choices.get(operation) if isinstance(operation, str) else None
        if chosen is None:
            problem = f"{operation!r:.100} is not one of them" if "operation" in args else "args.operation is missing"
            raise ResolveError(
                f"the key {name} covers {len(choices)} tools and {problem}",
                code=Code.INVALID_TOOL_STEP,
                remedy=f"Set args.operation to one of: {listed(choices)}.",
            )
        return chosen, {key: value for key, value in args.items() if key != "operation"}

    def _unknown(self, name: str, missing: Mapping[str, str]) -> ResolveError:
        known = [*self.by_name, *self._covered]
        known = [each for each in known if ("__" in each) == ("__" in name)]  # models spell names otherwise than people
        reason = "".join(f"; the tools of {each} are not known: {reason}" for each, reason in sorted(missing.items()))
        if any(each.startswith("mcp_") for each in missing):  # it may be there once its server answers
            remedy = "Try again once the server answers; `remit mcp test` shows what is wrong with it."
            return ResolveError(f"no tool is called {name!r:.100}{reason}", code=_DOWN, remedy=remedy)
        return ResolveError(f"no tool is called {name!r:.100}{reason}", remedy=suggestion(name, known))


def _difference(tool: Tool, other: Tool) -> str:
    """Return how the form of a tool's result differs from another's, in words; empty where both fit, or one is open.

    Nothing is said of a withheld tool, whose schema may be of any form.
    """
    if tool.quarantined or other.quarantined:
        return ""
    ours, theirs = tool.meta.output_schema or {}, other.meta.output_schema or {}
    names = f"{tool.meta.provider_id}'s result", f"{other.meta.provider_id}'s"
    if "type" in ours and "type" in theirs and ours["type"] != theirs["type"]:
        return f"{names[0]} is of type {ours['type']}, {names[1]} of type {theirs['type']}"
    lost = [name for name in theirs.get("required", ()) if name not in ours.get("properties", {name: True})]
    return f"{names[0]} has no {' and no '.join(lost)}, as {names[1]} has" if lost else ""


def shown(tools: Iterable[Tool]) -> dict[str, tuple[object, ...]]:
    """Return one provider's tools as clients and models see them, by name; equal where they look the same."""
    return {
        tool.meta.name: (
            tool.contract_hash,
            tool.prompt_hash,
            tool.quarantined,
            tool.meta.definition,
            tool.meta.capability_level,
            tool.meta.risk_level,
            tool.meta.side_effects,
            tool.meta.idempotent,
        )
        for tool in tools
    }


def _operations(tools: Sequence[Tool]) -> dict[str, Tool]:
    """Return what `args.operation` may be: the last part of a name where that is unambiguous, else the full name."""
    last = [tool.meta.name.rpartition(".")[2] for tool in tools]
    times = Counter(last)
    return {part if times[part] == 1 else tool.meta.name: tool for part, tool in zip(last, tools, strict=True)}


def _withheld(tool: Tool, reason: str) -> ResolveError:
    text = reason.removesuffix(tool.remedy).rstrip() or reason  # what to do is said once, as the remedy
    return ResolveError(f"{tool.meta.name} is withheld: {text}", code=Code.TOOL_QUARANTINED, remedy=tool.remedy)


MAX_LISTED: Final = 12


def suggestion(name: str, known: Iterable[str]) -> str:
    """A remedy for a name that is not known."""
    return did_you_mean(name.lower(), known, most=3) or "`remit tools` lists the tools."


def listed(names: Iterable[str]) -> str:
    """Some names as text, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - MAX_LISTED} more" if len(every) > MAX_LISTED else ""
    return ", ".join(every[:MAX_LISTED]) + more


__all__ = ["Catalog", "ResolveError", "Tool"]

PREFERRED: Final = ("builtin", "mcp_*", "web", "stub")
LIST_TIMEOUT_S: Final = 30.0
"""Seconds after which a provider that does not list its tools counts as failed."""

_AT_ONCE: Final = 16
"""Tools admitted before others get their turn: about a millisecond's work."""

_log: Final = logging.getLogger("remit.tools")


class Catalog:
    """Finds the tool a name means.

    The ids of its providers are unique. `order` holds patterns of provider ids, such as `mcp_*`; who matches none comes
    after, as registered. `choose` decides between several tools of one name: by that order, or the one of the lowest
    level and risk. `closed` refuses arguments no schema declares. `list_timeout_s` is what one listing of one provider
    may take. `versions` gives a tool its version where its provider gives none. Raises NameInvalidError.
    """

    def __init__(
        self,
        providers: Sequence[ToolProvider],
        *,
        order: Sequence[str] = PREFERRED,
        choose: Literal["order", "safest"] = "order",
        closed: bool = True,
        list_timeout_s: float = LIST_TIMEOUT_S,
        versions: ToolVersionRegistry | None = None,
    ) -> None:
        self._reserved: dict[str, tuple[str, ...]] = {}
        """Patterns of names that one provider alone may offer, by its id, also while it cannot be listed."""
        self._providers: dict[str, ToolProvider] = {}
        self._servers: frozenset[str] = frozenset()
        self._others: frozenset[str] = frozenset()
        self._followers: dict[str, Follows] = {}
        self._order = tuple(order)
        self._ranks: dict[str, int] = {}
        self._preference = Preference(self._ranks, choose == "safest")
        self._closed = closed
        self._list_timeout_s = list_timeout_s
        self._versions = versions
        self._closing = False
        self._listings = Listings(self._list, self._enter)
        self._stale = self._listings.stale
        self._unlisted: set[str] = set()
        self._listed: dict[str, list[Tool]] = {}
        self._index = NameIndex((), self._preference)
        self._listeners: dict[object, Callable[[], None]] = {}
        self.failures: dict[str, str] = {}
        """The reasons why providers could not be listed, by id; such a one has no tools until it is listed again."""
        self._down: AbstractSet[str] = frozenset()
        """Providers that could not be listed, as listeners were told."""
        for provider in providers:
            self.add(provider)

    def add(self, provider: ToolProvider) -> None:
        """Take one provider more. Raises NameInvalidError if its id is taken."""
        provider_id = check_provider_id(provider.provider_id)
        if provider_id in self._providers:
            raise NameInvalidError(f"two providers are called {provider_id}", remedy="Give one of them another id.")
        self._providers[provider_id] = provider
        if provider_id.startswith("mcp_"):
            self._servers |= {provider_id}
        else:
            self._others |= {provider_id}
        self._ranks[provider_id] = _rank(provider_id, self._order)
        self._listed[provider_id] = []
        self._unlisted.add(provider_id)
        self._listings.add(provider_id)
        if isinstance(provider, Reserves):
            self._reserved[provider_id] = tuple(provider.reserves)
        if supports(provider, Watched):
            provider.watch(partial(self.invalidate, provider_id))
        if supports(provider, Follows):
            self._followers[provider_id] = provider

    def remove(self, provider_id: str) -> ToolProvider:
        """Drop a provider and its tools, and return it: the caller ends it, and tells listeners.

        Raises KeyError if no provider has this id.
        """
        provider = self._providers.pop(provider_id)
        self._servers, self._others = self._servers - {provider_id}, self._others - {provider_id}
        self._down -= {provider_id}
        self._unlisted.discard(provider_id)
        for table in (self._listed, self._reserved, self._followers, self.failures):
            table.pop(provider_id, None)
        self._listings.remove(provider_id)
        self._index = NameIndex(self._listed.values(), self._preference)
        del self._ranks[provider_id]
        return provider

    @property
    def shadowed(self) -> Mapping[str, tuple[str, ...]]:
        """Providers that offer a name but were not chosen for it, by the name."""
        return {name: tuple(tool.meta.provider_id for tool in tools) for name, tools in self._index.shadowed.items()}

    @property
    def unlike(self) -> Mapping[str, str]:
        """Names whose tool promises a result of another form than one in whose place it came, and how they differ."""
        tools, shadowed = self._index.by_name, self._index.shadowed
        differences = {name: [_difference(tools[name], other) for other in shadowed[name]] for name in shadowed}
        return {name: next(filter(None, each)) for name, each in differences.items() if any(each)}

    @property
    def version(self) -> str:
        """Digest over the names and contracts of all tools that can be called, as last listed."""
        return self._index.version

    @property
    def listing(self) -> frozenset[str]:
        """Ids of the providers that are being listed: what they offer now is not known yet."""
        return self._listings.under_way

    async def tools(self, patience_s: float | None = None) -> list[Tool]:
        """Every tool, quarantined ones included, by name.

        Waits until no provider is stale, but no longer than `patience_s` seconds where that is given; `listing` then
        tells whose tools may still change.
        """
        self._follow(self._followers)
        if self._stale:
            with suppress(TimeoutError):  # what is known so far is what was asked for
                async with asyncio.timeout(patience_s):
                    await self._listings.fresh(self._stale)
        return list(self._index.tools)

    async def resolve(self, name: str, args: Args) -> tuple[Tool, Args]:
        """The tool a full name, wire name or key means, and its arguments (without `operation` where a key took it).

        Suspends only where the answer may depend on a provider that has to be listed. Raises ResolveError with
        UNKNOWN_TOOL, INVALID_TOOL_STEP or TOOL_QUARANTINED.
        """
        tool = self.at_hand(name)
        if tool is not None:
            return tool, args
        await self._listings.fresh(self._awaited(name, self.known(name)))
        if name not in self._index.by_name:  # someone may stand in for a server
            await self._listings.fresh(self._stale & self._others)
        return self.lookup(name, args)

    def at_hand(self, name: str) -> Tool | None:
        """The tool that a full or wire name means, if that is known at once and the tool may be called."""
        tool = self._index.by_name.get(name)
        if self._followers:
            tool = self._followed(name)
        if tool is None or tool.quarantined is not None or (self._stale and self._awaited(name, tool)):
            return None
        return tool

    def lookup(self, name: str, args: Args) -> tuple[Tool, Args]:
        """Resolve as `resolve` does, from what was last listed. Raises ResolveError."""
        bearing, under_way = self._bearing(name), self.listing
        missing = {each: reason for each, reason in self.failures.items() if each in bearing}
        missing |= dict.fromkeys(bearing & under_way, "they are being listed")
        return self._index.lookup(name, args, missing)

    async def find(self, name: str) -> Tool | None:
        """The tool of a full or wire name, even a quarantined one; waits only for providers that may offer it."""
        tool = self._followed(name)
        if self._stale and (waiting := self._awaited(name, tool)):
            await self._listings.fresh(waiting)
        return self.known(name)

    def known(self, name: str) -> Tool | None:
        """The tool of a full or wire name as last listed, even a quarantined one."""
        return self._index.by_name.get(name)

    @property
    def settled(self) -> bool:
        """Return whether every provider is listed: `version` is that of all tools."""
        return not self._stale and not self.listing and not self.failures

    def heard(self, provider_id: str) -> bool:
        """Return whether it is known what a provider offers: it is here, and was listed without a failure."""
        known = provider_id in self._providers and provider_id not in self._unlisted
        return known and provider_id not in self.failures and provider_id not in self.listing

    @property
    def providers(self) -> tuple[ToolProvider, ...]:
        """Every provider, in the order in which they came."""
        return tuple(self._providers.values())

    @property
    def provider_ids(self) -> tuple[str, ...]:
        """Every provider, in no order that means something."""
        return tuple(self._providers)

    def provider(self, provider_id: str) -> ToolProvider | None:
        """The provider of this id."""
        return self._providers.get(provider_id)

    async def offers(self) -> set[str]:
        """Say the dependencies met here: names and keys of tools without a server, ids and keys of servers that are up.

        A server that was not listed yet counts as up; none is started for this.
        """
        await self._listings.fresh(self._stale & self._others)
        names = {
            word
            for tool in self._index.tools
            if tool.quarantined is None and tool.meta.provider_id not in self._servers
            for word in (tool.meta.name, tool.key)
        }
        up = self._servers - self.failures.keys()
        return names | up | {each.removeprefix("mcp_") for each in up}

    def invalidate(self, provider_id: str | None = None) -> None:
        """Have a provider (all of them) listed again before its tools are next used."""
        every = self._providers.keys()
        if self._listings.invalidate(every if provider_id is None else every & {provider_id}):
            self.tell()

    async def reach(self, dependencies: Iterable[str]) -> None:
        """List the providers behind readiness keys that are stale, and so connect them; `mcp` stands for all."""
        keys = set(dependencies)
        behind = {
            provider_id
            for provider_id, provider in self._providers.items()
            if isinstance(provider, Probed) and keys & {provider.dependency, "mcp"}
        }
        await self._listings.fresh(self._stale & behind)

    async def refresh(self) -> None:
        """List every provider again, now."""
        self.invalidate()
        await self.tools()

    def watch(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have `listener` called whenever the tools may differ from what `tools` last gave; returns what ends that.

        It is called in the event loop's thread: when a provider was invalidated that was not already waiting to be
        listed, and when a listing brought other tools, texts, levels or reasons to withhold them, or failed where the
        one before did not, or the other way round. What it raises is logged.
        """
        key = object()
        self._listeners[key] = listener

        def end() -> None:
            self._listeners.pop(key, None)

        return end

    async def close(self) -> None:
        """End listings, then close every provider; what one of them raises does not keep the others open."""
        self._closing = True
        await self._listings.close()
        providers = list(self._providers.values())
        results = await asyncio.gather(*(provider.close() for provider in providers), return_exceptions=True)
        for provider, result in zip(providers, results, strict=True):
            if isinstance(result, Exception):
                self.failures[provider.provider_id] = _words(result)

    # --- who is waited for

    def _followed(self, name: str) -> Tool | None:
        """Return the tool of this name as last listed, once who may have another by now is stale."""
        tool = self._index.by_name.get(name)
        if self._followers and (tool is None or tool.meta.provider_id in self._followers):
            self._follow(self._followers if tool is None else (tool.meta.provider_id,))
        return tool

    def _follow(self, provider_ids: Iterable[str]) -> None:
        for provider_id in provider_ids:
            if provider_id not in self._stale and self._followers[provider_id].outdated():
                self.invalidate(provider_id)

    def _bearing(self, name: str) -> AbstractSet[str]:
        """The providers that decide what a name means."""
        full = name.replace("__", ".")
        if "." not in full:
            return self._others | (self._servers & {f"mcp_{name}"})
        owner = self._servers & {provider_of(full)}
        return owner or self._others

    def _awaited(self, name: str, tool: Tool | None) -> AbstractSet[str]:
        """Those of them whose listing has to be waited for, given the tool of that name as last listed.

        The choice among rivals is made again only with a listing, so a tool that is not stale itself waits only for
        rivals that were never heard.
        """
        decided = tool is not None and tool.meta.provider_id not in self._stale
        return self._bearing(name) & (self._unlisted if decided else self._stale)

    # --- listing

    async def _list(self, provider_id: str) -> list[Tool]:
        """Return what one provider offers; nothing, and the reason kept, where it fails."""
        deadline = asyncio.timeout(self._list_timeout_s)
        try:
            provider = self._open(provider_id)
            async with deadline:
                metas = await provider.list_tools()
            tools = await self._admitted([meta for meta in metas if self._may_offer(provider_id, meta.name)], provider)
        except (Exception, asyncio.CancelledError) as error:  # one failing provider never empties the others
            if isinstance(error, asyncio.CancelledError) and cancelled():
                raise
            late = f"no list within {self._list_timeout_s:g} s"
            self.failures[provider_id] = late if deadline.expired() else _words(error)
            return []
        self.failures.pop(provider_id, None)
        return tools

    def _may_offer(self, provider_id: str, name: str) -> bool:
        owners = [
            owner for owner, names in self._reserved.items() if any(fnmatchcase(name, pattern) for pattern in names)
        ]
        return not owners or provider_id in owners

    def _open(self, provider_id: str) -> ToolProvider:
        if self._closing:
            raise ProviderError("the catalog is closed", cause=Code.ProviderClosed)
        return self._providers[provider_id]

    async def _admitted(self, metas: Sequence[ToolMeta], provider: ToolProvider) -> list[Tool]:
        times = Counter(meta.name for meta in metas)
        tools = []
        for meta in {meta.name: meta for meta in metas}.values():
            _check_levels(meta)
            meta = await self._versioned(meta)  # noqa: PLW2901 - the same tool, with its version
            tools.append(
                admit(meta, provider, closed=self._closed)
                if times[meta.name] == 1
                else quarantine(meta, provider, f"its provider lists the name {times[meta.name]} times")
            )
            if len(tools) % _AT_ONCE == 0:
                await asyncio.sleep(0)  # noqa: TID251 - waits for nothing: others get their turn
        return tools

    async def _versioned(self, meta: ToolMeta) -> ToolMeta:
        """Give a tool the registry's version, if its provider gives it none. What the registry raises is logged."""
        if self._versions is None or meta.version:
            return meta
        try:
            version = await self._versions.get_tool_version(meta.name)
        except Exception:  # noqa: BLE001 - the registry is the user's own, and a tool without a version still works
            _log.exception("%s: the registry of versions failed", meta.name)
            return meta
        if version is None:
            return meta
        with suppress(NotCanonicalError):  # such a tool is quarantined, and the reason said
            if version.request_schema_hash not in {"", schema_hash(meta.input_schema or {})}:
                _log.warning("%s %s has another input schema in the registry", meta.name, version.version)
        return replace(meta, version=version.version)

    def _enter(self, provider_id: str, tools: list[Tool]) -> None:
        before, self._listed[provider_id] = self._listed[provider_id], tools
        self._unlisted.discard(provider_id)
        self._index = NameIndex(self._listed.values(), self._preference)
        down, self._down = self._down, self._down - {provider_id} | self.failures.keys() & {provider_id}
        if shown(before) != shown(tools) or down != self._down:
            self.tell()

    def tell(self) -> None:
        """Tell listeners that what callers see of the tools may differ, as after a change of the rules."""
        for listener in list(self._listeners.values()):
            try:
                listener()
            except Exception:  # noqa: BLE001 - it is theirs, and harms no other listener
                _log.exception("a listener of the catalog failed")


def _rank(provider_id: str, order: Sequence[str]) -> int:
    matching = (place for place, pattern in enumerate(order) if _fits(provider_id, pattern))
    return next(matching, len(order))


def _fits(provider_id: str, pattern: str) -> bool:
    """Return whether a pattern means a provider; most name one, and need not be compiled."""
    return fnmatchcase(provider_id, pattern) if set("*?[") & set(pattern) else provider_id == pattern


def _check_levels(meta: ToolMeta) -> None:
    """Return what rivals are compared by has to be comparable. Raises ValueError."""
    Level(meta.capability_level)
    Risk(meta.risk_level)


def _words(error: BaseException) -> str:
    if isinstance(error, ProviderError):
        return f"{error.cause}: {error}"
    return f"{type(error).__name__}: {error}".removesuffix(": ")
