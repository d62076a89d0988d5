"""Evidence packages: everything recorded of a job, a session, any stream or a time, in one zip that anyone can check.

`remit.evidence.verify` says what is in it. The same record gives the same bytes each time: no clock is asked, streams
come in the order of their names, values as their events name them, and every JSON text is in canonical form. Each event
and each value is read once and written at once, so that memory grows by the streams and values alone.

The signed checkpoints that cover the streams of a package, with proofs; `remit.evidence.checkpoints` checks them.

Of each log come the first checkpoint that holds all leaves of the package, and the first ones from there on that a
witness cosigned and that an authority stamped. So once these are recorded, they are the same each time. Where events
of a package lie far apart, such as an approval of last year, each stretch of the log stands for itself.

What does not fit is not exported: a stream that was cut, is gone, or is not the one that was signed.
"""

from __future__ import annotations

import asyncio
import sys
import zipfile
from hashlib import sha256
from itertools import groupby, pairwise
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from remit.canonical import canonical
from remit.canonical import sha256 as digest_of
from remit.clock import DAY, SKEW, isoformat
from remit.codes import Code
from remit.errors import ChainBrokenError, NotFoundError, RecordPrunedError, UsageError
from remit.evidence.checkpoints import CHECKPOINTS
from remit.evidence.container import FORMAT, manifest_hash
from remit.evidence.interval import Interval
from remit.evidence.ledger import CallLedger
from remit.evidence.ledger import LedgerEvent as RecordedEvent
from remit.evidence.merkle import Subtrees
from remit.evidence.note import Checkpoint, encoded
from remit.evidence.program import program
from remit.evidence.rejected import RejectedError
from remit.evidence.values import path_of
from remit.jobs.state import KIND as JOB
from remit.journal.event import Event, HeadQuery
from remit.journal.kinds import BytesKept, CallContinued, CallOpened, JobForked, StreamPruned
from remit.journal.kinds.calls import DecisionFacts
from remit.journal.references import erasure_of
from remit.journal.retirement import KIND as STANDING
from remit.journal.scan import every_head
from remit.journal.values import RESTORE, stub_of
from remit.journal.values import value as value_of
from remit.parts.audit.sessions import KIND, CheckpointEnd, RecorderSession, sessions_of
from remit.record.heads import stream_named
from remit.record.job_story import beside
from remit.record.walk import root_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from remit.journal.event import StreamHead
    from remit.journal.journal import Journal
    from remit.journal.kinds import OptionalRaw, OptionalRef, Payload
    from remit.journal.references import Digest


_REMEDY: Final = "Look with `remit verify`; if the record was changed, restore a backup."


class Reached(NamedTuple):
    """The last event of a stream in a package."""

    seq: int
    chain: str
    """The chain value after its last event, in hexadecimal."""
    at: int
    """When that was recorded, in microseconds since the Unix epoch."""
    is_pruned: bool = False
    """Whether it is the last event that a stub stands for: none of them is in the package."""


class _Below:
    """The streams of a package, and all that were ever signed below their roots."""

    def __init__(self, streams: Mapping[str, Reached]) -> None:
        self._roots = {root_of(stream) for stream in streams}

    def __contains__(self, stream: object) -> bool:
        return root_of(str(stream)) in self._roots


async def checkpoint_files(
    journal: Journal, streams: Mapping[str, Reached], days: Collection[int]
) -> dict[str, tuple[bytes, ...]]:
    """Return files of a package over these streams, which grew on these days; none if no recorder signed them.

    `days` are counted since the Unix epoch. Raise ChainBrokenError if a stream or the log is not what was signed.
    """
    spans = [(day * DAY - SKEW, (day + 1) * DAY + SKEW) for day in sorted(days)]
    sessions = await sessions_of(journal, _Below(streams), *spans)
    if await _are_elsewhere(journal, sessions, streams):
        sessions = await sessions_of(journal, _Below(streams), (0, sys.maxsize))
    newest: dict[str, CheckpointEnd] = {}
    for stream, end in _ends(sessions):
        reached = streams.get(stream)
        if reached is not None and end.seq == reached.seq and end.chain != reached.chain:
            raise _differs(stream, end)
        newest[stream] = max(end, newest.get(stream, end))
    for stream, end in newest.items():
        await _compare(journal, stream, end, streams.get(stream))
    return await asyncio.to_thread(_files, sessions, streams)  # a busy day has a million leaves


