"""Pruning: the events of streams that are over are removed, and a stub stays in the place of each (stub.py).

A *unit* goes at once: a root stream, such as a job, with all that belongs to it, in one transaction with the values
that nothing else names. After a crash at any point a unit is whole, or its stubs are. Nothing is remembered between two
runs: each looks at the whole journal, so the next one finishes what another one left.

Values are shared by digest, and jobs refer to each other, so it has to be known what the rest of the journal names.
`Uses` reads all of it once, and then what came since; the transaction itself looks at what came after that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from remit.errors import AppendConflictError, PayloadErasedError
from remit.journal.event import Append, Cut, Event, HeadPatch, StreamHead
from remit.journal.kinds import (
    CommandStarted,
    EvidenceAttached,
    JobCreated,
    JobForked,
    StreamPruned,
    decode,
)
from remit.journal.references import digests_in, digests_of, names_in, values_in
from remit.journal.scan import every_page
from remit.journal.values import MARK, PRUNED, stub_of

if TYPE_CHECKING:
    from remit.journal.journal import Journal

_PAGE: Final = 5_000
_ATTEMPTS: Final = 20
_OWN: Final = frozenset({"own", "timed"})
_NAMED: Final = frozenset({JobForked.KIND, CommandStarted.KIND, JobCreated.KIND})


class UnitStream(msgspec.Struct, frozen=True, kw_only=True):
    """A stream of a unit, as it was found."""

    head: StreamHead
    first_at: int
    last_at: int
    blobs: frozenset[str]
    """Digests of its values."""


class StubTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What the stubs of a unit say."""

    package: str = ""
    by: str = ""
    reason: str = ""
    labels: Mapping[str, str] | None = None
    """Labels of the root's head; None: those that it has."""


async def look_at(journal: Journal, head: StreamHead) -> UnitStream:
    """Read a stream that is to go. Raises ChainBrokenError if it is damaged: that is not covered up."""
    events: list[Event] = []
    blobs: set[str] = set()

    async def visit(page: Sequence[Event], _payloads: object) -> None:
        events.extend([*page[: not events], page[-1]])
        for event in page:
            blobs.update(await _values(journal, event))

    await journal.examine(head.stream, visit=visit)
    stub = stub_of(events)
    return UnitStream(
        head=head,
        first_at=stub.first_at if stub is not None else events[0].at,
        last_at=events[-1].at,
        blobs=frozenset(blobs),
    )


async def _values(journal: Journal, event: Event) -> set[str]:
    """Digests of what an event keeps beside itself, without what many streams share, such as schemas."""
    payload = decode(event.kind, event.data)
    if payload is None:
        return set()
    digests = {named.digest for named in digests_in(payload) if named.whose in _OWN}
    for value in values_in(payload):
        if value.ref is not None:
            digests.add(value.ref.digest)
        if value.holds is not None:
            data = value.inline_bytes if value.ref is None else await _read(journal, value.ref)
            digests |= {named.digest for named in digests_of(value, data) if named.whose in _OWN}
    return digests


async def _read(journal: Journal, ref: object) -> bytes:
    try:
        return await journal.value(msgspec.UNSET, ref) or b"[]"  # type: ignore[arg-type] # a reference to a value
    except PayloadErasedError:
        return b"[]"


