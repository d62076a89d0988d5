"""Jobs: the list, filtered by its address and read page by page, and a form that starts one from a recipe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final, Literal, Self

import msgspec

from remit.codes import Code
from remit.errors import RecordPrunedError, RemitError, UsageError
from remit.jobs.recipe import Outline
from remit.journal.labels import Conditions
from remit.pages.actions import label_conditions
from remit.pages.fields import Field, args_of
from remit.pages.fields import fields_of as form_fields_of
from remit.pages.filter_line import STATES, Filter, completions, fields_of, micros_of
from remit.pages.filter_line import line_of as line_of_filter
from remit.pages.page import Page, PageFile, PageRequest, PageView, See, brief, link
from remit.record.job_table import job_table
from remit.record.search import FoundPage, JobSearch
from remit.record.states import JobState, standing
from remit.record.values import given_of
from remit.record.views import JobRow
from remit.service.options import Options
from remit.service.saved_views import SavedView
from remit.wiring.capabilities import FIRST_PARTY

_PAGE: Final = 50
_TABLE: Final = 1_000
"""Jobs in a file."""
_COUNTED: Final = 1_000
"""Jobs up to which a line is counted as it is typed."""
_COLUMNS: Final = 8
"""Columns that a reader can add."""
_NAME: Final = "remit.name"
"""The label that a job's recipe or plan is filed under."""


class JobListRow(msgspec.Struct, frozen=True, kw_only=True):
    """A job in a list."""

    job: str
    name: str
    title: str
    """The input, or what someone called it."""
    labels: dict[str, str]
    standing: JobState
    created_at: int
    took: int
    """Microseconds from its start to its end, or to now."""
    ended: bool
    cells: tuple[str, ...] = ()
    """The texts of added columns."""


class JobsQuery(Filter, frozen=True, kw_only=True):
    """A page of the list: this is what stands in the address."""

    q: str = ""
    """The filter as one line (remit.pages.filter_line), added to what the other fields say."""
    col: tuple[str, ...] = ()
    """Columns that are added: `input.NAME`, `result.NAME` or a label's key."""
    size: Literal["", "20", "100", "200"] = ""
    """Jobs of a page; empty: 50."""
    before: str = ""
    """Continue after this job of an earlier page."""

    @property
    def narrow(self) -> bool:
        """Return whether anything is left out."""
        return bool(self.line)

    @property
    def line(self) -> str:
        """The filter as one line."""
        return line_of_filter(self)

    def parsed(self) -> Self:
        """The same filter without a line: its fields say what that said. Raise UsageError."""
        if wrong := set(self.state) - set(STATES):
            raise UsageError(f"There is no state {min(wrong)!r:.60}.", code=Code.INVALID_INPUT)
        micros_of(self.within)
        parsed = msgspec.structs.asdict(fields_of(" ".join(filter(None, (self.line, self.q))))) if self.q else {}
        return msgspec.structs.replace(self, q="", **parsed)


class Save(msgspec.Struct, frozen=True, kw_only=True):
    """A filter to keep."""

    name: str
    query: str = ""


class Remove(msgspec.Struct, frozen=True, kw_only=True):
    """A view to keep no more."""

    view: str


class StateChoice(msgspec.Struct, frozen=True):
    """A state that can be chosen."""

    state: str
    number: int
    chosen: bool


class TypedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line as far as it is typed."""

    q: str = ""


class Hints(PageView, frozen=True, kw_only=True):
    """How many jobs a line finds, and lines that go on where it ends."""

    template: ClassVar[str] = "hints.html"
    words: str
    completions: tuple[str, ...]


class JobsPage(PageView, frozen=True, kw_only=True):
    """A page of jobs, newest first."""

    template: ClassVar[str] = "jobs.html"
    filter: JobsQuery
    choices: tuple[StateChoice, ...]
    completions: tuple[str, ...]
    """Lines that go on where the filter's ends."""
    columns: tuple[str, ...]
    lines: tuple[JobListRow, ...]
    views: tuple[SavedView, ...]
    """The reader's own."""
    view: SavedView | None
    """The one whose filter this is."""
    address: str
    """The filter as it stands in the address."""
    fields: dict[str, object]
    """The filter without the place in the list, for links to other pages of it."""
    next: str
    """Continue after this job; empty: this is the last page."""


