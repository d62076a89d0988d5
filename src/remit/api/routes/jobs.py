"""Jobs over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from remit.api.filing import Filing
from remit.api.holding import held
from remit.api.route import ApiRequest, Route
from remit.canonical import MAX_INT
from remit.codes import Code
from remit.errors import UsageError
from remit.jobs.plans.check import read_plan
from remit.service.jobs import Options
from remit.service.retrying import Retried
from remit.service.search import JobSearch
from remit.service.views import JobRow, JobView

if TYPE_CHECKING:
    from remit.http.access import Access
    from remit.service.jobs import Jobs

_PAGE: Final = 1_000
_LONGEST_S: Final = 60


class JobQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs."""

    state: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    """`KEY=VALUE`: only jobs that are filed under it."""
    since: Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)] = 0
    """Created at this moment or later; microseconds since the Unix epoch."""
    until: Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)] | None = None
    """Created before this moment."""
    text: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """Stands in the title, name, identifier, input, an argument, a result or an error, in capitals or not."""
    principal: str = ""
    """Who asked for it."""
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


class SignalBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signal."""

    name: str
    payload: Any = None


class RetryBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a job goes on, and why."""

    step: str = ""
    """Run again from this step; empty: where it failed."""
    repeat: bool = False
    """Whether calls with side effects that ended well are made again."""
    reason: str = ""


class CancelBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a job is to stop."""

    reason: str = ""


async def page(asked: ApiRequest) -> JobPage:
    """List jobs, newest first, page by page."""
    query: JobQuery = asked.query
    wanted = JobSearch(
        states=query.state,
        labels=labels_of(query.label),
        since=query.since,
        until=query.until,
        text=query.text,
        principal=asked.principal if asked.access.tools else query.principal,
        before=query.before,
        limit=query.limit,
    )
    found = await asked.service.jobs.search(wanted)
    return JobPage(items=found.rows, next=found.next)


async def start(asked: ApiRequest) -> JobRow:
    """Start a job that runs a recipe or carries out a plan. It is durable when this answers."""
    body: StartBody = asked.body
    if bool(body.recipe) == (body.plan is not None):
        raise UsageError("Give either recipe or plan.", code=Code.INVALID_INPUT)
    options = body.options(asked, delay_s=body.delay_s, subject=body.subject)
    return await held_row(asked, await body.met(options, _started(asked, body, options)))


async def view(asked: ApiRequest) -> JobView:
    """Show one job: input, steps, waits, result or error."""
    job = await asked.service.jobs.find(asked.path["job"])
    await _held(asked, job)
    return await asked.service.jobs.view(job)


async def signal(asked: ApiRequest) -> JobRow:
    """Send a job a signal."""
    body: SignalBody = asked.body
    await asked.service.jobs.signal(
        asked.path["job"], body.name, body.payload, by=asked.principal, key=asked.identifier("sig")
    )
    return await asked.service.jobs.row(asked.path["job"])


async def cancel(asked: ApiRequest) -> JobRow:
    """Ask a job to stop."""
    await asked.service.jobs.cancel(asked.path["job"], by=asked.principal, reason=asked.body.reason)
    return await asked.service.jobs.row(asked.path["job"])


async def retry(asked: ApiRequest) -> Retried:
    """Run a failed or cancelled job again in a new one, which takes over what is recorded."""
    body: RetryBody = asked.body
    job = await asked.service.jobs.find(asked.path["job"])
    await may_retry(asked.service.jobs, job, asked.access)
    return await asked.service.jobs.retry(
        job, body.step, repeat=body.repeat, by=asked.principal, reason=body.reason, made=asked.identifier("job")
    )


async def may_retry(jobs: Jobs, job: str, access: Access) -> None:
    """Raise Problem unless a token may have a job run again: all that it may, under the requester's name."""
    access.require_all_tools("the job")
    if access.principal is not None and await jobs.principal(job) != access.principal:
        access.require("decide")


async def resume(asked: ApiRequest) -> JobRow:
    """Make a job due now, whatever it waits for."""
    await asked.service.jobs.resume(asked.path["job"])
    return await asked.service.jobs.row(asked.path["job"])


async def row(asked: ApiRequest) -> JobRow:
    """Show where a job stands, by its identifier, an ending of it that fits only one, or `last`."""
    return await held_row(asked, await asked.service.jobs.find(asked.path["job"]))


async def held_row(asked: ApiRequest, job: str) -> JobRow:
    """A job's row, held back for as long as the request wants to wait."""
    await _held(asked, job)
    return await asked.service.jobs.row(job)


async def _started(asked: ApiRequest, body: StartBody, options: Options) -> str:
    if body.plan is None:
        return await asked.service.jobs.start_named(body.recipe, body.input, options)
    tools = {word for tool in await asked.service.tools.views() for word in (tool.name, tool.key, tool.wire_name)}
    plan = read_plan(body.plan, tools=tools, recipes=asked.service.recipes.names())
    return await asked.service.jobs.start_plan(plan, body.input, options)


def labels_of(texts: tuple[str, ...]) -> dict[str, str]:
    """The labels in KEY=VALUE texts. Raises UsageError."""
    pairs = [text.partition("=") for text in texts]
    if wrong := next((key for key, separator, _ in pairs if not (key and separator)), None):
        raise UsageError(f"{wrong!r:.80} is not KEY=VALUE", code=Code.INVALID_INPUT)
    return {key: value for key, _, value in pairs}


async def _held(asked: ApiRequest, job: str) -> None:
    """Hold the answer until the job is at rest, or the time is over."""
    if asked.query.wait:
        await held(asked, asked.service.jobs.settled([job]), asked.query.wait)


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
        codes=(Code.UNKNOWN_RECIPE, Code.PLAN_INVALID, Code.POLICY_INVALID, Code.APPEND_CONFLICT, Code.USAGE),
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
    Route(
        method="POST",
        path=f"{_ONE}/signal",
        name="jobs.signal",
        scope="decide",
        summary="Send a signal.",
        handler=signal,
        body=SignalBody,
        answer=JobRow,
        starts=True,
        codes=(*_OPEN, Code.SIGNAL_INVALID),
        example={"name": "go"},
    ),
    Route(
        method="POST",
        path=f"{_ONE}/cancel",
        name="jobs.cancel",
        scope="decide",
        summary="Stop a job.",
        handler=cancel,
        body=CancelBody,
        answer=JobRow,
        codes=_OPEN,
        example={"reason": "no longer needed"},
    ),
    Route(
        method="POST",
        path=f"{_ONE}/retry",
        name="jobs.retry",
        scope="call",
        summary="Run a failed job again.",
        handler=retry,
        body=RetryBody,
        answer=Retried,
        status=201,
        starts=True,
        codes=(
            Code.JOB_NOT_FOUND,
            Code.STEP_NOT_FOUND,
            Code.JOB_NOT_RETRYABLE,
            Code.RETRY_REPEATS,
            Code.UNKNOWN_RECIPE,
        ),
        example={"reason": "the address is right now"},
    ),
    Route(
        method="POST",
        path=f"{_ONE}/resume",
        name="jobs.resume",
        scope="decide",
        summary="Continue a job now.",
        handler=resume,
        answer=JobRow,
        codes=_OPEN,
    ),
)
