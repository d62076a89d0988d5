"""The newest record of each run of AEL of calls over MCP, made as a session of the recorder goes on.

An export makes the same records again, from the same events. So a hash that was registered while they were recorded is
that of a record in the export, or the record was changed since.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from remit.audit.formats import ael_trace
from remit.audit.formats.account import Entry, entry_of
from remit.audit.formats.ael import calls_of, covering, divided
from remit.audit.formats.ael_record import Records
from remit.audit.formats.ael_trace import Stretch, span_of
from remit.audit.sessions import Beat, Session, sessions_of
from remit.evidence.proofs import leaf_of
from remit.journal.event import HeadQuery
from remit.journal.scanning import every_head
from remit.record.heads import CALL, stream_named
from remit.record.job_story import beside
from remit.record.walk import root_of

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal

_KIND: Final = "tool_invocation_started"
_Run = tuple[str, str]
"""A job or session, and a trace."""


class Heads:
    """The newest records of one session of the recorder."""

    def __init__(self, journal: Journal, session: Session, key: str) -> None:
        self._journal, self._session, self._key = journal, session, key
        self._runs: dict[_Run, Records] = {}
        self._reached: dict[str, int] = {}
        """By stream, the event that the last checkpoint covers."""
        self._beats: list[Beat] = []

    async def take(self, beat: Beat) -> list[str]:
        """Return the hashes of the records of a checkpoint in the runs that have a new call. Raise JournalError."""
        events: dict[str, list[Event]] = {}
        for stream, end in beat.ends.items():
            if new := await self._events(stream, self._reached.get(stream, 0), end.seq):
                events.setdefault(await self._scope(stream), []).extend(new)
            self._reached[stream] = end.seq
        calls = await asyncio.to_thread(self._grouped, events)  # of many, it would hold the event loop up
        for scope, trace in calls.keys() - self._runs.keys():
            self._runs[scope, trace] = await self._begin(scope, trace)
        heads = await asyncio.to_thread(self._written, beat, calls)
        self._beats.append(beat._replace(leaves=[], ends={}))
        return heads

    def _grouped(self, events: Mapping[str, Sequence[Event]]) -> dict[_Run, list[Entry]]:
        """Return the calls that are made in this session, by the run that they are of."""
        calls: dict[_Run, list[Entry]] = {}
        for scope, some in events.items():
            for call in map(_entry, some):
                if call.at >= self._session.began and (span := span_of(call)) is not None:
                    calls.setdefault((scope, span.trace), []).append(call)
        return calls

    def _written(self, beat: Beat, calls: Mapping[_Run, Sequence[Entry]]) -> list[str]:
        """Write a checkpoint into each run, after the calls that it covers; return the hashes of those with calls."""
        heads = list[str]()
        for run, records in self._runs.items():
            if not records.count:
                records.open(self._beats[-1].at if self._beats else self._session.began, self._session)
            for _ in ael_trace.write_calls(records, calls.get(run, ())):
                pass
            head = records.heartbeat(beat)
            if run in calls:
                heads.append(leaf_of(head).hex())
        return heads

    def close(self, at: int) -> list[str]:
        """Return the hashes of the records that end the runs with their session."""
        return [leaf_of(records.close(at)).hex() for records in self._runs.values()]

    async def _events(self, stream: str, after: int, until: int) -> list[Event]:
        """Return the announcements of calls in a part of a stream."""
        events = await self._journal.left(stream, after) if after < until else []
        return [event for event in events if event.kind == _KIND and event.seq <= until]

    async def _scope(self, stream: str) -> str:
        """Return the job or session whose export holds a stream: calls of a session may have streams of their own."""
        root = root_of(stream)
        head = await self._journal.head(root) if root.startswith(f"{CALL}/") else None
        return stream_named(head.labels["session"]) if head is not None and "session" in head.labels else root

    async def _begin(self, scope: str, trace: str) -> Records:
        """Return the records of a run up to the last checkpoint: of a job that began before the session, all so far."""
        records = ael_trace.begin(trace, self._session.origin, self._key)
        head = await self._journal.head(scope)
        if head is None or head.created_at >= self._session.began:
            return records
        entries = await self._before(scope)
        sessions = await sessions_of(
            self._journal, {one.stream for one in entries}, (head.created_at, self._session.began)
        )
        stretches, _ = divided((one for one in sessions if one.began < self._session.began), entries)
        if (held := calls_of(stretches).get(trace)) is not None:
            crossed = covering(stretches, held, len(stretches))
            records = ael_trace.begin(trace, crossed[0].session.origin, self._key)
            crossed.append(Stretch(self._session, [(beat, ()) for beat in self._beats]))
            for _ in ael_trace.write(records, crossed):
                pass
        return records

    async def _before(self, scope: str) -> list[Entry]:
        """Return the calls of a job or session so far."""
        calls = list[Entry]()
        for root in [scope, *await beside(self._journal, scope.rpartition("/")[2])]:
            below = [head.stream async for head in every_head(self._journal, HeadQuery(prefix=f"{root}/"))]
            for stream in (root, *below):
                calls += map(_entry, await self._events(stream, 0, sys.maxsize))
        return calls


def _entry(event: Event) -> Entry:
    return entry_of(event.stream, event.seq, event.kind, event.at, event.hash.hex(), event.data)