async def jobs(request: PageRequest) -> JobsPage:
    """One page. An unknown state, an odd age, or a label that is not KEY=VALUE raises UsageError."""
    query: JobsQuery = request.query.parsed()
    listing = await matching(request, query, int(query.size or _PAGE))
    filters = {name: value for name, value in msgspec.structs.asdict(query).items() if name != "before"}
    address = link("", **filters).removeprefix("?")
    views = await request.service.saved_views.of(request.principal)
    counts = await request.service.jobs.counts()
    recipes = request.service.recipes.names()
    lines = tuple(line_of(row, request.now) for row in listing.rows)
    return JobsPage(
        title="Jobs",
        filter=query,
        choices=tuple(StateChoice(state, counts.get(state, 0), state in query.state) for state in STATES),
        completions=_completed(query.line, recipes, lines),
        columns=query.col[:_COLUMNS],
        lines=tuple([await _with_cells(request, line, query.col[:_COLUMNS]) for line in lines]) if query.col else lines,
        views=tuple(views),
        view=next((view for view in views if view.query == address), None),
        address=address,
        fields=filters,
        next=listing.next or "",
    )


async def hints(request: PageRequest) -> Hints:
    """Count the jobs of a line that is being typed, and complete it."""
    line: str = request.query.q
    try:
        query = JobsQuery(q=line).parsed()
    except UsageError as error:
        return Hints(title="", words=error.message, completions=())
    rows = (await matching(request, JobsQuery(), _PAGE)).rows
    suggestions = _completed(line, request.service.recipes.names(), [line_of(row, request.now) for row in rows])
    if query.text or query.principal:
        return Hints(title="", words="", completions=suggestions)
    number = len((await matching(request, query, _COUNTED)).rows)
    words = f"{number:,}{'+' if number == _COUNTED else ''} job{'s' * (number != 1)}"
    return Hints(title="", words=words, completions=suggestions)


def _completed(text: str, recipes: list[str], lines: Iterable[JobListRow]) -> tuple[str, ...]:
    labels = {key for line in lines for key in line.labels}
    return completions(f"{text} " if text and not text.endswith(":") else text, recipes, labels, ())


async def _with_cells(request: PageRequest, line: JobListRow, columns: tuple[str, ...]) -> JobListRow:
    """The line with the added columns: of its input and result, which are read where they are asked for."""
    sources: dict[str, Any] = {}
    for source, reading in (("input", request.service.jobs.input), ("result", request.service.jobs.result)):
        if any(column == source or column.startswith(f"{source}.") for column in columns):
            try:
                sources[source] = await reading(line.job)
            except RecordPrunedError:
                sources[source] = None
    cells = (line.labels.get(column) or _leaf(sources, column.split(".")) for column in columns)
    return msgspec.structs.replace(line, cells=tuple(cells))


def _leaf(value: Any, names: list[str]) -> str:
    """Return what a value has under names, in a line; empty for nothing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None else value if isinstance(value, str) else brief(value)


async def matching(request: PageRequest, query: JobsQuery, limit: int, states: tuple[str, ...] = ()) -> FoundPage:
    """The newest jobs of a filter, at most so many; in `states` instead of its own, where those are given."""
    query = query.parsed()
    since = request.now - micros_of(query.within) if query.within else 0
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
        return await request.service.jobs.search(wanted)
    rows = await request.service.jobs.rows(
        states,
        labels=labels,
        bounds=bounds,
        limit=limit + 1,
        before=query.before or None,
        since=since,
    )
    return FoundPage(rows=rows[:limit], next=rows[limit - 1].job if len(rows) > limit else None)


async def table(request: PageRequest) -> PageFile:
    """The newest jobs of a filter as CSV."""
    listing = await matching(request, request.query, _TABLE)
    return PageFile("jobs.csv", job_table(listing.rows).encode())


async def save(request: PageRequest) -> See:
    """Keep a filter under a name."""
    form: Save = request.form
    saved = await request.service.saved_views.save(form.name, form.query, by=request.principal)
    return See(f"/jobs?{saved.query}")


async def remove(request: PageRequest) -> See:
    """Keep a view no more."""
    await request.service.saved_views.remove(request.form.view, by=request.principal)
    return See("/jobs")


def line_of(row: JobRow, now: int) -> JobListRow:
    """A job's row as a line."""
    ended = row.state in {"completed", "failed", "cancelled"}
    return JobListRow(
        job=row.job,
        name=row.name,
        title=row.title.removeprefix(f"{row.name} "),
        labels=row.labels,
        standing=standing(row, now),
        created_at=row.created_at,
        took=max(0, (row.updated_at if ended else now) - row.created_at),
        ended=ended,
    )