async def _are_elsewhere(journal: Journal, sessions: Sequence[RecorderSession], streams: Mapping[str, Reached]) -> bool:
    """Return whether checkpoints over these streams may be of other times: a clock that was wrong was set right."""
    signed: dict[str, int] = {}
    for stream, end in _ends(sessions):
        signed[stream] = max(end.seq, signed.get(stream, 0))
    bare = [stub.at for stream, stub in streams.items() if not stub.is_pruned and signed.get(stream, 0) < stub.seq]
    newest = await journal.heads(HeadQuery(kind=KIND, limit=1)) if bare else ()
    read = {session.stream for session in sessions}
    return any(head.stream not in read or min(bare) < head.updated_at for head in newest)


def _ends(sessions: Iterable[RecorderSession]) -> Iterator[tuple[str, CheckpointEnd]]:
    return (pair for session in sessions for beat in session.beats for pair in beat.ends.items())


async def _compare(journal: Journal, stream: str, end: CheckpointEnd, reached: Reached | None) -> None:
    """Compare a stream with the newest event of it that is signed."""
    if reached is None or end.seq > reached.seq:
        head = await journal.head(stream)
        if head is None or head.seq < end.seq:
            is_there = f"it has {head.seq}: it was cut" if head is not None else "it is gone"
            raise _broken(stream, f"{end.seq} events are signed, and {is_there}", Code.CHECKPOINT_MISSING)
    elif end.seq < reached.seq and not reached.is_pruned:
        page = await journal.page(stream, end.seq - 1, 1)
        if [event.hash.hex() for event in page] != [end.chain]:
            raise _differs(stream, end)


def _files(sessions: Sequence[RecorderSession], streams: Mapping[str, Reached]) -> dict[str, tuple[bytes, ...]]:
    there = {stream: reached for stream, reached in streams.items() if not reached.is_pruned}
    rows, files = list[dict[str, Any]](), dict[str, tuple[bytes, ...]]()
    for _, group in groupby(sorted(sessions, key=_origin), key=_origin):
        logs = [_Log(stretch, there) for stretch in _stretches(group)]
        for number, log in enumerate(logs):
            later = set[str]().union(*(each.leaves for each in logs[number + 1 :]))
            log.leaves = {stream: leaf for stream, leaf in log.leaves.items() if stream not in later}
            if log.leaves:
                rows.append(log.row(files))
    return {CHECKPOINTS: (canonical(rows),), **files} if rows else {}


def _origin(session: RecorderSession) -> str:
    return session.origin


def _stretches(sessions: Iterable[RecorderSession]) -> Iterator[list[RecorderSession]]:
    """Give the sessions of a log, divided where some between them were not read."""
    stretch: list[RecorderSession] = []
    size = 0
    for session in sessions:
        if session.tree.size > size and stretch:
            yield stretch
            stretch = []
        elif session.tree.size < size:
            raise _broken(session.stream, "it does not begin where the session before it ended")
        stretch.append(session)
        size = session.tree.size + sum(len(beat.leaves) for beat in session.beats)
    yield stretch