class Uses:
    """Knows what the events of a journal name: some values, and jobs."""

    def __init__(self, journal: Journal, blobs: Iterable[str]) -> None:
        self._journal = journal
        self._streams: dict[str, set[str]] = {digest: set() for digest in blobs}
        self._needs: dict[str, dict[str, str]] = {}
        """Streams that need a job's events, by job, each with the reason."""
        self.position = 0
        """The position up to which events were read."""

    async def refresh(self) -> None:
        """Read what came since the last look."""
        async for page in every_page(self._journal, self.position, (), _PAGE):
            for placed in page.events:
                await self._take(placed.event)
            self.position = page.position

    async def _take(self, event: Event) -> None:
        names = names_in(event.data)
        for name in names & self._streams.keys():
            self._streams[name].add(event.stream)
        if event.kind == EvidenceAttached.KIND and b"items_blob" in event.data:  # it names bytes in a value of its own
            for name in (await _values(self._journal, event)) & self._streams.keys():
                self._streams[name].add(event.stream)
        if event.kind in _NAMED:
            for job, reason in await self._jobs(event):
                self._needs.setdefault(job, {})[event.stream] = reason

    async def _jobs(self, event: Event) -> Iterable[tuple[str, str]]:
        """The jobs without whose events a stream cannot be shown, or go on."""
        payload = decode(event.kind, event.data)
        if isinstance(payload, JobForked):
            return [(payload.job, "shares its events")] if payload.shared else []
        if isinstance(payload, CommandStarted):
            return [(payload.after_job, "continues its conversation")] if payload.after_job else []
        if isinstance(payload, JobCreated):
            try:
                input_value = await self._journal.value(payload.input, payload.input_blob)
            except PayloadErasedError:
                input_value = None
            return _continued(input_value or b"")
        return []

    def reason(self, streams: Collection[str]) -> str:
        """Say who needs one of these streams; empty: no one else."""
        for stream in streams:
            for other, reason in self._needs.get(stream.partition("/")[2], {}).items():
                if other not in streams:
                    return f"{other.partition('/')[2]} {reason}"
        return ""

    def own(self, parts: Sequence[UnitStream]) -> tuple[str, ...]:
        """Return the values that no event of another stream names."""
        streams = {part.head.stream for part in parts}
        return tuple(digest for digest in {*_blobs(parts)} if self._streams.get(digest, set()) <= streams)

    def forget(self, parts: Sequence[UnitStream]) -> None:
        """Leave out streams that were removed."""
        streams = {part.head.stream for part in parts}
        for digest in _blobs(parts):
            self._streams[digest] -= streams
        for others in self._needs.values():
            for stream in streams & others.keys():
                del others[stream]


def _blobs(parts: Sequence[UnitStream]) -> Iterator[str]:
    return (digest for part in parts for digest in part.blobs)


def _continued(data: bytes) -> list[tuple[str, str]]:
    """The job that an agent's input continues."""
    if b'"earlier"' not in data:
        return []
    try:
        earlier = msgspec.json.decode(data).get("earlier")
        return [(str(earlier["job"]), "continues its conversation")] if isinstance(earlier, dict) else []
    except (msgspec.DecodeError, AttributeError, KeyError):
        return []


async def prune_unit(journal: Journal, parts: Sequence[UnitStream], uses: Uses, terms: StubTerms) -> int:
    """Remove a unit, its root first; how many values went with it.

    Raises AppendConflictError if a stream changed since it was looked at, or something new refers to it each time.
    """
    identifier = parts[0].head.stream.partition("/")[2]
    for _ in range(_ATTEMPTS):
        await uses.refresh()
        if reason := uses.reason([part.head.stream for part in parts]):
            raise AppendConflictError(f"{parts[0].head.stream} is needed: {reason}", remedy="Prune that first.")
        blobs = uses.own(parts)
        appends = [_stub(journal, part, terms, len(blobs), is_root=part is parts[0]) for part in parts]
        cut = Cut(appends=tuple(appends), blobs=blobs, names=frozenset({*blobs, identifier}), position=uses.position)
        if await journal.cut(cut):
            uses.forget(parts)
            return len(blobs)
    raise AppendConflictError(f"{parts[0].head.stream} is named by new events each time", remedy="Try again later.")


def _stub(journal: Journal, part: UnitStream, terms: StubTerms, values: int, *, is_root: bool) -> Append:
    head = part.head
    stub = StreamPruned(
        events=head.seq,
        hash=head.hash.hex(),
        first_at=part.first_at,
        last_at=part.last_at,
        state=head.state,
        code=head.labels.get("remit.code", ""),
        package=terms.package,
        values=values if is_root else 0,
        by=terms.by,
        reason=terms.reason,
    )
    mark = {MARK: str(head.seq + 1)}
    patch = (
        HeadPatch(title="", labels={**(head.labels if terms.labels is None else terms.labels), **mark})
        if is_root
        else HeadPatch(state=PRUNED, closed=True, due_at=None, title="", labels=mark)
    )
    append = journal.writer(head.stream, head.kind, head).stage(stub, patch=patch)
    return replace(append, at=head.updated_at)  # the head still says how long it took
