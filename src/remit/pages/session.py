"""Sessions: the list, and the calls of one client, shaped like a job."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError
from remit.pages.page import Page, PageRequest, PageView
from remit.pages.steps import StepListRow, drifted_in, groups, lines
from remit.pages.timeline import scale_of
from remit.record.job_story import step_row
from remit.record.step import StepNarrative
from remit.record.views import SessionRow

_MOST: Final = 500
"""Calls of a page."""
_SESSIONS: Final = 50
"""Sessions of a page."""


class SessionsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions."""

    before: str = ""
    """Continue after this session of an earlier page."""


class SessionsPage(PageView, frozen=True, kw_only=True):
    """A page of sessions, newest first."""

    template: ClassVar[str] = "sessions.html"
    sessions: tuple[SessionRow, ...]
    before: str
    next: str
    """Continue after this session; empty: this is the last page."""


class SessionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of a session."""

    step: str = ""
    """The call that is shown whole."""
    open: tuple[str, ...] = ()
    """The folded rows that are opened, by their first call."""
    until: int = 0
    """The number of the last call of the page; 0: the newest."""


class SessionPage(PageView, frozen=True, kw_only=True):
    """A session, whole."""

    template: ClassVar[str] = "session.html"
    name: str
    """The program that calls."""
    session: str
    principal: str
    created_at: int
    events: int
    query: SessionQuery
    calls: int
    first: int
    """The number of the first call of the page."""
    last: int
    rows: tuple[StepListRow, ...]
    folds: tuple[float, ...]
    """Where idle time is folded on the scale."""
    detail: StepNarrative | None
    most: int
    """Calls of a page."""


async def sessions(request: PageRequest) -> SessionsPage:
    """A page of sessions, newest first."""
    before = request.query.before
    rows = await request.service.sessions.rows(limit=_SESSIONS + 1, before=before)
    return SessionsPage(
        title="Sessions",
        sessions=tuple(rows[:_SESSIONS]),
        before=before,
        next=rows[_SESSIONS - 1].session if len(rows) > _SESSIONS else "",
    )


async def session(request: PageRequest) -> SessionPage:
    """The session's page. Raises NotFoundError."""
    name, query = request.path["session"], request.query
    if not name.startswith("ses_"):
        reason = f"There is no session {name!r:.80}."
        raise NotFoundError(reason, code=Code.SESSION_NOT_FOUND, remedy="The page Sessions lists them.")
    story = await request.service.streams.story(name)
    calls = [step for step in story.steps if step]
    number = min(query.until, len(calls)) if query.until > 0 else len(calls)
    first = max(0, number - _MOST)
    steps = [step_told for step in calls[first:number] if (step_told := story.told(step)) is not None]
    by_step = {step.step: step for step in steps}
    last = max((step.ended_at or step.started_at for step in steps), default=request.now)
    scale = scale_of(story, last, fold=True)
    step_groups = groups([step_row(step) for step in steps], drifted_in(story), query.open)
    return SessionPage(
        title=f"{story.name or 'Session'} {name[-6:]}",
        name=story.name,
        session=name,
        principal=story.principal,
        created_at=story.created_at,
        events=story.events,
        query=query,
        calls=len(calls),
        first=first + 1 if calls else 0,
        last=number,
        rows=tuple(lines(step_groups, by_step.get, scale, last)),
        folds=tuple(round(fold.x, 1) for fold in scale.folds),
        detail=by_step.get(query.step),
        most=_MOST,
    )


PAGES: Final = (
    Page(
        path="/sessions",
        scope="read",
        handler=sessions,
        name="Sessions",
        key="s",
        about="calls of MCP clients, programs and people, outside jobs",
        query=SessionsQuery,
        live="heads",
    ),
    Page(path="/sessions/{session}", scope="read", handler=session, query=SessionQuery, live="events"),
)
