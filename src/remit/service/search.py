"""Finds jobs by what their heads do not index: when they were made, words in their titles, and who asked for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from remit.jobs.state import KIND, stream_of
from remit.journal.event import HeadQuery
from remit.journal.kinds import JobCreated, SessionOpened, decode
from remit.service.heads import stream_named
from remit.service.views import JobRow, job_row

if TYPE_CHECKING:
    from remit.journal.journal import Journal

_PAGE: Final = 500
_LOOKED_AT: Final = 5_000
"""Jobs that one search looks at; a longer one goes on from where it ended."""


class JobSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs; every condition has to hold."""

    states: tuple[str, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    since: int = 0
    """Created at this moment or later; microseconds since the Unix epoch."""
    until: int | None = None
    """Created before this moment."""
    text: str = ""
    """Stands in the title, the name or the identifier, in capitals or not."""
    principal: str = ""
    """Who asked for it."""
    before: str = ""
    """Continue after this job of an earlier page."""
    limit: int = 20


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A page of what was found."""

    rows: list[JobRow]
    next: str | None
    """`before` of the next page; None if there is no more. A page may be short and still have a next one."""


async def search(journal: Journal, wanted: JobSearch) -> Found:
    """The newest jobs that are wanted, newest first."""
    rows: list[JobRow] = []
    before, looked_at = wanted.before, 0
    while looked_at < _LOOKED_AT:
        query = HeadQuery(
            kind=KIND,
            states=wanted.states,
            labels=wanted.labels,
            limit=_PAGE,
            before=stream_of(before) if before else None,
        )
        heads = await journal.heads(query)
        for head in heads:
            row = job_row(head)
            if row.created_at < wanted.since:
                return Found(rows=rows, next=None)  # the others are older
            before = row.job
            if await _fits(journal, row, wanted):
                rows.append(row)
                if len(rows) == wanted.limit:
                    return Found(rows=rows, next=before)
        if len(heads) < _PAGE:
            return Found(rows=rows, next=None)
        looked_at += len(heads)
    return Found(rows=rows, next=before)


async def _fits(journal: Journal, row: JobRow, wanted: JobSearch) -> bool:
    if wanted.until is not None and row.created_at >= wanted.until:
        return False
    words = f"{row.title}\n{row.name}\n{row.job}".casefold()
    if wanted.text.casefold() not in words:
        return False
    return not wanted.principal or await principal_of(journal, row.job) == wanted.principal


async def principal_of(journal: Journal, job: str) -> str:
    """Who asked for a job, or opened a session; empty if that is not recorded."""
    first = (await journal.page(stream_named(job)))[:1]
    begun = decode(first[0].kind, first[0].data) if first else None
    return begun.principal if isinstance(begun, JobCreated | SessionOpened) else ""