def _conditions(query: JobsQuery) -> Conditions:
    conditions = label_conditions(query.label)
    return conditions._replace(labels={_NAME: query.recipe} | conditions.labels) if query.recipe else conditions


_INNER: Final = frozenset(name for part in FIRST_PARTY for name in part.inner_recipes)
"""Recipes that commands start, rather than people."""
_OURS: Final = frozenset(reference.rpartition(":")[2] for part in FIRST_PARTY for reference in part.recipes)


class RecipesPage(PageView, frozen=True, kw_only=True):
    """The recipes of this server, those of its project first."""

    template: ClassVar[str] = "recipes.html"
    recipes: tuple[Outline, ...]


class From(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier job whose input fills the form."""

    job: str = ""


class StartPage(PageView, frozen=True, kw_only=True):
    """The form of one recipe."""

    template: ClassVar[str] = "start.html"
    name: str
    about: str
    job: str
    """The job whose input fills it; empty: its defaults do."""
    fields: tuple[Field, ...]
    job_title: str
    wrong: str = ""


class StartForm(msgspec.Struct, frozen=True, kw_only=True):
    """What was filled in."""

    name: tuple[str, ...] = ()
    value: tuple[str, ...] = ()
    job: str = ""
    title: str = ""


async def recipes(request: PageRequest) -> RecipesPage:
    """List what can be started."""
    outlines = [outline for outline in request.service.recipes.outlines() if outline.name not in _INNER]
    return RecipesPage(title="Start a job", recipes=tuple(sorted(outlines, key=lambda outline: outline.name in _OURS)))


async def form(request: PageRequest) -> StartPage:
    """Show the form. Raise NotFoundError."""
    return await _form(request, request.query.job)


async def start(request: PageRequest) -> StartPage | See:
    """Create the job, and go to it; or show the form again with what is wrong."""
    start_form: StartForm = request.form
    name, known = request.path["recipe"], request.service.recipes.form(request.path["recipe"])
    try:
        args = (
            args_of(start_form.name, start_form.value, await _args(request, start_form.job), known.schema)
            if known.schema["properties"]
            else {}
        )
        options = Options(
            title=start_form.title.strip(), principal=request.principal, tools=request.access.tools or None
        )
        job = await request.service.jobs.start_named(name, args, options)
    except RemitError as error:
        return await _form(request, start_form.job, error.message, start_form)
    return See(link("/jobs/{}", job))


async def _form(request: PageRequest, job: str, wrong: str = "", start_form: StartForm | None = None) -> StartPage:
    name = request.path["recipe"]
    known = request.service.recipes.form(name)
    fields = form_fields_of(await _args(request, job), known.schema) if known.schema["properties"] else ()
    if start_form is not None and len(start_form.value) == len(fields):
        fields = tuple(
            field if field.kind == "file" else msgspec.structs.replace(field, text=text)
            for field, text in zip(fields, start_form.value, strict=True)
        )
    view = await request.service.recipes.view(name)
    return StartPage(
        title=f"Start {name}",
        status=400 if wrong else 200,
        name=name,
        about=view.about,
        job=job,
        fields=fields,
        job_title=start_form.title if start_form is not None else "",
        wrong=wrong,
    )


async def _args(request: PageRequest, job: str) -> dict[str, Any]:
    """Return what fills the form: an earlier input, or the defaults."""
    known = request.service.recipes.form(request.path["recipe"])
    earlier = given_of((await request.service.jobs.view(await request.service.jobs.find(job))).input) if job else {}
    args: dict[str, Any] = {**known.defaults, **(earlier if isinstance(earlier, dict) else {})}
    return {name: value for name, value in args.items() if name in known.schema["properties"]}


PAGES: Final = (
    Page(
        path="/jobs",
        scope="read",
        handler=jobs,
        name="Jobs",
        key="j",
        under="Jobs",
        about="every job, found by state, recipe, label, person or text",
        query=JobsQuery,
        live="heads",
    ),
    Page(path="/hints/{list}", scope="read", handler=hints, query=TypedLine),
    Page(path="/jobs.csv", scope="read", handler=table, query=JobsQuery),
    Page(path="/views/save", scope="read", handler=save, form=Save),
    Page(path="/views/remove", scope="read", handler=remove, form=Remove),
    Page(path="/start", scope="read", handler=recipes),
    Page(path="/start/{recipe}", scope="read", handler=form, query=From),
    Page(path="/start/{recipe}", scope="call", handler=start, form=StartForm),
)
