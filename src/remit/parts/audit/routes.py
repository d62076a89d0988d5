"""Audit over HTTP: the evidence package of a job, that of an interval, and a job's trace as a file."""

from __future__ import annotations

from io import BytesIO
from typing import Final

from remit.api.route import BYTES, ApiRequest, DetailedAnswer, Empty, Route
from remit.clock import instant
from remit.codes import Code
from remit.errors import UsageError
from remit.evidence.interval import Interval
from remit.parts.audit.formats import ENDINGS, Form
from remit.parts.audit.noun import file_name, scope_of

_DAMAGED: Final = (Code.CHAIN_BROKEN, Code.BLOB_MISSING, Code.HEAD_FORGED, Code.HEAD_UNSEALED)
"""The codes of a damaged record, which is not exported."""


class IntervalQuery(Empty, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The form of the package of an interval."""

    redacted: bool = False
    """Whether the values beside events are left out."""


class PackageQuery(Empty, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The form of a package."""

    redacted: bool = False
    """Whether the values beside events are left out."""
    format: Form = "package"
    """The format: Remit's own package, or one of others."""


async def package(request: ApiRequest) -> DetailedAnswer:
    """Answer with the evidence of a job, session or ticket: a zip that verify.py checks, or a format of others."""
    query: PackageQuery = request.query
    name, file = request.path["job"].removeprefix("ticket/"), BytesIO()
    scope = await request.service.jobs.find(name) if "/" in name else await scope_of(request.service, name)
    if "/" in scope:
        request.access.require_all_tools("the ticket")
    await request.service.audit.package(scope, file, redacted=query.redacted, form=query.format)
    headers = {"content-disposition": f'attachment; filename="{file_name(scope)}{ENDINGS[query.format]}"'}
    return DetailedAnswer(value=file.getvalue(), headers=headers, media=BYTES)


async def interval(request: ApiRequest) -> DetailedAnswer:
    """Answer with the evidence of all streams written to in an interval of ISO 8601: `since%2Funtil`, both with offset.

    The same record gives the same bytes each time.
    """
    request.access.require_all_tools("everything that was recorded in a time")
    since, until = _moments(request.path["interval"])
    file = BytesIO()
    await request.service.audit.package_between(since, until, file, redacted=request.query.redacted)
    headers = {"content-disposition": f'attachment; filename="{Interval(since, until).file_name}.zip"'}
    return DetailedAnswer(value=file.getvalue(), headers=headers, media=BYTES)


def _moments(text: str) -> tuple[int, int]:
    since, _, until = text.partition("/")
    moments = instant(since), instant(until)
    if moments[0] is None or moments[1] is None:
        remedy = "Write 2026-11-01T00:00:00Z%2F2026-12-01T00:00:00Z."
        raise UsageError(f"{text!r} is not an interval", code=Code.INVALID_INPUT, remedy=remedy)
    return moments[0], moments[1]


async def trace(request: ApiRequest) -> DetailedAnswer:
    """Answer with what a job or session did as one HTML file: times, a search, what led to what, what was changed."""
    job = await request.service.jobs.find(request.path["job"])
    headers = {
        "content-disposition": f'attachment; filename="{job}.html"',
        "content-security-policy": "sandbox; default-src 'none'",
    }
    return DetailedAnswer(value=await request.service.audit.trace(job), headers=headers, media=BYTES)


ROUTES: Final = (
    Route(
        method="GET",
        path="/v1/jobs/{job}/trace.html",
        name="audit.trace",
        scope="read",
        summary="Download what a job or session did as one HTML file.",
        handler=trace,
        answer=bytes,
        media=BYTES,
        codes=(Code.JOB_NOT_FOUND,),
    ),
    Route(
        method="GET",
        path="/v1/audit/packages/{interval}",
        name="audit.interval",
        scope="read",
        summary="Download one evidence package of all that was written to in an interval.",
        handler=interval,
        query=IntervalQuery,
        answer=bytes,
        media=BYTES,
        codes=(*_DAMAGED, Code.JOB_NOT_FOUND, Code.RECORD_PRUNED, Code.SCOPE_REQUIRED),
    ),
    Route(
        method="GET",
        path="/v1/jobs/{job}/package",
        name="audit.package",
        scope="read",
        summary="Download the evidence package of a job, session or ticket.",
        handler=package,
        query=PackageQuery,
        answer=bytes,
        media=BYTES,
        codes=(Code.JOB_NOT_FOUND, Code.RECORD_PRUNED, Code.SCOPE_REQUIRED, *_DAMAGED, Code.SETTINGS_INVALID),
    ),
)
