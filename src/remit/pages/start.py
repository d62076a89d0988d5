"""Start a job by hand: the recipes, and a form made from the parameters of one, filled with an earlier job's input."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from remit.errors import RemitError
from remit.pages.fields import Field, args_of, fields_of
from remit.pages.page import Page, PageRequest, PageView, See, link
from remit.record.values import given_of
from remit.service.options import Options
from remit.service.recipes import Outline
from remit.wiring.capabilities import FIRST_PARTY

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
    fields = fields_of(await _args(request, job), known.schema) if known.schema["properties"] else ()
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
    Page(path="/start", scope="read", handler=recipes),
    Page(path="/start/{recipe}", scope="read", handler=form, query=From),
    Page(path="/start/{recipe}", scope="call", handler=start, form=StartForm),
)
