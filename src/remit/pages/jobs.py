"""Jobs: the list, filtered by its address and read page by page."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import msgspec

from remit.clock import DAY, SECOND
from remit.codes import Code
from remit.errors import UsageError
from remit.journal.labels import Conditions
from remit.pages.actions import label_conditions
from remit.pages.page import File, Page, PageRequest, See, View, link
from remit.record.job_table import job_table
from remit.record.search import Found, JobSearch
from remit.record.states import Standing, standing
from remit.record.views import JobRow
from remit.service.saved_views import SavedView

_PAGE: Final = 50
_TABLE: Final = 1_000
"""Jobs in a file."""
_STATES: Final = ("pending", "running", "waiting", "completed", "failed", "cancelled")
_WITHIN: Final = {"1h": 3_600 * SECOND, "1d": DAY, "7d": 7 * DAY}
_NAME: Final = "remit.name"
"""The label that a job's recipe or plan is filed under."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A job in a list."""

    job: str
    name: str
    title: str
    """The input, or what someone called it."""
    labels: dict[str, str]
    standing: Standing
    created_at: int
    took: int
    """Microseconds from its start to its end, or to now."""
    ended: bool


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs: this is what stands in the address."""

    state: tuple[str, ...] = ()
    recipe: str = ""
    label: str = ""
    """`KEY=VALUE`, `KEY>=100`, `KEY<2026-12-01T00:00Z`; several with commas between them."""
    principal: str = ""
    """The principal that asked for it."""
    text: str = ""
    """Stands in what a JobSearch looks at."""
    within: Literal["", "1h", "1d", "7d"] = ""
    """The age of the job, at most."""
    before: str = ""
    """Continue after this job of an earlier page."""

    @property
    def narrow(self) -> bool:
        """Return whether anything is left out."""
        return bool(self.state or self.recipe or self.label or self.principal or self.text or self.within)


class Save(msgspec.Struct, frozen=True, kw_only=True):
    """A filter to keep."""

    name: str
    query: str = ""


class Remove(msgspec.Struct, frozen=True, kw_only=True):
    """A view to keep no more."""

    view: str


class Choice(msgspec.Struct, frozen=True):
    """A state that can be chosen."""

    state: str
    number: int
    chosen: bool


class Jobs(View, frozen=True, kw_only=True):
    """A page of jobs, newest first."""

    template: ClassVar[str] = "jobs.html"
    filter: Filter
    choices: tuple[Choice, ...]
    recipes: tuple[str, ...]
    """Names to choose from."""
    lines: tuple[Line, ...]
    views: tuple[SavedView, ...]
    """The reader's own."""
    view: SavedView | None
    """The one whose filter this is."""
    address: str
    """The filter as it stands in the address."""
    kept: dict[str, object]
    """The filter without the place in the list, for links to other pages of it."""
    next: str
    """Continue after this job; empty: this is the last page."""


async def jobs(asked: PageRequest) -> Jobs:
    """One page. An unknown state or a label that is not KEY=VALUE raises UsageError."""
    query: Filter = asked.query
    if wrong := set(query.state) - set(_STATES):
        raise UsageError(f"There is no state {min(wrong)!r:.60}.", code=Code.INVALID_INPUT)
    found = await matching(asked, query, _PAGE)
    kept = {name: value for name, value in msgspec.structs.asdict(query).items() if name != "before"}
    address = link("", **kept).removeprefix("?")
    views = await asked.service.saved_views.of(asked.principal)
    counts = await asked.service.jobs.counts()
    return Jobs(
        title="Jobs",
        filter=query,
        choices=tuple(Choice(state, counts.get(state, 0), state in query.state) for state in _STATES),
        recipes=tuple(asked.service.recipes.names()),
        lines=tuple(line_of(row, asked.now) for row in found.rows),
        views=tuple(views),
        view=next((one for one in views if one.query == address), None),
        address=address,
        kept=kept,
        next=found.next or "",
    )


async def matching(asked: PageRequest, query: Filter, limit: int, states: tuple[str, ...] = ()) -> Found:
    """The newest jobs of a filter, at most so many; in `states` instead of its own, where those are given."""
    since = asked.now - _WITHIN[query.within] if query.within else 0
    states = states or query.state
    labels, bounds = _conditions(query)
    if query.principal or query.text:
        wanted = JobSearch(
            states=states,
            labels=labels,
            bounds=bounds,
            since=since,
            text=query.text,
            principal=query.principal,
            before=query.before,
            limit=limit,
        )
        return await asked.service.jobs.search(wanted)
    rows = await asked.service.jobs.rows(
        states,
        labels=labels,
        bounds=bounds,
        limit=limit + 1,
        before=query.before or None,
        since=since,
    )
    return Found(rows=rows[:limit], next=rows[limit - 1].job if len(rows) > limit else None)


async def table(asked: PageRequest) -> File:
    """The newest jobs of a filter as CSV."""
    found = await matching(asked, asked.query, _TABLE)
    return File("jobs.csv", job_table(found.rows).encode())


async def save(asked: PageRequest) -> See:
    """Keep a filter under a name."""
    form: Save = asked.form
    saved = await asked.service.saved_views.save(form.name, form.query, by=asked.principal)
    return See(f"/jobs?{saved.query}")


async def remove(asked: PageRequest) -> See:
    """Keep a view no more."""
    await asked.service.saved_views.remove(asked.form.view, by=asked.principal)
    return See("/jobs")


def line_of(row: JobRow, now: int) -> Line:
    """A job's row as a line."""
    ended = row.state in {"completed", "failed", "cancelled"}
    return Line(
        job=row.job,
        name=row.name,
        title=row.title.removeprefix(f"{row.name} "),
        labels=row.labels,
        standing=standing(row, now),
        created_at=row.created_at,
        took=max(0, (row.updated_at if ended else now) - row.created_at),
        ended=ended,
    )


def _conditions(query: Filter) -> Conditions:
    found = label_conditions(query.label)
    return found._replace(labels={_NAME: query.recipe} | found.labels) if query.recipe else found


PAGES: Final = (
    Page(
        path="/jobs",
        scope="read",
        handler=jobs,
        name="Jobs",
        key="j",
        under="Jobs",
        about="every job, found by state, recipe, label, person or text",
        query=Filter,
        live="heads",
    ),
    Page(path="/jobs.csv", scope="read", handler=table, query=Filter),
    Page(path="/views/save", scope="read", handler=save, form=Save),
    Page(path="/views/remove", scope="read", handler=remove, form=Remove),
)
