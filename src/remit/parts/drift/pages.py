"""The page of versions: which ones open jobs need, whether a process has them, and what can be retired."""

from __future__ import annotations

from typing import ClassVar, Final

from remit.pages.page import Page, PageRequest, PageView
from remit.parts.drift.needs import VersionsReport

PATIENCE_S: Final = 2.0
"""Seconds that the page waits for servers that are still connecting."""


class VersionsPage(PageView, frozen=True, kw_only=True):
    """What open jobs need; what no process has stands first."""

    template: ClassVar[str] = "versions.html"
    report: VersionsReport


async def versions(request: PageRequest) -> VersionsPage:
    """Look through the record. Raises HttpProblem for a token that may use some tools only."""
    request.access.require_all_tools("what jobs of others need")
    report: VersionsReport = await request.service.drift.versions(PATIENCE_S)
    return VersionsPage(title="Versions", report=report)


PAGES: Final = (
    Page(
        path="/versions",
        scope="read",
        handler=versions,
        name="Versions",
        key="r",
        under="What runs where?",
        about="code and tools that open jobs need, jobs that a new version strands",
    ),
)
