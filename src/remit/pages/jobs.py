"""Jobs: the list, filtered by its address and read page by page."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import msgspec

from remit.clock import DAY, SECOND
from remit.codes import Code
from remit.errors import UsageError
from remit.pages.page import Page, PageRequest, View
from remit.service.standing import Standing, standing
from remit.service.views import JobRow

_PAGE: Final = 50
_STATES: Final = ("pending", "running", "waiting", "completed", "failed", "cancelled")
_WITHIN: Final = {"1h": 3_600 * SECOND, "1d": DAY, "7d": 7 * DAY}
_NAME: Final = "remit.name"
"""The label that a job's recipe or plan is filed under."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A job in a list."""

    job: str
    name: str
    title: str
    """What it was given, or what someone called it."""
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
    """`KEY=VALUE`."""
    text: str = ""
    """Stands in the title, which begins with the input if none was given."""
    within: Literal["", "1h", "1d", "7d"] = ""
    """How long ago it was started, at most."""
    before: str = ""
    """Continue after this job of an earlier page."""

    @property
    def narrow(self) -> bool:
        """Whether anything is left out."""
        return bool(self.state or self.recipe or self.label or self.text or self.within)


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
    kept: dict[str, object]
    """The filter without the place in the list, for links to other pages of it."""
    next: str
    """Continue after this job; empty: this is the last page."""


async def jobs(asked: PageRequest) -> Jobs:
    """One page. An unknown state or a label that is not KEY=VALUE raises UsageError."""
    query: Filter = asked.query
    if wrong := set(query.state) - set(_STATES):
        raise UsageError(f"There is no state {min(wrong)!r:.60}.", code=Code.INVALID_INPUT)
    rows = await asked.service.jobs.rows(
        query.state,
        labels=_labels(query),
        limit=_PAGE + 1,
        before=query.before or None,
        text=query.text,
        since=asked.now - _WITHIN[query.within] if query.within else 0,
    )
    counts = await asked.service.jobs.counts()
    return Jobs(
        title="Jobs",
        filter=query,
        choices=tuple(Choice(state, counts.get(state, 0), state in query.state) for state in _STATES),
        recipes=tuple(asked.service.recipes.names()),
        lines=tuple(line_of(row, asked.now) for row in rows[:_PAGE]),
        kept={name: value for name, value in msgspec.structs.asdict(query).items() if name != "before"},
        next=rows[_PAGE - 1].job if len(rows) > _PAGE else "",
    )


def line_of(row: JobRow, now: int) -> Line:
    """A job's row as a line."""
    ended = row.state in {"completed", "failed", "cancelled"}
    return Line(
        job=row.job,
        name=row.name,
        title=row.title.removeprefix(f"{row.name} "),
        standing=standing(row, now),
        created_at=row.created_at,
        took=max(0, (row.updated_at if ended else now) - row.created_at),
        ended=ended,
    )


def _labels(query: Filter) -> dict[str, str]:
    labels = {_NAME: query.recipe} if query.recipe else {}
    if query.label:
        key, separator, value = query.label.partition("=")
        if not (key and separator):
            raise UsageError(f"{query.label!r:.80} is not KEY=VALUE.", code=Code.INVALID_INPUT)
        labels[key] = value
    return labels


PAGES: Final = (Page(path="/jobs", scope="read", handler=jobs, query=Filter, live="heads"),)
