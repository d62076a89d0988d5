"""Jobs over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from remit.api.job_request import Filing
from remit.api.part import held
from remit.api.route import ApiRequest, DetailedAnswer, Route
from remit.canonical import MAX_INT
from remit.codes import Code
from remit.errors import UsageError
from remit.jobs.plans.check import read_plan
from remit.journal.labels import conditions
from remit.record.job_table import MEDIA, job_table
from remit.record.search import JobSearch
from remit.record.views import JobRow, JobView
from remit.service.admission import NO_ROOM
from remit.service.options import Options

_PAGE: Final = 1_000
_LONGEST_S: Final = 60


class JobQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs."""

    state: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    """`KEY=VALUE`: only jobs with this label; `KEY>=100` and the like compare a number, or a moment of ISO 8601."""
    since: Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)] = 0
    """Created at this moment or later; microseconds since the Unix epoch."""
    until: Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)] | None = None
    """Created before this moment."""
    text: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """Stands in the title, name, identifier, input, an argument, a result or an error, in capitals or not."""
    principal: str = ""
    """The principal that asked for it."""
    before: str = ""
    """Continue after this job of an earlier page."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=_PAGE)] = 20


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs, newest first."""

    items: list[JobRow]
    next: str | None
    """`before` of the next page; null if this is the last. A page may be short and still have a next one."""


class WaitQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Whether to hold the answer."""

    wait: Annotated[float, msgspec.Meta(ge=0, le=_LONGEST_S)] = 0
    """Seconds to hold the answer until the job has ended or waits for something from outside."""


class StartBody(Filing, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recipe or a plan and its input, how the job is filed, and what it may do."""

    recipe: str = ""
    plan: dict[str, Any] | None = None
    """A task graph, instead of a recipe."""
    input: dict[str, Any] = msgspec.field(default_factory=dict)
    delay_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    subject: str = ""
    """Whom its values are about, so that they can be erased."""


async def page(request: ApiRequest) -> JobPage:
    """List jobs, newest first, page by page."""
    query: JobQuery = request.query
    labels, bounds = conditions(query.label)
    wanted = JobSearch(
        states=query.state,
        labels=labels,
        bounds=bounds,
        since=query.since,
        until=query.until,
        text=query.text,
        principal=request.principal if request.access.tools else query.principal,
        before=query.before,
        limit=query.limit,
    )
    listing = await request.service.jobs.search(wanted)
    return JobPage(items=listing.rows, next=listing.next)


async def table(request: ApiRequest) -> DetailedAnswer:
    """List jobs as comma-separated values, newest first, at most `limit`."""
    rows: list[JobRow] = []
    before: str | None = request.query.before
    while before is not None and (room := request.query.limit - len(rows)) > 0:
        job_page = await page(request._replace(query=msgspec.structs.replace(request.query, before=before, limit=room)))
        rows += job_page.items
        before = job_page.next
    return DetailedAnswer(value=job_table(rows), media=MEDIA)


async def start(request: ApiRequest) -> JobRow:
    """Start a job that runs a recipe or carries out a plan. It is durable when this answers."""
    body: StartBody = request.body
    if bool(body.recipe) == (body.plan is not None):
        raise UsageError("Give either recipe or plan.", code=Code.INVALID_INPUT)
    options = body.options(request, delay_s=body.delay_s, subject=body.subject)
    return await held_row(request, await body.met(options, _started(request, body, options)))


async def view(request: ApiRequest) -> JobView:
    """Show one job: input, steps, waits, result or error."""
    job = await request.service.jobs.find(request.path["job"])
    await _held(request, job)
    return await request.service.jobs.view(job)


async def row(request: ApiRequest) -> JobRow:
    """Show where a job stands, by its identifier, an ending of it that fits only one, or `last`."""
    return await held_row(request, await request.service.jobs.find(request.path["job"]))


async def held_row(request: ApiRequest, job: str) -> JobRow:
    """A job's row, held back for as long as the request wants to wait."""
    await _held(request, job)
    return await request.service.jobs.row(job)


async def _started(request: ApiRequest, body: StartBody, options: Options) -> str:
    if body.plan is None:
        return await request.service.jobs.start_named(body.recipe, body.input, options)
    tools = {word for tool in await request.service.tools.views() for word in (tool.name, tool.key, tool.wire_name)}
    plan = read_plan(body.plan, tools=tools, recipes=request.service.recipes.names())
    return await request.service.jobs.start_plan(plan, body.input, options)


def labels_of(texts: tuple[str, ...]) -> dict[str, str]:
    """The labels in KEY=VALUE texts. Raises UsageError."""
    pairs = [text.partition("=") for text in texts]
    if wrong := next((key for key, separator, _ in pairs if not (key and separator)), None):
        raise UsageError(f"{wrong!r:.80} is not KEY=VALUE", code=Code.INVALID_INPUT)
    return {key: value for key, _, value in pairs}


async def _held(request: ApiRequest, job: str) -> None:
    """Hold the answer until the job is at rest, or the time is over."""
    if request.query.wait:
        await held(request, request.service.jobs.settled([job]), request.query.wait)


_ONE: Final = "/v1/jobs/{job}"
_OPEN: Final = (Code.JOB_NOT_FOUND, Code.JOB_FINISHED)

ROUTES: Final = (
    Route(
        method="GET",
        path="/v1/jobs",
        name="jobs.page",
        scope="read",
        summary="List jobs.",
        handler=page,
        query=JobQuery,
        answer=JobPage,
    ),
    Route(
        method="GET",
        path="/v1/jobs.csv",
        name="jobs.table",
        scope="read",
        summary="List jobs as CSV.",
        handler=table,
        query=JobQuery,
        answer=str,
        media="text/csv",
    ),
    Route(
        method="POST",
        path="/v1/jobs",
        name="jobs.start",
        scope="call",
        summary="Start a job.",
        handler=start,
        query=WaitQuery,
        body=StartBody,
        answer=JobRow,
        status=201,
        starts=True,
        codes=(Code.UNKNOWN_RECIPE, Code.PLAN_INVALID, Code.POLICY_INVALID, Code.APPEND_CONFLICT, Code.USAGE, *NO_ROOM),
        example={"recipe": "research_report", "input": {"query": "cancel", "folder": "."}},
    ),
    Route(
        method="GET",
        path=_ONE,
        name="jobs.view",
        scope="read",
        summary="Show a job.",
        handler=view,
        query=WaitQuery,
        answer=JobView,
        codes=(Code.JOB_NOT_FOUND,),
    ),
    Route(
        method="GET",
        path=f"{_ONE}/row",
        name="jobs.row",
        scope="read",
        summary="Show where a job stands.",
        handler=row,
        query=WaitQuery,
        answer=JobRow,
        codes=(Code.JOB_NOT_FOUND,),
    ),
)