class _Log:
    """The log of one origin, in sessions that follow one another."""

    def __init__(self, sessions: Sequence[RecorderSession], streams: Mapping[str, Reached]) -> None:
        self._sessions = sessions
        self.leaves: dict[str, tuple[int, int]] = {}
        """By stream, the number of the newest event that is signed, and the index of the leaf that says so."""
        self._signed: dict[int, Mapping[str, Any]] = {}
        """By size, each checkpoint."""
        tree, hashes = sessions[0].tree, list[bytes]()
        for beat in (beat for session in sessions for beat in session.beats):
            for stream, end in beat.ends.items():
                newest, _ = self.leaves.get(stream, (0, 0))
                if stream in streams and newest < end.seq <= streams[stream].seq:
                    self.leaves[stream] = end.seq, tree.size + len(hashes) + end.place
            hashes += beat.leaves
            self._signed[beat.signed["size"]] = beat.signed
        self._tree = Subtrees(tree, hashes)

    def row(self, files: dict[str, tuple[bytes, ...]]) -> dict[str, Any]:
        """Return what checkpoints.json says of it; stamps go to files."""
        last = max(index for _, index in self.leaves.values())
        smallest = min(size for size in self._signed if size > last)
        rows: dict[int, dict[str, Any]] = {smallest: {"note": self._note(smallest)}}
        for size, cosignatures, stamp in self._vouched(smallest):
            row = rows.setdefault(size, {"note": self._note(size)})
            if cosignatures:
                row["note"] = self._note(size, cosignatures)
            else:
                row["stamp"] = f"stamps/{len(files) // 2 + 1}"
                files[f"{row['stamp']}.checkpoint"] = (self._checkpoint(size).body.encode(),)
                files[f"{row['stamp']}.tsr"] = (stamp,)
        sizes = sorted(rows)
        for old, new in pairwise(sizes):
            rows[new]["proof"] = [encoded(node) for node in self._tree.prefix(old, new)]
        leaves = [
            {"stream": stream, "seq": seq, "index": index, "proof": [*map(encoded, self._tree.path(index, smallest))]}
            for stream, (seq, index) in sorted(self.leaves.items())
        ]
        return {"checkpoints": [rows[size] for size in sizes], "leaves": leaves}

    def _vouched(self, smallest: int) -> Iterator[tuple[int, tuple[str, ...], bytes]]:
        """Give the first cosigned and the first stamped checkpoint of at least a size."""
        words = [line for session in self._sessions for line in session.vouched]
        cosigned = [line for line in words if line.cosigned >= smallest and line.cosigned in self._signed]
        stamped = [line for line in words if line.stamped >= smallest and line.stamped in self._signed and line.stamp]
        for line in cosigned[:1]:
            yield line.cosigned, line.cosignatures, b""
        for line in stamped[:1]:
            yield line.stamped, (), line.stamp

    def _note(self, size: int, cosignatures: Sequence[str] = ()) -> str:
        return self._checkpoint(size).signed([self._signed[size]["signature"], *cosignatures])

    def _checkpoint(self, size: int) -> Checkpoint:
        session, root = self._sessions[0], self._tree.root(0, size)
        if encoded(root) != self._signed[size]["root"]:
            raise _broken(session.origin, f"the checkpoint over {size} leaves is not what its leaves make")
        return Checkpoint(session.origin, size, root)


def _differs(stream: str, end: CheckpointEnd) -> ChainBrokenError:
    return _broken(stream, f"event {end.seq} is not the one that was signed: it was written again")


def _broken(place: str, reason: str, code: Code = Code.CHECKPOINT_DIFFERS) -> ChainBrokenError:
    return ChainBrokenError(f"{place}: {reason}", code=code, remedy=_REMEDY)


