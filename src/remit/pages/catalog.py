"""The tools that a reader may see: all, or those that their token is for."""

from __future__ import annotations

from typing import Final

from remit.codes import Code
from remit.http.problem import Problem
from remit.pages.page import PageRequest
from remit.policy.overlay import covers
from remit.record.views import ToolView

PATIENCE_S: Final = 1.0
"""Seconds that a page waits for servers that are still connecting."""


async def seen(asked: PageRequest) -> list[ToolView]:
    """Every tool that the reader may see, by name."""
    return [tool for tool in await asked.service.tools.views(PATIENCE_S) if _covered(asked, tool)]


async def seen_tool(asked: PageRequest, name: str) -> ToolView:
    """One of them. Raises ResolveError or Problem."""
    found = await asked.service.tools.view(name)
    if not _covered(asked, found):
        raise Problem(Code.UNKNOWN_TOOL)
    return found


def _covered(asked: PageRequest, tool: ToolView) -> bool:
    return not asked.access.tools or covers(asked.access.tools, tool.name, tool.key)
