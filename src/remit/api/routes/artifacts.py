"""Artifacts over HTTP: what a job's steps left, and the bytes of each."""

from __future__ import annotations

from typing import Final

from remit.api.route import BYTES, ApiRequest, DetailedAnswer, Route
from remit.codes import Code

_HEADERS: Final = {
    "content-disposition": "attachment",
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
}
"""No browser shows what a program made as if it were ours."""


async def read(request: ApiRequest) -> DetailedAnswer:
    """Answer with the bytes of one artifact, by the digest that the list names. They are never shown by a browser."""
    job = await request.service.jobs.find(request.path["job"])
    data = await request.service.artifacts.read(job, request.path["digest"])
    return DetailedAnswer(value=data, headers=dict(_HEADERS), media=BYTES)


ROUTES: Final = (
    Route(
        method="GET",
        path="/v1/jobs/{job}/artifacts/{digest}",
        name="artifacts.read",
        scope="read",
        summary="Download an artifact.",
        handler=read,
        answer=bytes,
        media=BYTES,
        codes=(Code.JOB_NOT_FOUND, Code.ARTIFACT_NOT_FOUND, Code.BLOB_MISSING, Code.PAYLOAD_ERASED),
    ),
)
