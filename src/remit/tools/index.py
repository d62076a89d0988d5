"""The sum of all listings: one tool per name, and what each key covers. Made as a whole, then never changed.

Where several providers offer one name, order or safety decides among them, and the choice does not move on its own: if
the chosen tool is quarantined, the name is withheld rather than answered by the next best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final

from remit.canonical import digest
from remit.codes import Code
from remit.errors import UsageError
from remit.nearest import did_you_mean
from remit.tools.meta import Risk
from remit.tools.tool import Tool

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


@dataclass(frozen=True, slots=True)
class Preference:
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


class Index:
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
        self.shadowed: dict[str, tuple[str, ...]] = {}
        for name, tools in rivals.items():
            chosen[name], *others = sorted(tools, key=preference)
            self.shadowed[name] = tuple(other.meta.provider_id for other in others)
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
            given = f"{operation!r:.100} is not one of them" if "operation" in args else "args.operation is missing"
            raise ResolveError(
                f"the key {name} covers {len(choices)} tools and {given}",
                code=Code.INVALID_TOOL_STEP,
                remedy=f"Set args.operation to one of: {listed(choices)}.",
            )
        return chosen, {key: value for key, value in args.items() if key != "operation"}

    def _unknown(self, name: str, missing: Mapping[str, str]) -> ResolveError:
        known = [*self.by_name, *self._covered]
        known = [each for each in known if ("__" in each) == ("__" in name)]  # models spell names otherwise than people
        why = "".join(f"; the tools of {each} are not known: {why}" for each, why in sorted(missing.items()))
        if any(each.startswith("mcp_") for each in missing):  # it may be there once its server answers
            remedy = "Try again once the server answers; `remit mcp test` shows what is wrong with it."
            return ResolveError(f"no tool is called {name!r:.100}{why}", code=_DOWN, remedy=remedy)
        return ResolveError(f"no tool is called {name!r:.100}{why}", remedy=suggestion(name, known))


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
    why = reason.removesuffix(tool.remedy).rstrip() or reason  # what to do is said once, as the remedy
    return ResolveError(f"{tool.meta.name} is withheld: {why}", code=Code.TOOL_QUARANTINED, remedy=tool.remedy)


MAX_LISTED: Final = 12


def suggestion(name: str, known: Iterable[str]) -> str:
    """A remedy for a name that is not known."""
    return did_you_mean(name.lower(), known, most=3) or "`remit tools` lists the tools."


def listed(names: Iterable[str]) -> str:
    """Some names as text, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - MAX_LISTED} more" if len(every) > MAX_LISTED else ""
    return ", ".join(every[:MAX_LISTED]) + more
