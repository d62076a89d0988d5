"""Many jobs at once: wait until they come to rest, and replay them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from remit.errors import RemitError
from remit.jobs.replay import ReplayReport
from remit.jobs.state import ENDED, KIND, TIMERS, stream_of
from remit.journal.event import HeadQuery
from remit.journal.scan import every_head
from remit.record.heads import head_of
from remit.record.views import JobRow, job_row

if TYPE_CHECKING:
    from remit.journal.journal import Journal

OPEN: Final = ("pending", "running", "waiting")
"""States of a job that has not ended."""
Labels = Mapping[str, str] | None
"""Labels that jobs are chosen by; None: all of them."""
Replay = Callable[[str], Awaitable[ReplayReport]]
"""Replays one job. Raises RemitError if it cannot be replayed here."""
_PAGE: Final = 1_000
_SPACING_S: Final = 0.05
"""Changes are looked at this often at most."""


class Replayed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of many jobs and sessions that were replayed."""

    job: str
    name: str
    state: str
    report: ReplayReport | None = None
    code: str = ""
    """The reason why it could not be replayed."""
    reason: str = ""


def at_rest(row: JobRow, now: int) -> bool:
    """Return whether a job has ended, or waits for something from outside; a timer is not from outside."""
    if row.state in ENDED:
        return True
    if row.state != "waiting" or (row.due_at is not None and row.due_at <= now and not row.code):
        return False
    return bool(row.code) or not any(words in row.waiting_for for words in TIMERS)


async def settled(
    journal: Journal, jobs: Collection[str] | None = None, *, labels: Mapping[str, str] | None = None
) -> list[JobRow]:
    """Wait until every job is at rest: those given, else all that have these labels; their rows, newest first.

    No matter which processes run them. One query looks at all of them, and only when something has changed. Without
    `jobs`, those that had ended before are left out. Raises NotFoundError.
    """
    wanted = None if jobs is None else set(jobs)
    for job in wanted or ():
        await head_of(journal, job)
    names: set[str] = set() if wanted is None else wanted
    mark = 0
    while True:
        mark = await journal.heads_changed(mark)
        now, open_rows = journal.clock.now(), await _open(journal, labels or {}, oldest=min(wanted) if wanted else None)
        rows = [row for row in open_rows if wanted is None or row.job in wanted]
        names.update(row.job for row in rows)
        if all(at_rest(row, now) for row in rows):
            return [job_row(await head_of(journal, job)) for job in sorted(names, reverse=True)]
        await journal.clock.sleep(_SPACING_S)


async def _open(journal: Journal, labels: Mapping[str, str], *, oldest: str | None) -> list[JobRow]:
    """Jobs that have not ended, newest first, down to the oldest that is asked for."""
    rows: list[JobRow] = []
    before: str | None = None
    while page := await journal.heads(
        HeadQuery(kind=KIND, states=OPEN, labels=dict(labels), limit=_PAGE, before=before)
    ):
        rows += [job_row(head) for head in page]
        before = page[-1].stream
        if len(page) < _PAGE or (oldest is not None and before < stream_of(oldest)):
            break
    return rows


async def replayed(
    journal: Journal,
    replay: Replay,
    states: tuple[str, ...] = (),
    *,
    since: int = 0,
    labels: Mapping[str, str] | None = None,
) -> AsyncIterator[Replayed]:
    """Replay jobs one after the other, newest first: in these states, and created at `since` (µs) or later."""
    async for head in every_head(journal, HeadQuery(kind=KIND, states=states, labels=dict(labels or {}), since=since)):
        row = job_row(head)
        yield await replayed_row(replay, row.job, row.name, row.state)


async def replayed_row(replay: Replay, job: str, name: str, state: str) -> Replayed:
    """Replay one of many jobs or sessions; say why if it cannot be replayed."""
    try:
        report = await replay(job)
    except RemitError as error:
        return Replayed(job=job, name=name, state=state, code=error.code.name, reason=error.message)
    return Replayed(job=job, name=name, state=state, report=report)
