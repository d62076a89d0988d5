"""Artifacts: the files that a job's steps left, and what they wrote to stdout and stderr."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ChainBrokenError, NotFoundError, PayloadErasedError
from remit.jobs.state import JobHistory
from remit.journal.event import UNSET
from remit.journal.kinds import BytesKept, decode
from remit.journal.lineage import whole
from remit.operation import JobReference, operation
from remit.record.heads import head_of, stream_named
from remit.record.job_story import beside
from remit.record.values import value_of
from remit.record.views import ArtifactRow

if TYPE_CHECKING:
    from remit.jobs.state import CallRecord
    from remit.journal.journal import Journal

_STREAMS: Final = frozenset({"stdout", "stderr"})


class Artifacts:
    """The artifacts of the jobs and sessions of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @operation(
        "artifacts.rows", "GET /v1/jobs/{job}/artifacts", "read", "List what a job left.", codes=(Code.JOB_NOT_FOUND,)
    )
    async def rows(self, job: JobReference) -> list[ArtifactRow]:
        """List the files that a job's steps left, and what they wrote to stdout and stderr.

        They come in the order of the steps. A session has them too; those of its calls with streams of their own come
        last. Raises NotFoundError.
        """
        return [row for stream in await self._streams(job) for row in await self._rows(stream)]

    async def _streams(self, job: str) -> list[str]:
        """The stream of a job or session, and others of the session. Raises NotFoundError."""
        await head_of(self._journal, job)
        return [stream_named(job), *await beside(self._journal, job)]

    async def _rows(self, stream: str) -> list[ArtifactRow]:
        events = await whole(self._journal, await self._journal.read(stream))
        history = JobHistory(events)
        steps = {payload.step for event in events if isinstance(payload := decode(event.kind, event.data), BytesKept)}
        artifacts: list[ArtifactRow] = []
        for step, record in history.calls.items():
            artifacts += _written(step, record)
            if step in steps and record.finished is not None:
                value = await value_of(self._journal, record.finished.result, record.finished.result_blob)
                artifacts += _files(step, value)
        return artifacts

    async def read(self, job: str, digest: str) -> bytes:
        """The bytes of one of a job's artifacts.

        Raises NotFoundError for a digest that the job did not leave, and ChainBrokenError (BLOB_MISSING) or
        PayloadErasedError for bytes that are not kept any more.
        """
        hidden = False
        for stream in await self._streams(job):
            data, erased = await self._found(stream, digest)
            if data is not None:
                return data
            hidden = hidden or erased
        if hidden:
            raise PayloadErasedError(f"the artifacts of {job} were erased with everything about its subject")
        remedy = f"`remit artifacts {job}` lists all files."
        raise NotFoundError(f"{job} has no artifact {digest!r:.90}", code=Code.ARTIFACT_NOT_FOUND, remedy=remedy)

    async def _found(self, stream: str, digest: str) -> tuple[bytes | None, bool]:
        """The bytes, if they were left in this stream; and whether others of it were erased."""
        events = await whole(self._journal, await self._journal.read(stream))
        erased = False
        for event in events:
            payload = decode(event.kind, event.data)
            if isinstance(payload, BytesKept):
                if payload.kept_blob.key:  # in a stream with a subject the digest says nothing of the bytes
                    try:
                        data = await self._journal.value(UNSET, payload.kept_blob)
                    except PayloadErasedError:
                        erased = True
                        continue
                    if data is not None and sha256(data) == digest:
                        return data, erased
                elif payload.kept_blob.digest == digest:
                    return await self._kept(digest), erased
        if any(row.sha256 == digest for step, call in JobHistory(events).calls.items() for row in _written(step, call)):
            return await self._kept(digest), erased
        return None, erased

    async def _kept(self, digest: str) -> bytes:
        data = await self._journal.blob(digest)
        if data is None:
            reason, remedy = f"the bytes of {digest} are no longer stored", "Run the job again."
            raise ChainBrokenError(reason, code=Code.BLOB_MISSING, remedy=remedy)
        if sha256(data) != digest:
            raise ChainBrokenError(f"the bytes kept as {digest} have another digest", remedy="Restore a backup.")
        return data


def _written(step: str, record: CallRecord) -> Iterator[ArtifactRow]:
    for item in record.evidence:
        if item.get("kind") in _STREAMS and item.get("storage") == "raw":
            yield ArtifactRow(
                step=step,
                path=item["kind"],
                bytes=item.get("bytes", 0),
                sha256=item.get("hash", ""),
                media_type="text/plain",
            )


def _files(step: str, value: Any) -> list[ArtifactRow]:
    """Return what a result such as that of `sandbox.collect` names."""
    listed = value.get("artifacts") if isinstance(value, Mapping) else None
    try:
        return [
            msgspec.convert({**entry, "step": step}, ArtifactRow)
            for entry in (listed if isinstance(listed, list) else ())
            if isinstance(entry, Mapping)
        ]
    except msgspec.ValidationError:  # another tool's result, that means something else
        return []