_PART: Final = 1 << 20
_RUNS: Final = 10_000
_SHARED: Final = frozenset({STANDING, "limit", "notification", "reads", "recorder", "search", "telemetry", "worker"})
"""The kinds of streams that grow at all times, whatever agents do: with one of them a package would soon be another."""
_REMEMBERED: Final = "remembered:"
_CHECKS: Final = (
    ("chain", "events.ndjson"),
    ("streams", "proof.json"),
    ("calls", "ledger.ndjson"),
    ("values", "proof.json"),
    ("checkpoints", CHECKPOINTS),
)
"""The checks, each with the file that says the details, if it is there."""
_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest that a zip can say."""
_State = Literal["kept", "erased", "expired", "missing", "redacted"]
_GONE: dict[str, _State] = {"timed": "expired", "own": "expired", "shared": "missing", "policy": "missing"}
"""The state of bytes that are not there, and need not be, by whose they are: an older Remit kept less."""
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


async def write_package(
    journal: Journal, identifier: str, file: IO[bytes], *, redacted: bool = False, method: int = zipfile.ZIP_DEFLATED
) -> str:
    """Write the package of a job, a session or a named stream to `file`; return its own hash.

    `method` is that of its compression: a package that is read at once needs none.

    Raise NotFoundError, RecordPrunedError, and ChainBrokenError for a record that is damaged: what does not hold is not
    exported.
    """
    journal.require_key()
    scope = identifier if "/" in identifier else stream_named(identifier)
    head = await journal.head(scope)
    if head is None:
        remedy = "`remit jobs` and `remit sessions` list them."
        raise NotFoundError(f"nothing is recorded of {identifier}", code=Code.JOB_NOT_FOUND, remedy=remedy)
    await journal.page(scope, 0, 1)
    kind, _, name = scope.partition("/")
    runs = await journal.heads(HeadQuery(kind=JOB, labels={kind: name}, limit=_RUNS))  # such as those of a ticket
    metadata = {
        "stream": scope,
        "kind": head.kind,
        "state": head.state,
        "title": head.title,
        "labels": head.labels,
        "created_at": isoformat(head.created_at),
    }
    roots = [scope, *await beside(journal, name), *(run.stream for run in runs)]
    return await _write(journal, roots, _Package(file, method), scope, metadata, redacted=redacted)


async def write_interval(journal: Journal, interval: Interval, file: IO[bytes], *, redacted: bool = False) -> str:
    """Write the package of all streams written to in an interval to `file`, each whole; return its own hash.

    Raise UsageError for an interval that is not over, NotFoundError if nothing was recorded in it, and
    ChainBrokenError as above.
    """
    journal.require_key()
    if not 0 <= interval.since < interval.until <= journal.clock.now():
        remedy = "Give a time that is over, the earlier end first."
        raise UsageError(f"{interval} is not over, or ends before it begins", code=Code.INVALID_INPUT, remedy=remedy)
    roots = await _roots(journal, interval)
    if not roots:
        remedy = "`remit audit --since 30d` says what was recorded."
        raise NotFoundError(f"nothing was recorded in {interval}", code=Code.JOB_NOT_FOUND, remedy=remedy)
    if not any(roots.values()):
        remedy = "The packages that were archived before hold it: `remit verify FILE.zip`."
        raise RecordPrunedError(f"everything recorded in {interval} was pruned", remedy=remedy)
    metadata, package = {"interval": str(interval)}, _Package(file, zipfile.ZIP_DEFLATED)
    return await _write(journal, sorted(roots), package, str(interval), metadata, redacted=redacted)


async def _roots(journal: Journal, interval: Interval) -> dict[str, bool]:
    """Return the streams that were written to in an interval, themselves or below, and whether that is still there."""
    roots: dict[str, bool] = {}
    async for head in every_head(journal, HeadQuery()):
        root = root_of(head.stream)
        if head.kind in _SHARED or roots.get(root) or not (trace := await _trace_in(journal, head, interval)):
            continue
        roots[root] = trace == "events"
    return roots


async def _trace_in(journal: Journal, head: StreamHead, interval: Interval) -> Literal["", "events", "stub"]:
    """Say what is there of what a stream recorded in an interval: events, or a stub for what may have been some."""
    if head.created_at - SKEW >= interval.until or head.updated_at + SKEW < interval.since:
        return ""  # the head is enough, and most of a long journal is not read
    is_pruned = False
    async for events in journal.pages(head):
        stub = stub_of(events)
        is_pruned = is_pruned or stub is not None
        times = [event.at for event in events if event.kind != StreamPruned.KIND]
        is_stubbed = stub is not None and stub.first_at < interval.until and stub.last_at >= interval.since
        if is_stubbed or any(interval.since <= at < interval.until for at in times):
            return "stub" if is_pruned else "events"
    return ""


async def _write(
    journal: Journal,
    roots: Collection[str],
    package: _Package,
    scope: str,
    metadata: Mapping[str, Any],
    *,
    redacted: bool,
) -> str:
    with package, TemporaryFile() as events, TemporaryFile() as calls:
        record = _Record(journal, package, events, calls, redacted)
        for root in roots:
            await record.add(root)
        await record.add_referenced()
        return await record.write(scope, metadata)


class _Package:
    """A zip, as its files are written."""

    def __init__(self, file: IO[bytes], method: int) -> None:
        self._method = method
        self.files: dict[str, tuple[str, int]] = {}
        """The digest and the size of each file, by its path."""
        self._zip = zipfile.ZipFile(file, "w")

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, *_: object) -> None:
        """End the zip, also where it was broken off."""
        self._zip.close()

    def add(self, path: str, parts: Iterable[bytes]) -> None:
        """Add a file."""
        entry = zipfile.ZipInfo(path, _TIME)
        entry.compress_type, entry.external_attr = self._method, 0o100644 << 16
        digest, size = sha256(), 0
        with self._zip.open(entry, "w", force_zip64=False) as content:
            for part in parts:
                digest.update(part)
                size += len(part)
                content.write(part)
        self.files[path] = f"sha256:{digest.hexdigest()}", size

    def add_value(self, digest: str, data: bytes) -> None:
        """Add a value."""
        self.add(path_of(digest), (data,))

    def close(self, scope: str, *, redacted: bool) -> str:
        """Add the manifest, and end the zip; return the package's hash."""
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "scope": scope,
            "redacted": redacted,
            "artifacts": [
                {"kind": _kind_of(path), "path": path, "sha256": digest, "bytes": size}
                for path, (digest, size) in sorted(self.files.items())
            ],
            "checks": [{"name": name, "details_ref": path} for name, path in _CHECKS if path in self.files],
        }
        manifest["hash"] = manifest_hash(manifest)
        self.add("manifest.json", (canonical(manifest),))
        self._zip.close()
        return str(manifest["hash"])


