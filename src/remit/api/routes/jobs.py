"""Jobs over HTTP."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated, Any, Final

import msgspec

from remit.api.route import Asked, Route
from remit.codes import Code
from remit.errors import AppendConflictError
from remit.service.jobs import Options
from remit.service.views import JobRow, JobView

_PAGE: Final = 1_000
_LONGEST_S: Final = 60


class JobQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs."""

    state: tuple[str, ...] = ()
    before: str = ""
    """Continue after this job of an earlier page."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=_PAGE)] = 20


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs, newest first."""

    items: list[JobRow]
    next: str | None
    """`before` of the next page; null if this is the last."""


class WaitQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Whether to hold the answer."""

    wait: Annotated[float, msgspec.Meta(ge=0, le=_LONGEST_S)] = 0
    """Seconds to hold the answer until the job has ended or waits for something from outside."""


class StartBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recipe and its input, and how the job is filed."""

    recipe: str
    input: dict[str, Any] = msgspec.field(default_factory=dict)
    title: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    priority: int = 0
    delay_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0


class SignalBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signal."""

    name: str
    payload: Any = None


class CancelBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a job is to stop."""

    reason: str = ""


async def page(asked: Asked) -> JobPage:
    """List jobs, newest first, page by page."""
    query: JobQuery = asked.query
    found = await asked.service.jobs.rows(query.state, limit=query.limit, before=query.before or None)
    return JobPage(items=found, next=found[-1].job if len(found) == query.limit else None)


async def start(asked: Asked) -> JobRow:
    """Start a job that runs a recipe. It is durable when this answers."""
    body: StartBody = asked.body
    options = Options(
        title=body.title,
        labels=body.labels,
        priority=body.priority,
        delay_s=body.delay_s,
        principal=asked.principal,
        job=asked.identifier("job"),
        tools=asked.access.tools or None,
    )
    try:
        job = await asked.service.jobs.start_named(body.recipe, body.input, options)
    except AppendConflictError:  # an earlier attempt at this request got that far
        job = options.job
    await _held(asked, job)
    return await asked.service.jobs.row(job)


async def view(asked: Asked) -> JobView:
    """Show one job: input, steps, waits, result or error."""
    job = await asked.service.jobs.find(asked.path["job"])
    await _held(asked, job)
    return await asked.service.jobs.view(job)


async def signal(asked: Asked) -> JobRow:
    """Send a job a signal."""
    body: SignalBody = asked.body
    await asked.service.jobs.signal(asked.path["job"], body.name, body.payload, by=asked.principal)
    return await asked.service.jobs.row(asked.path["job"])


async def cancel(asked: Asked) -> JobRow:
    """Ask a job to stop."""
    await asked.service.jobs.cancel(asked.path["job"], by=asked.principal, reason=asked.body.reason)
    return await asked.service.jobs.row(asked.path["job"])


async def resume(asked: Asked) -> JobRow:
    """Make a job due now, whatever it waits for."""
    await asked.service.jobs.resume(asked.path["job"])
    return await asked.service.jobs.row(asked.path["job"])


async def _held(asked: Asked, job: str) -> None:
    """Hold the answer until the job is at rest, or the time is over."""
    if asked.query.wait:
        with suppress(TimeoutError):
            async with asyncio.timeout(asked.query.wait):
                await asked.service.jobs.settled([job])


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
        codes=(Code.UNKNOWN_RECIPE,),
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
        method="POST",
        path=f"{_ONE}/signal",
        name="jobs.signal",
        scope="decide",
        summary="Send a signal.",
        handler=signal,
        body=SignalBody,
        answer=JobRow,
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
        path=f"{_ONE}/resume",
        name="jobs.resume",
        scope="decide",
        summary="Go on with a job now.",
        handler=resume,
        answer=JobRow,
        codes=_OPEN,
    ),
)
