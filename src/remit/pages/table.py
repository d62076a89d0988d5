"""Every page: the core's, by noun, and those of parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from remit.pages import (
    actions,
    answers,
    bulk,
    generations,
    inbox,
    job,
    jobs,
    overview,
    policy,
    question,
    search,
    servers,
    session,
    tool,
    tools,
    usage,
    workers,
)
from remit.pages.page import Page
from remit.wiring.capabilities import FIRST_PARTY
from remit.wiring.parts import check_names, tuples_of

if TYPE_CHECKING:
    from remit.capability import Capability

_CORE: Final[tuple[Page, ...]] = (
    *overview.PAGES,
    *search.PAGES,
    *jobs.PAGES,
    *bulk.PAGES,
    *job.PAGES,
    *actions.PAGES,
    *inbox.PAGES,
    *answers.PAGES,
    *question.PAGES,
    *policy.PAGES,
    *servers.PAGES,
    *session.PAGES,
    *tool.PAGES,
    *tools.PAGES,
    *usage.PAGES,
    *generations.PAGES,
    *workers.PAGES,
)


def pages_of(parts: Iterable[Capability]) -> tuple[Page, ...]:
    """Return the pages of the core and of parts.

    Raise UsageError (MODULE_UNLOADABLE) for a part of others whose pages are not named after it.
    """
    pages = list(_CORE)
    for part in parts:
        for page in tuples_of((part,), "pages"):
            if part not in FIRST_PARTY:
                check_names(part, f"the page {page.path}", f"{page.path}/", f"/{part.name}/")
            pages.append(page)
    return tuple(pages)


PAGES: Final = pages_of(FIRST_PARTY)
"""Those of the core and of the parts that ship."""
