"""Search: one box that finds a job, a step, a person, a tool or a page, and what was looked at last.

Everything else: the pages without a door of their own, by question; and how a reader likes the pages.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import msgspec

from remit.errors import NotFoundError
from remit.pages.jobs import JobListRow, line_of
from remit.pages.page import LOOK, LOOKS, Page, PageRequest, PageView, Recent, See, link
from remit.record.search import JobSearch
from remit.regex import regex
from remit.service.saved_views import SavedView
from remit.service.visible import sees_tool

_YEAR_S: Final = 31_536_000
_MOST: Final = 8
"""Things of a sort that are shown."""
_RECORDED: Final = 5
"""Jobs that are looked for by what they recorded, where few have the words in their title."""
_JOB: Final = regex(r"(?P<job>(?:job|ses)_[0-9a-z]{26}|[0-9a-hjkmnp-tv-z]{6,26})(?:[ /](?P<step>[0-9][0-9.a-z]*))?")
"""A job by its identifier or the end of it, and one of its steps."""
_PLACES: Final = {"job": "/jobs/{}", "ses": "/sessions/{}"}


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The words."""

    q: str = ""


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was found."""

    name: str
    path: str
    about: str


class SearchPage(PageView, frozen=True, kw_only=True):
    """What was found, by sort; pages stand in the frame."""

    template: ClassVar[str] = "search.html"
    text: str
    jobs: tuple[JobListRow, ...]
    """Those with the words in their title."""
    recorded: tuple[JobListRow, ...]
    """Those that recorded them: an input, an argument, a result or an error."""
    people: tuple[SearchHit, ...]
    tools: tuple[SearchHit, ...]
    recipes: tuple[SearchHit, ...]
    recent: tuple[Recent, ...]
    views: tuple[SavedView, ...]


async def search(request: PageRequest) -> SearchPage | See:
    """Look everywhere; the identifier of a job, or of a job and its step, leads there at once."""
    text: str = request.query.q.strip()
    if (exact := await _place(request, text)) is not None:
        return exact
    titled = await request.service.jobs.rows(text=text, limit=_MOST) if text else []
    recorded = await _recorded(request, text, {row.job for row in titled}) if text and len(titled) < _MOST else []
    views = await request.service.saved_views.of(request.principal)
    fits = text.casefold()
    return SearchPage(
        title=f"Search: {text}" if text else "Search",
        text=text,
        jobs=tuple(line_of(row, request.now) for row in titled),
        recorded=tuple(recorded),
        people=await _people(request, fits) if text else (),
        tools=await _tools(request, fits) if text else (),
        recipes=_recipes(request, fits) if text else (),
        recent=tuple(entry for entry in request.memory.recent(request.principal) if fits in entry.title.casefold()),
        views=tuple(entry for entry in views if fits in entry.name.casefold()),
    )


async def _place(request: PageRequest, text: str) -> See | None:
    """The page of the job or step that an identifier names; None for other words."""
    named = _JOB.fullmatch(text.casefold())
    if named is None:
        return None
    try:
        job = await request.service.jobs.find(named["job"])
    except NotFoundError:
        return None
    return See(link(_PLACES[job[:3]], job, step=named["step"] or ""))


async def _recorded(request: PageRequest, text: str, known: set[str]) -> list[JobListRow]:
    listing = await request.service.jobs.search(JobSearch(text=text, limit=_RECORDED + len(known)))
    return [line_of(row, request.now) for row in listing.rows if row.job not in known][:_RECORDED]


async def _people(request: PageRequest, fits: str) -> tuple[SearchHit, ...]:
    """Those who asked for something: of models, or a question."""
    service = request.service
    names = {row.name for row in await service.usage.rows("principal")}
    names |= {
        question.principal
        for question in (*await service.confirmations.pending(), *await service.confirmations.answered())
    }
    people = sorted(name for name in names if name and fits in name.casefold())
    return tuple(
        SearchHit(name=name, path=link("/jobs", principal=name), about="jobs that they asked for")
        for name in people[:_MOST]
    )


async def _tools(request: PageRequest, fits: str) -> tuple[SearchHit, ...]:
    tools = [tool for tool in await request.service.tools.views(0) if sees_tool(request.access, tool.name)]
    matches = [tool for tool in tools if fits in tool.name.casefold()]
    matches += [tool for tool in tools if tool not in matches and fits in tool.description.casefold()]
    return tuple(
        SearchHit(name=tool.name, path=link("/tools/{}", tool.name), about=tool.description.partition("\n")[0])
        for tool in matches[:_MOST]
    )


def _recipes(request: PageRequest, fits: str) -> tuple[SearchHit, ...]:
    outlines = [
        outline
        for outline in request.service.recipes.outlines()
        if fits in f"{outline.name} {outline.about}".casefold()
    ]
    return tuple(
        SearchHit(name=outline.name, path=link("/jobs", recipe=outline.name), about=outline.about)
        for outline in outlines[:_MOST]
    )


class More(PageView, frozen=True, kw_only=True):
    """The other pages, which stand in the frame."""

    template: ClassVar[str] = "more.html"


class Display(msgspec.Struct, frozen=True, kw_only=True):
    """How a reader likes the pages; empty: as they are."""

    time: Literal["", "utc"] = ""
    density: Literal["", "compact"] = ""
    theme: Literal["", "light", "dark"] = ""


async def more(_request: PageRequest) -> More:
    """List the pages."""
    return More(title="Everything else")


async def display(request: PageRequest) -> See:
    """Keep in the browser how its reader likes the pages."""
    form: Display = request.form
    words = ".".join(word for word in LOOKS if word in {form.time, form.density, form.theme})
    return See("/more", f"{LOOK}={words}; Path=/; Max-Age={_YEAR_S}; SameSite=Strict")


PAGES: Final = (
    Page(path="/search", scope="read", handler=search, query=SearchQuery),
    Page(path="/more", scope="read", handler=more),
    Page(path="/display", scope="read", handler=display, form=Display),
)
