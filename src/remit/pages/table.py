"""Every page, by noun. A noun is added here and in a file of its own."""

from __future__ import annotations

from typing import Final

from remit.pages import actions, inbox, job, jobs, overview, question
from remit.pages.page import Page

PAGES: Final[tuple[Page, ...]] = (
    *overview.PAGES,
    *jobs.PAGES,
    *job.PAGES,
    *actions.PAGES,
    *inbox.PAGES,
    *question.PAGES,
)
"""The table."""
