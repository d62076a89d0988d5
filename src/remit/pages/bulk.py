"""Many jobs at once: first what a filter finds, then the same done to each of them and what came out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar, Final, Literal

import msgspec

from remit.canonical import digest
from remit.codes import Code
from remit.errors import RemitError
from remit.http.access import Scope
from remit.http.problem import HttpProblem
from remit.pages.actions import json_value
from remit.pages.jobs import JobListRow, line_of, matching
from remit.pages.jobs import JobsQuery as Listed
from remit.pages.page import Page, PageRequest, PageView
from remit.record.views import JobRow
from remit.service.jobs import may_retry

Action = Literal["cancel", "resume", "signal", "retry"]
MOST: Final = 500
"""Jobs of one round; a larger filter takes several."""
TYPED: Final = 20
"""Jobs above which their number has to be typed."""
_EXAMPLES: Final = 10
_OPEN: Final = ("pending", "running", "waiting")
_STATES: Final[dict[Action, tuple[str, ...]]] = {
    "cancel": _OPEN,
    "resume": _OPEN,
    "signal": _OPEN,
    "retry": ("failed", "cancelled"),
}
"""In which states a job can be."""
_SCOPES: Final[dict[Action, Scope]] = {"cancel": "decide", "resume": "decide", "signal": "decide", "retry": "call"}


class BulkQuery(Listed, frozen=True, kw_only=True):
    """What to do, and with which jobs."""

    action: Action = "cancel"


class BulkForm(Listed, frozen=True, kw_only=True):
    """The same, confirmed."""

    seen: str
    """The digest of the jobs that were shown."""
    number: str = ""
    """Their number, typed."""
    reason: str = ""
    signal: str = ""
    """The name of a signal."""
    payload: str = ""
    """Its payload, as JSON; empty: it has none."""


class BulkPreview(PageView, frozen=True, kw_only=True):
    """What would be done."""

    template: ClassVar[str] = "bulk.html"
    action: Action
    filter: Listed
    fields: dict[str, object]
    """The filter, for links and hidden fields."""
    number: int
    more: bool
    """Whether there are more than one round takes."""
    examples: tuple[JobListRow, ...]
    digest: str
    typed: bool
    """Whether the number has to be typed."""
    able: bool
    """Whether the reader may do this."""
    wrong: str
    reason: str = ""
    """The text typed before, as that of the next two."""
    signal: str = ""
    payload: str = ""


class BulkOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came out of one job."""

    line: JobListRow
    made: str
    """The job that was created, for a retry."""
    code: str
    """Why it was refused; empty: it was done."""
    message: str


class BulkDone(PageView, frozen=True, kw_only=True):
    """What was done."""

    template: ClassVar[str] = "bulk_done.html"
    action: Action
    fields: dict[str, object]
    outcomes: tuple[BulkOutcome, ...]
    done: int


async def preview(request: PageRequest) -> BulkPreview:
    """Return what a filter finds that this can be done to."""
    return await _preview(request, request.query.action, request.query.parsed())


async def carry_out(action: Action, request: PageRequest) -> BulkPreview | BulkDone:
    """Do it to the jobs that were shown; if there are others by now, show those instead."""
    form: BulkForm = request.form
    jobs, _ = await _found(request, action, form)
    if form.seen != _seen(action, jobs):
        changed = "Other jobs match by now. Look at them, and confirm again."
        return await _preview(request, action, form, wrong=changed, status=Code.CONFIRMATION_MISMATCH.http)
    if len(jobs) > TYPED and form.number.strip() != str(len(jobs)):
        return await _preview(request, action, form, wrong=f"Type the number of jobs: {len(jobs)}.", status=400)
    outcomes = [await _one(request, action, row) for row in jobs]
    done = sum(not outcome.code for outcome in outcomes)
    return BulkDone(
        title=f"{action.capitalize()}: {done} of {len(outcomes)} jobs",
        action=action,
        fields=_kept(form),
        outcomes=tuple(sorted(outcomes, key=lambda outcome: not outcome.code)),
        done=done,
    )


async def _preview(
    request: PageRequest, action: Action, query: Listed, *, wrong: str = "", status: int = 200
) -> BulkPreview:
    jobs, more = await _found(request, action, query)
    names = ("reason", "signal", "payload") if isinstance(query, BulkForm) else ()
    return BulkPreview(
        title=f"{action.capitalize()} {len(jobs)} {'job' if len(jobs) == 1 else 'jobs'}",
        status=status,
        action=action,
        filter=query,
        fields=_kept(query),
        number=len(jobs),
        more=more,
        examples=tuple(line_of(row, request.now) for row in jobs[:_EXAMPLES]),
        digest=_seen(action, jobs),
        typed=len(jobs) > TYPED,
        able=request.access.allows(_SCOPES[action]),
        wrong=wrong,
        **{name: getattr(query, name) for name in names},
    )


async def _found(request: PageRequest, action: Action, query: Listed) -> tuple[list[JobRow], bool]:
    """The newest jobs that this can be done to, and whether there are more."""
    states = tuple(state for state in _STATES[action] if not query.state or state in query.state)
    if not states:
        return [], False
    matches = await matching(request, query, MOST, states)
    return matches.rows, matches.next is not None


def _seen(action: Action, rows: list[JobRow]) -> str:
    return digest([action, [row.job for row in rows]])


def _kept(query: Listed) -> dict[str, object]:
    return {name: getattr(query, name) for name in Listed.__struct_fields__ if name != "before"}


async def _one(request: PageRequest, action: Action, row: JobRow) -> BulkOutcome:
    made = code = message = ""
    try:
        made = await _ACTIONS[action](request, row.job)
    except RemitError as error:
        code, message = error.code.name, error.message
    except HttpProblem as problem:
        code, message = problem.name, problem.detail
    return BulkOutcome(line=line_of(row, request.now), made=made, code=code, message=message)


async def _cancel(request: PageRequest, job: str) -> str:
    await request.service.jobs.cancel(job, by=request.principal, reason=request.form.reason)
    return ""


async def _resume(request: PageRequest, job: str) -> str:
    await request.service.jobs.resume(job)
    return ""


async def _signal(request: PageRequest, job: str) -> str:
    payload = json_value(request.form.payload, "The payload")
    await request.service.jobs.signal(job, request.form.signal, payload, by=request.principal)
    return ""


async def _retry(request: PageRequest, job: str) -> str:
    await may_retry(request.service.jobs, request.access, {"job": job})
    return (await request.service.jobs.retry(job, by=request.principal, reason=request.form.reason)).job


_ACTIONS: Final[dict[Action, Callable[[PageRequest, str], Awaitable[str]]]] = {
    "cancel": _cancel,
    "resume": _resume,
    "signal": _signal,
    "retry": _retry,
}

PAGES: Final = (
    Page(path="/bulk", scope="read", handler=preview, query=BulkQuery),
    *(
        Page(path=f"/bulk/{action}", scope=_SCOPES[action], handler=partial(carry_out, action), form=BulkForm)
        for action in _SCOPES
    ),
)
