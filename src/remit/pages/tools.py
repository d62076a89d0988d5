"""Tools: the catalog, by provider."""

from __future__ import annotations

from itertools import groupby
from typing import ClassVar, Final

import msgspec

from remit.codes import Code
from remit.http.problem import HttpProblem
from remit.pages.page import Page, PageRequest, PageView
from remit.policy.overlay import covers
from remit.record.views import ToolView

OUTLOOKS: Final = {
    "runs": ("runs", "quiet"),
    "asks": ("asks", "asks"),
    "denied": ("denied", "bad"),
    "depends": ("depends on arguments", "asks"),
}
"""The outlook of a tool's calls, in words and how it looks."""
_ABOUT: Final = 200


class ToolsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which tools."""

    find: str = ""
    provider: str = ""


class ToolRow(msgspec.Struct, frozen=True, kw_only=True):
    """A tool in the list."""

    name: str
    level: str
    word: str
    tone: str
    version: str
    isolation: str
    about: str
    """Why it is withheld, or the first line of what it does."""


class ProviderTools(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's tools."""

    id: str
    server: str
    """The MCP server's name; empty for another provider."""
    lines: tuple[ToolRow, ...]


class ToolsPage(PageView, frozen=True, kw_only=True):
    """The catalog."""

    template: ClassVar[str] = "tools.html"
    query: ToolsQuery
    ids: tuple[str, ...]
    """Providers to choose from."""
    providers: tuple[ProviderTools, ...]
    matches: int
    all: int
    failures: tuple[tuple[str, str], ...]
    """Providers that could not be listed, and why."""


async def tools(request: PageRequest) -> ToolsPage:
    """The tools that the reader may see."""
    query: ToolsQuery = request.query
    every = await seen(request)
    wanted = query.find.casefold()
    tools_shown = [
        tool
        for tool in every
        if (not query.provider or tool.provider_id == query.provider)
        and wanted in f"{tool.name} {tool.key} {tool.description}".casefold()
    ]
    tools_shown.sort(key=lambda tool: (tool.provider_id, tool.name))
    failures = {} if request.access.tools else await request.service.tools.failures(PATIENCE_S)
    return ToolsPage(
        title="Tools",
        query=query,
        ids=tuple(sorted({tool.provider_id for tool in every})),
        providers=tuple(
            ProviderTools(id=name, server=server_of(name), lines=tuple(map(line_of, group)))
            for name, group in groupby(tools_shown, key=lambda tool: tool.provider_id)
        ),
        matches=len(tools_shown),
        all=len(every),
        failures=tuple(sorted(failures.items())),
    )


def server_of(provider_id: str) -> str:
    """The MCP server behind a provider; empty if it is none."""
    return provider_id.removeprefix("mcp_") if provider_id.startswith("mcp_") else ""


def standing_of(tool: ToolView) -> tuple[str, str]:
    """Return what becomes of its calls, in a word, and how that looks."""
    return ("withheld", "bad") if tool.quarantined else OUTLOOKS[tool.policy]


def line_of(tool: ToolView) -> ToolRow:
    """A tool as a line."""
    word, tone = standing_of(tool)
    first = tool.description.strip().partition("\n")[0]
    return ToolRow(
        name=tool.name,
        level=tool.capability_level,
        word=word,
        tone=tone,
        version=tool.version,
        isolation=tool.isolation or ("" if server_of(tool.provider_id) else "this process"),
        about=tool.quarantined or (first if len(first) <= _ABOUT else f"{first[:_ABOUT]}…"),
    )


PAGES: Final = (
    Page(
        path="/tools",
        scope="read",
        handler=tools,
        name="Tools",
        key="t",
        under="What may run?",
        about="the catalog: levels, versions, what policy says, a form to try each",
        query=ToolsQuery,
        live="tools",
    ),
)


PATIENCE_S: Final = 1.0
"""Seconds that a page waits for servers that are still connecting."""


async def seen(request: PageRequest) -> list[ToolView]:
    """Every tool that the reader may see, by name."""
    return [tool for tool in await request.service.tools.views(PATIENCE_S) if _covered(request, tool)]


async def seen_tool(request: PageRequest, name: str) -> ToolView:
    """One of them. Raises ResolveError or Problem."""
    view = await request.service.tools.view(name)
    if not _covered(request, view):
        raise HttpProblem(Code.UNKNOWN_TOOL)
    return view


def _covered(request: PageRequest, tool: ToolView) -> bool:
    return not request.access.tools or covers(request.access.tools, tool.name, tool.key)
