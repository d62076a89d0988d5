"""Finds jobs by what their heads do not index: when they were made, recorded words, and who asked for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from remit.errors import RecordPrunedError
from remit.jobs.state import KIND, stream_of
from remit.journal.event import Event, HeadQuery
from remit.journal.journal import PAGE
from remit.journal.kinds import ErrorInfo, JobCreated, SessionOpened, decode
from remit.journal.labels import Bound
from remit.record.heads import stream_named
from remit.record.views import JobRow, job_row

if TYPE_CHECKING:
    from remit.journal.event import StreamHead
    from remit.journal.journal import Journal

_PAGE: Final = 500
_VALUES: Final = ("input", "args", "result")
"""Fields of events that hold inputs, arguments and results."""
_LOOKED_AT: Final = 5_000
"""Jobs that one search looks at; a longer one goes on from where it ended."""


class JobSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs; every condition has to hold."""

    states: tuple[str, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    bounds: tuple[Bound, ...] = ()
    """Conditions on the sizes of labels."""
    since: int = 0
    """Created at this moment or later; microseconds since the Unix epoch."""
    until: int | None = None
    """Created before this moment."""
    text: str = ""
    """Stands in the title, the name, the identifier, the input, an argument, a result or an error, in capitals or not.

    Values of more than 8 KiB and events between the first and the last 1,000 of a job are not looked at.
    """
    principal: str = ""
    """The principal that asked for it."""
    before: str = ""
    """Continue after this job of an earlier page."""
    limit: int = 20


class FoundPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of what was found."""

    rows: list[JobRow]
    next: str | None
    """`before` of the next page; None if there is no more. A page may be short and still have a next one."""


async def search(journal: Journal, wanted: JobSearch) -> FoundPage:
    """The newest jobs that are wanted, newest first."""
    rows: list[JobRow] = []
    before, looked_at = wanted.before, 0
    while looked_at < _LOOKED_AT:
        query = HeadQuery(
            kind=KIND,
            states=wanted.states,
            labels=wanted.labels,
            bounds=wanted.bounds,
            limit=_PAGE,
            before=stream_of(before) if before else None,
        )
        heads = await journal.heads(query)
        for head in heads:
            row = job_row(head)
            if row.created_at < wanted.since:
                return FoundPage(rows=rows, next=None)  # the others are older
            before = row.job
            if await _fits(journal, head, row, wanted):
                rows.append(row)
                if len(rows) == wanted.limit:
                    return FoundPage(rows=rows, next=before)
        if len(heads) < _PAGE:
            return FoundPage(rows=rows, next=None)
        looked_at += len(heads)
    return FoundPage(rows=rows, next=before)


async def _fits(journal: Journal, head: StreamHead, row: JobRow, wanted: JobSearch) -> bool:
    if wanted.until is not None and row.created_at >= wanted.until:
        return False
    words = f"{row.title}\n{row.name}\n{row.job}".casefold()
    titled = wanted.text.casefold() in words
    if titled and not wanted.principal:
        return True
    try:
        first = await journal.page(head.stream)
    except RecordPrunedError:
        return titled and not wanted.principal
    if wanted.principal and _principal(first) != wanted.principal:
        return False
    rest = await journal.page(head.stream, max(first[-1].seq, head.seq - PAGE)) if len(first) == PAGE else []
    return titled or any(_tells(event, wanted.text) for event in (*first, *rest))


def _tells(event: Event, text: str) -> bool:
    """Return whether a text stands in a value that an event records, as JSON writes it, or in its error."""
    needle = msgspec.json.encode(text)[1:-1].decode().casefold()
    payload = decode(event.kind, event.data)
    error = getattr(payload, "error", None)
    values = [getattr(payload, name, None) for name in _VALUES]
    texts = [bytes(value).decode() for value in values if isinstance(value, msgspec.Raw)]
    return any(needle in recorded.casefold() for recorded in texts) or (
        isinstance(error, ErrorInfo) and text.casefold() in f"{error.code} {error.message}".casefold()
    )


async def principal_of(journal: Journal, job: str) -> str:
    """Return who asked for a job, or opened a session; empty if that is not recorded."""
    return _principal(await journal.page(stream_named(job)))


def _principal(first: list[Event]) -> str:
    begun = decode(first[0].kind, first[0].data) if first else None
    return begun.principal if isinstance(begun, JobCreated | SessionOpened) else ""