def _kind_of(path: str) -> str:
    folder, _, _ = path.rpartition("/")
    return {"blobs": "value", "stamps": "stamp"}.get(folder, path.partition(".")[0])


class _Values:
    """Reads values for an examination (`Values`), and notes the state of each."""

    def __init__(self, journal: Journal, write: Callable[[str, bytes], object], *, redacted: bool) -> None:
        self.states: dict[str, _State] = {}
        """By digest."""
        self._journal = journal
        self._write = write
        self._redacted = redacted

    async def value(self, inline: OptionalRaw, ref: OptionalRef) -> bytes | None:
        return await value_of(self, inline, ref)

    async def blob(self, digest: str) -> bytes | None:
        """As Journal.blob."""
        data = await self._journal.blob(digest)
        if data is not None and digest not in self.states:
            self.states[digest] = "erased" if not data else "redacted" if self._redacted else "kept"
            if self.states[digest] == "kept":
                self._write(digest, data)
        return data

    def note_absent(self, digests: Iterable[Digest]) -> None:
        """Take in what an examination did not find, and need not."""
        for named in digests:
            self.states.setdefault(named.digest, _GONE[named.whose])

    async def note_expired(self, payloads: Sequence[Payload | None]) -> None:
        """Take in bytes whose time is over, which an examination passes by. Raise ChainBrokenError for other bytes."""
        for payload in payloads:
            if isinstance(payload, BytesKept) and payload.until is not None and payload.digest not in self.states:
                data = await self.blob(payload.digest)
                if data and digest_of(data) != payload.digest:
                    msg = f"the bytes kept as {payload.digest} have another digest"
                    raise ChainBrokenError(msg, remedy=RESTORE)
                self.states.setdefault(payload.digest, "expired")


