"""Overview: does anything wait for me, is anything wrong, what goes on."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from remit.pages.chart import Chart, by_hour, by_length
from remit.pages.jobs import JobListRow, line_of
from remit.pages.page import Page, PageRequest, PageView
from remit.record.views import ConfirmationView

_SHOWN: Final = 10
_LOOKED_AT: Final = 200
"""Open jobs that are looked at for trouble."""
_OPEN: Final = ("running", "waiting", "pending")
_STATES: Final = ("running", "waiting", "pending", "completed", "failed", "cancelled")


class Count(msgspec.Struct, frozen=True):
    """How many jobs are in a state."""

    state: str
    number: int


class Overview(PageView, frozen=True, kw_only=True):
    """What needs someone first, then the newest jobs."""

    template: ClassVar[str] = "overview.html"
    questions: tuple[ConfirmationView, ...]
    total: int
    """The number of questions in all."""
    asking: tuple[JobListRow, ...]
    """Jobs that need someone for another reason than a question."""
    trouble: tuple[JobListRow, ...]
    troubled: int
    looked_at: int
    """The number of newest open jobs that were looked at for trouble, if there are more; 0: all of them."""
    counts: tuple[Count, ...]
    newest: tuple[JobListRow, ...]
    hours: Chart
    """The number of jobs that began in each hour of the last day."""
    lengths: Chart
    """The time that they took."""
    outdated: tuple[str, ...]
    """Processes that run with an older remit.toml than there is now."""


async def overview(request: PageRequest) -> Overview:
    """Look at the open questions, the newest open jobs, the counts, and the last day."""
    jobs, now = request.service.jobs, request.now
    questions = await request.service.confirmations.pending()
    opened = await jobs.rows(_OPEN, limit=_LOOKED_AT)
    lines = [line_of(row, now) for row in opened]
    trouble = [line for line in lines if line.standing.tone == "bad"]
    asking = [line for line in lines if line.standing.word == "uncertain"]
    counts = await jobs.counts()
    since, day = await request.memory.day.tallies(now)
    return Overview(
        title="Overview",
        questions=tuple(questions[:_SHOWN]),
        total=len(questions),
        asking=tuple(asking[:_SHOWN]),
        trouble=tuple(trouble[:_SHOWN]),
        troubled=len(trouble),
        looked_at=len(opened) if len(opened) == _LOOKED_AT < sum(counts.get(state, 0) for state in _OPEN) else 0,
        counts=tuple(Count(state, counts.get(state, 0)) for state in _STATES),
        newest=tuple(line_of(row, now) for row in await jobs.rows(limit=_SHOWN)),
        hours=by_hour(day, since),
        lengths=by_length(day),
        outdated=tuple(view.words for view in await request.service.workers.views() if view.outdated),
    )


PAGES: Final = (
    Page(
        path="/",
        scope="read",
        handler=overview,
        name="Overview",
        key="o",
        about="what needs you, trouble, the last 24 hours",
        live="heads",
    ),
)
