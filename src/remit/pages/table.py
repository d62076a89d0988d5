"""Every page, by noun. A noun is added here and in a file of its own."""

from __future__ import annotations

from typing import Final

from remit.pages import (
    actions,
    agents,
    answers,
    bulk,
    inbox,
    job,
    jobs,
    overview,
    policy,
    question,
    servers,
    session,
    tickets,
    tool,
    tools,
    usage,
    workers,
)
from remit.pages.page import Page

PAGES: Final[tuple[Page, ...]] = (
    *overview.PAGES,
    *jobs.PAGES,
    *bulk.PAGES,
    *job.PAGES,
    *actions.PAGES,
    *inbox.PAGES,
    *answers.PAGES,
    *question.PAGES,
    *agents.PAGES,
    *policy.PAGES,
    *servers.PAGES,
    *session.PAGES,
    *tickets.PAGES,
    *tool.PAGES,
    *tools.PAGES,
    *usage.PAGES,
    *workers.PAGES,
)
"""The table."""