class _Record:
    """The streams of a package: values are written as they are read, events and calls beside until all are there."""

    def __init__(
        self, journal: Journal, package: _Package, events: IO[bytes], calls: IO[bytes], redacted: bool
    ) -> None:
        self._journal = journal
        self._package = package
        self._events = events
        self._calls = calls
        self._redacted = redacted
        self._values = _Values(journal, package.add_value, redacted=redacted)
        self._ledger = CallLedger(calls.write)
        self._streams: dict[str, bytes] = {}
        """By stream, its row in proof.json."""
        self._pruned: dict[str, dict[str, Any]] = {}
        """By stream of which a stub is left, what that says: there is nothing to check its chain from."""
        self._others: set[str] = set()
        """Streams that events refer to: remembered approvals, erasures, the session of a call, the job of a fork."""
        self._proven: set[str] = set()
        self._reached: dict[str, Reached] = {}
        self._days: set[int] = set()
        """The days on which something was recorded, counted since the Unix epoch."""
        self._last = 0
        """When the last event was recorded."""

    async def add(self, root: str) -> None:
        """Add a stream and those below it."""
        own = await self._journal.head(root)
        below = [head async for head in every_head(self._journal, HeadQuery(prefix=f"{root}/"))]
        for head in [*filter(None, [own]), *sorted(below, key=lambda head: head.stream)]:
            if head.stream not in self._streams and head.stream not in self._pruned:
                await self._add(head)

    async def add_referenced(self) -> None:
        """Add what the streams so far refer to, and what those refer to."""
        while missing := sorted(self._others - self._streams.keys() - self._pruned.keys()):
            self._others.difference_update(missing)
            for stream in missing:
                await self.add(stream)

    async def write(self, scope: str, metadata: Mapping[str, Any]) -> str:
        """Write what is left, with the checkpoints of recorders; return the package's hash."""
        self._ledger.end()
        values = [
            canonical({"sha256": digest, "state": state}) for digest, state in sorted(self._values.states.items())
        ]
        proof = (b'{"pending":', canonical(self._ledger.pending), b',"streams":[', b",".join(self._streams.values()))
        self._package.add("events.ndjson", _parts_of(self._events))
        self._package.add("ledger.ndjson", _parts_of(self._calls))
        pruned = {"pruned": list(self._pruned.values())} if self._pruned else {}
        self._package.add("metadata.json", (canonical({**metadata, "last_event_at": isoformat(self._last), **pruned}),))
        self._package.add("proof.json", (*proof, b'],"values":[', b",".join(values), b"]}"))
        checkpoints = await checkpoint_files(self._journal, self._reached, self._days)
        for path, parts in checkpoints.items():
            self._package.add(path, parts)
        self._package.add("verify.py", (program(),))
        return self._package.close(scope, redacted=self._redacted)

    async def _add(self, head: StreamHead) -> None:
        last = Event(head.stream, 0, "", 0, b"", b"")

        async def visit(events: Sequence[Event], payloads: Sequence[Payload | None]) -> None:
            nonlocal last
            if last.seq == 0 and (stub := stub_of(events)) is not None:
                totals = {"events": stub.events, "hash": stub.hash, "package": stub.package}
                self._pruned[head.stream] = {"stream": head.stream, **totals}
                self._reached[head.stream] = Reached(stub.events, stub.hash, stub.last_at, is_pruned=True)
                self._days.add(stub.last_at // DAY)
            last = events[-1]
            if head.stream in self._pruned:
                return
            self._last = max(self._last, *(event.at for event in events))
            self._days.update(event.at // DAY for event in events)
            self._events.write(b"".join([_line(event) for event in events]))
            for event in events:
                if event.kind in CallLedger.KINDS:
                    self._call(RecordedEvent(event.stream, event.seq, event.kind, _decode(event.data)))
            await self._values.note_expired(payloads)
            for payload in payloads:
                self._refer(payload)

        examined = await self._journal.examine(head.stream, self._proven, visit, self._values)
        if head.stream in self._pruned:
            return
        self._values.note_absent(examined.absent)
        row = {"stream": head.stream, "kind": head.kind, "events": last.seq, "hash": last.hash.hex()}
        self._streams[head.stream] = canonical(row)
        self._reached[head.stream] = Reached(last.seq, last.hash.hex(), last.at)
        if head.subject:
            self._others.add(erasure_of(head.subject))

    def _call(self, event: RecordedEvent) -> None:
        try:
            self._ledger.take(event)
        except RejectedError as error:
            raise ChainBrokenError(str(error), code=Code.RECORD_CONTRADICTED, remedy=RESTORE) from error

    def _refer(self, payload: Payload | None) -> None:
        rule, facts = getattr(payload, "rule_id", ""), getattr(payload, "facts", None)
        names = facts.remembered if isinstance(facts, DecisionFacts) else ()
        if rule.startswith(_REMEMBERED):
            names = (*names, rule.removeprefix(_REMEMBERED))
        self._others.update(f"approval/{name}" for name in names)
        if isinstance(payload, JobForked) and payload.shared:
            self._others.add(stream_named(payload.job))
        elif isinstance(payload, CallOpened | CallContinued):  # the session says who called, and over which face
            self._others.add(stream_named(payload.session))


def _line(event: Event) -> bytes:
    """Return an event as a line of events.ndjson, in canonical form."""
    texts = (event.data.decode(), event.hash.hex(), event.kind, event.stream)
    data, chained, kind, stream = map(_encode, texts)
    return b'{"at":%d,"data":%b,"hash":%b,"kind":%b,"seq":%d,"stream":%b}\n' % (
        event.at, data, chained, kind, event.seq, stream,
    )  # fmt: skip


def _parts_of(file: IO[bytes]) -> Iterable[bytes]:
    file.seek(0)
    return iter(lambda: file.read(_PART), b"")
