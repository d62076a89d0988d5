"""Evidence packages: everything recorded of a job, a session or any stream, in one zip that anyone can check.

`remit.evidence.verify` says what is in it. The same record gives the same bytes each time: no clock is asked, files
come in the order of their names, and every JSON text is in canonical form.
"""

from __future__ import annotations

import zipfile
from hashlib import sha256
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from remit.audit.values import Values
from remit.canonical import canonical
from remit.clock import isoformat
from remit.codes import Code
from remit.errors import NotFoundError
from remit.evidence.container import FORMAT, manifest_hash
from remit.evidence.ledger import Event as RecordedEvent
from remit.evidence.ledger import Ledger
from remit.evidence.program import program
from remit.evidence.values import path_of
from remit.jobs.state import KIND as JOB
from remit.journal.event import HeadQuery
from remit.journal.kinds import JobForked, decode
from remit.journal.salting import erasure_of
from remit.record.heads import stream_named
from remit.record.job_story import beside

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from remit.journal.event import Event, Head
    from remit.journal.journal import Journal

_PAGE: Final = 500
_RUNS: Final = 10_000
_REMEMBERED: Final = "remembered:"
_CHECKS: Final = (
    ("chain", "events.ndjson"),
    ("streams", "proof.json"),
    ("calls", "ledger.ndjson"),
    ("values", "proof.json"),
)
"""The checks, each with the file that says the details."""
_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest that a zip can say."""


async def write_package(journal: Journal, identifier: str, file: IO[bytes], *, redacted: bool = False) -> str:
    """Write the package of a job, a session or a named stream to `file`; return its own hash.

    Raise NotFoundError, and ChainBrokenError for a record that is damaged: what does not hold is not exported.
    """
    scope = identifier if "/" in identifier else stream_named(identifier)
    if await journal.head(scope) is None:
        remedy = "`remit jobs` and `remit sessions` list them."
        raise NotFoundError(f"nothing is recorded of {identifier}", code=Code.JOB_NOT_FOUND, remedy=remedy)
    with TemporaryFile() as events:
        record = _Record(journal, events, redacted=redacted)
        await record.add(scope)
        for stream in await beside(journal, identifier):
            await record.add(stream)
        kind, _, name = scope.partition("/")
        for head in await journal.heads(HeadQuery(kind=JOB, labels={kind: name}, limit=_RUNS)):
            await record.add(head.stream)  # such as the runs of a ticket
        await record.add_referenced()
        return await record.write(file, scope)


class _Record:
    """The streams of a package, as they are collected."""

    def __init__(self, journal: Journal, events: IO[bytes], *, redacted: bool) -> None:
        self._journal = journal
        self._events = events
        self._redacted = redacted
        self._values = Values(journal, redacted=redacted)
        self._ledger = Ledger()
        self._streams: dict[str, dict[str, Any]] = {}
        self._others: set[str] = set()
        """Streams that the events refer to: remembered approvals, erasures, the job that a fork shares events with."""
        self._last = 0

    async def add(self, root: str) -> None:
        """Add a stream and those below it."""
        async for head in self._heads(root):
            await self._add(head)

    async def add_referenced(self) -> None:
        """Add what the streams so far refer to, and what those refer to."""
        while missing := sorted(self._others - self._streams.keys()):
            self._others.difference_update(missing)
            for stream in missing:
                await self.add(stream)

    async def write(self, file: IO[bytes], scope: str) -> str:
        """Write the zip; return the package's hash."""
        values = await self._values.states()
        small = {
            "ledger.ndjson": self._ledger.text(),
            "metadata.json": canonical(await self._metadata(scope)),
            "proof.json": canonical(
                {
                    "streams": list(self._streams.values()),
                    "values": [value._asdict() for value in values],
                    "pending": self._ledger.pending,
                }
            ),
            "verify.py": program(),
        }
        kept = [path_of(value.sha256) for value in values if value.state == "kept"]
        files: list[dict[str, Any]] = []
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
            for name in sorted([*kept, *small, "events.ndjson"]):
                if name in small:
                    parts: Iterable[bytes] = (small[name],)
                elif name == "events.ndjson":
                    self._events.seek(0)
                    parts = iter(lambda: self._events.read(1 << 20), b"")
                else:
                    parts = (await self._values.bytes(f"sha256:{name.partition('/')[2]}"),)
                files.append(_add(package, name, parts))
            manifest: dict[str, Any] = {
                "format": FORMAT,
                "scope": scope,
                "redacted": self._redacted,
                "artifacts": files,
                "checks": [{"name": name, "details_ref": path} for name, path in _CHECKS],
            }
            manifest["hash"] = manifest_hash(manifest)
            _add(package, "manifest.json", (canonical(manifest),))
        return str(manifest["hash"])

    async def _heads(self, root: str) -> AsyncIterator[Head]:
        own = await self._journal.head(root)
        if own is not None:
            yield own
        found: list[Head] = []
        before = None
        while page := await self._journal.heads(HeadQuery(prefix=f"{root}/", before=before, limit=_PAGE)):
            found += page
            before = page[-1].stream
        for head in sorted(found, key=lambda head: head.stream):
            yield head

    async def _add(self, head: Head) -> None:
        if head.stream in self._streams:
            return
        events: list[Event] = []
        await self._journal.examine(head.stream, visit=events.extend)
        for event in events:
            row = {
                "stream": event.stream,
                "seq": event.seq,
                "kind": event.kind,
                "at": event.at,
                "data": event.data.decode(),
                "hash": event.hash.hex(),
            }
            self._events.write(canonical(row) + b"\n")
            self._ledger.take(RecordedEvent(event.stream, event.seq, event.kind, msgspec.json.decode(event.data)))
            await self._values.note(event)
            self._refer(event)
        self._last = max(self._last, *(event.at for event in events))
        self._streams[head.stream] = {
            "stream": head.stream,
            "kind": head.kind,
            "events": len(events),
            "hash": events[-1].hash.hex(),
        }
        if head.subject:
            self._others.add(erasure_of(head.subject))

    def _refer(self, event: Event) -> None:
        payload = decode(event.kind, event.data)
        rule = getattr(payload, "rule_id", "")
        if rule.startswith(_REMEMBERED):
            self._others.add(f"approval/{rule.removeprefix(_REMEMBERED)}")
        if isinstance(payload, JobForked) and payload.shared:
            self._others.add(stream_named(payload.job))

    async def _metadata(self, scope: str) -> dict[str, Any]:
        head = await self._journal.head(scope)
        if head is None:
            raise AssertionError("it was there a moment ago, and no head is ever removed")
        return {
            "stream": scope,
            "kind": head.kind,
            "state": head.state,
            "title": head.title,
            "labels": head.labels,
            "created_at": isoformat(head.created_at),
            "last_event_at": isoformat(self._last),
        }


def _add(package: zipfile.ZipFile, name: str, parts: Iterable[bytes]) -> dict[str, Any]:
    """Add a file; return its row in the manifest."""
    entry = zipfile.ZipInfo(name, _TIME)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
    found, size = sha256(), 0
    with package.open(entry, "w") as content:
        for part in parts:
            found.update(part)
            size += len(part)
            content.write(part)
    kind = "value" if name.startswith("blobs/") else name.partition(".")[0]
    return {"kind": kind, "path": name, "sha256": f"sha256:{found.hexdigest()}", "bytes": size}
