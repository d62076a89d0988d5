"""Recipes that come with Remit."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability

CAPABILITIES: Final = (
    Capability(
        name="research_report",
        about="Answer a question from files and pages of the web, with citations.",
        providers="remit.parts.recipes.report_files:open_report",
        provider_ids=("report",),
        tools=True,
        recipes=("remit.parts.recipes.research_report:research_report",),
        outputs="remit.parts.recipes.verification:reader_of",
    ),
)
