"""Registers the newest records of calls over MCP with a log that others keep, checkpoint by checkpoint.

The journal is the queue: sessions of the recorder are followed one after the other, each from its beginning, and the
log takes a hash once however often it gets it. So what a crash or an absent log left out is registered later, in the
log's own time. The process whose recorder signs is the one that registers.

The newest record of each run of AEL of calls over MCP, made as a session of the recorder goes on.

An export makes the same records again, from the same events. So a hash that was registered while they were recorded is
that of a record in the export, or the record was changed since.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.evidence.anchors import MOST
from remit.evidence.proofs import leaf_of
from remit.journal.event import HeadQuery, JournalFold
from remit.journal.kinds import decode
from remit.journal.leases import Owner
from remit.journal.scan import every_head
from remit.parts.audit.anchoring.client import AnchorClient, ProvenLog
from remit.parts.audit.formats import ael_record as ael_trace
from remit.parts.audit.formats.account import AccountEntry, entry_of
from remit.parts.audit.formats.ael import calls_of, covering, divided
from remit.parts.audit.formats.ael_record import Records, Stretch, span_of
from remit.parts.audit.sessions import CHECKPOINT, CLOSED, KIND, Beat, RecorderSession, beat_of, opened_of, sessions_of
from remit.record.heads import CALL, stream_named
from remit.record.job_story import beside
from remit.record.walk import root_of
from remit.redact import line
from remit.tasks import uncut
from remit.threads import Threads

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal
    from remit.parts.audit.formats.keys import OperatorSigner


_KIND: Final = "tool_invocation_started"
_Run = tuple[str, str]
"""A job or session, and a trace."""


class Heads:
    """The newest records of one session of the recorder."""

    def __init__(self, journal: Journal, session: RecorderSession, key: str) -> None:
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

    def _grouped(self, events: Mapping[str, Sequence[Event]]) -> dict[_Run, list[AccountEntry]]:
        """Return the calls that are made in this session, by the run that they are of."""
        calls: dict[_Run, list[AccountEntry]] = {}
        for scope, some in events.items():
            for call in map(_entry, some):
                if call.at >= self._session.began and (span := span_of(call)) is not None:
                    calls.setdefault((scope, span.trace), []).append(call)
        return calls

    def _written(self, beat: Beat, calls: Mapping[_Run, Sequence[AccountEntry]]) -> list[str]:
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
            self._journal, {entry.stream for entry in entries}, (head.created_at, self._session.began)
        )
        stretches, _ = divided((entry for entry in sessions if entry.began < self._session.began), entries)
        if (held := calls_of(stretches).get(trace)) is not None:
            crossed = covering(stretches, held, len(stretches))
            records = ael_trace.begin(trace, crossed[0].session.origin, self._key)
            crossed.append(Stretch(self._session, [(beat, ()) for beat in self._beats]))
            for _ in ael_trace.write(records, crossed):
                pass
        return records

    async def _before(self, scope: str) -> list[AccountEntry]:
        """Return the calls of a job or session so far."""
        calls = list[AccountEntry]()
        for root in [scope, *await beside(self._journal, scope.rpartition("/")[2])]:
            below = [head.stream async for head in every_head(self._journal, HeadQuery(prefix=f"{root}/"))]
            for stream in (root, *below):
                calls += map(_entry, await self._events(stream, 0, sys.maxsize))
        return calls


def _entry(event: Event) -> AccountEntry:
    return entry_of(event.stream, event.seq, event.kind, event.at, event.hash.hex(), event.data)


_log: Final = logging.getLogger("remit.audit")
_SPACING_S: Final = 1.0
"""Checkpoints are gathered for so long."""
_AGAIN_S: Final = 5.0
"""Seconds until what the log did not take is handed to it again."""
_log_of: Final = msgspec.json.Decoder(ProvenLog).decode


class Registrar:
    """Registers what the recorder of one journal signs."""

    def __init__(
        self, journal: Journal, client: AnchorClient, signer: OperatorSigner, tell: Callable[[str], object]
    ) -> None:
        self._journal, self._client, self._signer, self._tell = journal, client, signer, tell
        self._owner = Owner.this()
        self._threads = Threads(1)
        self._fold = f"anchors-{client.fingerprint[:16]}"
        self._log = ProvenLog()
        self._number = self._saved = 0
        """The session that is followed, and the last one that is registered to its end."""
        self._heads: Heads | None = None
        """The runs of that session; None: nothing of it is taken in."""
        self._read = 0
        self._ended = False
        self._due: list[str] = []
        self._failure = ""
        """Why the log took nothing last."""

    async def begin(self) -> None:
        """Find where to go on: after the last session that is registered, or with the newest. Raise JournalError."""
        if not await self._journal.folds.read(self._fold):
            newest = await self._newest()
            await self._keep(newest.session - 1 if newest is not None else 0)  # later processes go on from here, too
        (fold,) = await self._journal.folds.read(self._fold)
        self._saved, self._log = fold.position, _log_of(fold.data)
        self._number = self._saved + 1

    async def run(self) -> None:
        """Register what is signed until cancelled. Raise JournalError."""
        await self.begin()
        mark = 0
        while True:
            mark = await self._journal.changed(mark)
            is_taken = await uncut(self._look())  # or half of a checkpoint would be taken in
            await self._journal.clock.sleep(_SPACING_S if is_taken else _AGAIN_S)

    async def finish(self) -> None:
        """Register the end of this process's session once it is recorded. Raise JournalError."""
        number, mark = self._number, 0
        while self._heads is not None and self._number == number:
            mark = await self._journal.changed(mark)
            if not await self.catch_up():
                break

    async def _look(self) -> bool:
        return not await self._is_ours() or await self.catch_up()

    async def catch_up(self) -> bool:
        """Register what is signed so far; whether the log took it. Raise JournalError."""
        while True:
            for event in await self._journal.left(f"{KIND}/{self._number}", self._read):
                await self._take(event)
            if not await self._register():
                return False
            if not self._ended:
                return True
            await self._keep(self._number)
            self._number, self._heads, self._read, self._ended = self._number + 1, None, 0, False

    async def _take(self, event: Event) -> None:
        if event.seq == 1:
            self._heads = Heads(self._journal, opened_of(event), self._signer.name)
        elif self._heads is not None and event.kind == CHECKPOINT:
            self._due += await self._heads.take(await beat_of(self._journal, event))
        elif self._heads is not None and event.kind == CLOSED:
            self._ended, payload = True, decode(event.kind, event.data)
            if getattr(payload, "reason", "") != "lost":
                self._due += self._heads.close(event.at)
        self._read = event.seq

    async def _register(self) -> bool:
        """Hand what is due to the log; whether it took all."""
        try:
            while self._due:
                some = self._due[:MOST]
                self._log = await self._threads.run(partial(self._client.register, some, self._signer, self._log))
                self._due = self._due[MOST:]
                await self._keep(self._saved)
        except (OSError, ValueError) as error:
            reason = f"the log of anchors takes nothing: {line(str(error) or type(error).__name__)}"
            if reason != self._failure:
                _log.warning("%s", reason)
            self._failure = reason
            self._tell(reason)
            return False
        self._failure = ""
        self._tell("")
        return True

    async def _keep(self, number: int) -> None:
        """Keep how far the log is known, and that the sessions up to this one are in it."""
        fold = JournalFold(self._fold, number, msgspec.json.encode(self._log))
        if await self._journal.folds.keep([fold], self._saved):
            self._saved = number

    async def _newest(self) -> Any:
        """Return the first event of the newest session, or None if nothing was ever signed."""
        heads = await self._journal.heads(HeadQuery(kind=KIND, limit=1))
        events = await self._journal.page(heads[0].stream, limit=1) if heads else []
        return decode(events[0].kind, events[0].data) if events else None

    async def _is_ours(self) -> bool:
        """Say whether it is this process that signs."""
        newest = await self._newest()
        owner = Owner.parse(newest.owner) if newest is not None else None
        return owner is not None and msgspec.structs.replace(owner, worker=self._owner.worker) == self._owner
