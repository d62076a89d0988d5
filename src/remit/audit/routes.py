"""Audit over HTTP: the evidence package of a job, and its trace as a file."""

from __future__ import annotations

from io import BytesIO
from typing import Final

from remit.api.route import BYTES, Answer, ApiRequest, Empty, Route
from remit.audit.formats import ENDINGS, Form
from remit.codes import Code


class PackageQuery(Empty, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The form of a package."""

    redacted: bool = False
    """Whether the values beside events are left out."""
    format: Form = "package"
    """The format: Remit's own package, or one of others."""


async def package(asked: ApiRequest) -> Answer:
    """Answer with the evidence of a job or session: a zip that verify.py, in it, checks, or a format of others."""
    query: PackageQuery = asked.query
    job, file = await asked.service.jobs.find(asked.path["job"]), BytesIO()
    await asked.service.audit.package(job, file, redacted=query.redacted, form=query.format)
    headers = {"content-disposition": f'attachment; filename="{job}{ENDINGS[query.format]}"'}
    return Answer(value=file.getvalue(), headers=headers, media=BYTES)


async def trace(asked: ApiRequest) -> Answer:
    """Answer with what a job or session did as one HTML file: times, a search, what led to what, what was changed."""
    job = await asked.service.jobs.find(asked.path["job"])
    headers = {
        "content-disposition": f'attachment; filename="{job}.html"',
        "content-security-policy": "sandbox; default-src 'none'",
    }
    return Answer(value=await asked.service.audit.trace(job), headers=headers, media=BYTES)


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
        path="/v1/jobs/{job}/package",
        name="audit.package",
        scope="read",
        summary="Download the evidence package of a job or session.",
        handler=package,
        query=PackageQuery,
        answer=bytes,
        media=BYTES,
        codes=(
            Code.JOB_NOT_FOUND,
            Code.CHAIN_BROKEN,
            Code.BLOB_MISSING,
            Code.HEAD_FORGED,
            Code.HEAD_UNSEALED,
            Code.SETTINGS_INVALID,
        ),
    ),
)
