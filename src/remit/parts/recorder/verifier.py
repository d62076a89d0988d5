"""Compares the journal with its signed checkpoints: its own, those kept elsewhere, and the cosignatures of a witness.

Nothing in the journal is a reason to believe a key: those that count come from the settings and from the caller. A key
of a session is proven if it is one of them, or was handed the log over by one, and if it is the newest: it signed
everything before. Without any the log is only checked against itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.errors import ChainBrokenError
from remit.evidence.merkle import Tree
from remit.evidence.note import WITNESS, Checkpoint, Note, NoteKey, decoded, signed_by
from remit.journal.kinds import StreamPruned, decode
from remit.journal.retirement import STREAM
from remit.journal.signing_key import is_signature
from remit.parts.recorder.keys import can_read, is_over, stamped_at
from remit.parts.recorder.kinds import RecorderCheckpoint
from remit.parts.recorder.log import (
    KIND,
    LogSession,
    handover,
    hashed,
    leaves_of,
    session_of,
    sessions,
    stamp_of,
    wrong,
)
from remit.service.verification import StreamProblem, VerifierFindings

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from remit.journal.event import Event, StreamHead
    from remit.journal.journal import Journal

_NAMED: Final = "named"


class LogVerifier:
    """One look at the whole journal, or at some streams of it."""

    def __init__(
        self, journal: Journal, keys: Sequence[NoteKey], notes: Sequence[Note], roots: Sequence[Certificate] = ()
    ) -> None:
        self._roots = roots if can_read() else ()
        self._journal = journal
        self._keys = [key for key in keys if key.type != WITNESS]
        self._witnesses = [key for key in keys if key.type == WITNESS]
        self._notes = notes
        self._logs: dict[str, _Log] = {}
        """By origin, that of the newest session last."""
        self._leaves: defaultdict[str, dict[int, bytes]] = defaultdict(dict)
        self._streams = set[str]()
        self._uncovered = 0
        self._problems: list[StreamProblem] = []

    async def begin(self) -> None:
        heads = [head async for head in sessions(self._journal)]
        for number, head in enumerate(reversed(heads), 1):
            try:
                events = [event for event in await self._journal.read(head.stream) if event.seq <= head.seq]
                session = session_of(head, events)
                if session.opened.session != number:
                    self._say(head.stream, Code.CHECKPOINT_MISSING, f"the session before {session.opened.session}")
                log = self._logs.pop(session.opened.origin, None) or _Log(session.opened.origin)
                self._logs[log.origin] = log
                await log.take(self._journal, session, self._leaves)
            except ChainBrokenError as error:
                self._say(head.stream, Code.CHECKPOINT_DIFFERS, error.message)
        signed = [note for note in self._notes if self._is_signed(note)]  # not what a crash tore, or of another log
        if self._notes and not signed:
            text = "the checkpoints that you gave are signed by no key that is known: give it with --key"
            self._say(f"recorder of {self._notes[-1].checkpoint.origin}", Code.CHECKPOINT_UNPROVEN, text)
        self._notes = signed

    def _is_signed(self, note: Note) -> bool:
        origin = note.checkpoint.origin
        keys = (*self._keys, *(self._logs[origin].keys if origin in self._logs else ()))
        return any(key.name == origin and note.signed_by(key, is_signature) is not None for key in keys)

    def take(self, head: StreamHead, events: Sequence[Event]) -> Iterator[StreamProblem]:
        if leaves := self._leaves.get(head.stream):
            stub = decode(events[0].kind, events[0].data) if events[0].kind == StreamPruned.KIND else None
            if isinstance(stub, StreamPruned) and leaves.get(stub.events, b"").hex() not in {"", stub.hash}:
                text = f"{head.stream}: its stub does not continue what was signed"
                yield StreamProblem(head.stream, Code.CHECKPOINT_DIFFERS, text)
            for event in events:
                if leaves.get(event.seq, event.hash) != event.hash:
                    text = f"{head.stream}: event {event.seq} is not the one that was signed: it was written again"
                    yield StreamProblem(head.stream, Code.CHECKPOINT_DIFFERS, text)

    def end_stream(self, head: StreamHead, *, intact: bool) -> Iterator[StreamProblem]:
        self._streams.add(head.stream)
        signed = max(self._leaves.get(head.stream, ()), default=0)
        if intact and signed > head.seq:
            text = f"{head.stream}: {signed} events are signed, and it has {head.seq}: it was cut"
            yield StreamProblem(head.stream, Code.CHECKPOINT_MISSING, text)
        if head.kind != KIND and head.stream != STREAM:
            self._uncovered += max(head.seq - signed, 0)

    def end(self, *, everything: bool) -> VerifierFindings:
        for stream in sorted(self._leaves.keys() - self._streams if everything else ()):
            self._say(stream, Code.CHECKPOINT_MISSING, f"{max(self._leaves[stream])} events are signed, and it is gone")
        named = False
        for log in self._logs.values():
            self._problems += log.problems
            trusted = [key for key in self._keys if key.name == log.origin]
            named = named or not trusted
            if trusted and (reason := log.unproven(trusted)):
                self._say(log.last, Code.CHECKPOINT_UNPROVEN, reason)
        newest = self._compare()
        last = next(reversed(self._logs.values()), None)
        stamps = [stamp for log in self._logs.values() for stamp in log.stamps]
        stamped = max((stamp for stamp in stamps if self._roots and self._at(stamp)), default=None, key=_size)
        return VerifierFindings(
            problems=tuple(self._problems),
            checkpoints=sum(len(log.checkpoints) for log in self._logs.values()),
            cosigned=max((log.cosigned(self._witnesses) for log in self._logs.values()), default=0),
            stamps=len(stamps),
            stamped=stamped[0].size if stamped else 0,
            stamped_at=self._at(stamped) if stamped else 0,
            skipped="recorder: stamps: pip install 'remit[audit]'" if stamps and not can_read() else "",
            uncovered=self._uncovered,
            keys="" if last is None else _NAMED if named else "given",
            is_whole=last is not None and not self._uncovered and newest.get(last.origin) == last.tree.size > 0,
        )

    def _at(self, stamp: tuple[Checkpoint, bytes]) -> int:
        return stamped_at(stamp[1], stamp[0], self._roots) or 0

    def _compare(self) -> dict[str, int]:
        """Compare the log with what was kept elsewhere: by origin, the size of the largest checkpoint that fits."""
        newest: dict[str, int] = {}
        missing: dict[str, Checkpoint] = {}
        other: dict[str, Checkpoint] = {}
        for note in self._notes:
            checkpoint = note.checkpoint
            log = self._logs.get(checkpoint.origin)
            size = log.tree.size if log else 0
            if log is not None and log.checkpoints.get(checkpoint.size) == checkpoint.root:
                newest[log.origin] = max(checkpoint.size, newest.get(log.origin, 0))
                log.cosignatures.append((checkpoint, note.lines))
            elif checkpoint.size > size:
                missing[checkpoint.origin] = max(checkpoint, missing.get(checkpoint.origin, checkpoint), key=_leaves)
            else:
                other[checkpoint.origin] = min(checkpoint, other.get(checkpoint.origin, checkpoint), key=_leaves)
        for origin, checkpoint in missing.items():  # the largest says it all
            size = self._logs[origin].tree.size if origin in self._logs else 0
            text = f"a signed checkpoint has {checkpoint.size} leaves, the journal {size}: it was put back or cut"
            self._say(f"recorder of {origin}", Code.CHECKPOINT_MISSING, text)
        for origin, checkpoint in other.items():
            text = f"a signed checkpoint over {checkpoint.size} leaves is another one here: the log has two ends"
            self._say(f"recorder of {origin}", Code.CHECKPOINT_DIFFERS, text)
        return newest

    def _say(self, stream: str, code: Code, text: str) -> None:
        self._problems.append(StreamProblem(stream, code, f"{stream}: {text}"))


class _Log:
    """The log of one origin, as far as it was read."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.tree = Tree()
        self.checkpoints: dict[int, bytes] = {}
        """The root under each number of leaves that was signed."""
        self.cosignatures: list[tuple[Checkpoint, tuple[str, ...]]] = []
        self.stamps: list[tuple[Checkpoint, bytes]] = []
        """Checkpoints that were stamped, with the stamps."""
        self.problems: list[StreamProblem] = []
        self._sessions: list[LogSession] = []

    @property
    def last(self) -> str:
        """The stream of its newest session."""
        return self._sessions[-1].head.stream

    @property
    def keys(self) -> list[NoteKey]:
        """The keys that it names itself."""
        return [key for session in self._sessions for key in _keys(session.opened.key)]

    async def take(self, journal: Journal, session: LogSession, leaves: defaultdict[str, dict[int, bytes]]) -> None:
        """Read the next session. Raises ChainBrokenError."""
        before = self._sessions[-1].opened.key if self._sessions else ""
        if session.tree != self.tree or session.opened.previous_key != before:
            self._say(session, Code.CHECKPOINT_DIFFERS, "it does not begin where the session before it ended")
        self._sessions.append(session)
        for payload in session.payloads:
            if payload.cosigned in self.checkpoints:
                checkpoint = Checkpoint(self.origin, payload.cosigned, self.checkpoints[payload.cosigned])
                self.cosignatures.append((checkpoint, payload.cosignatures))
            if payload.stamped in self.checkpoints:
                checkpoint = Checkpoint(self.origin, payload.stamped, self.checkpoints[payload.stamped])
                stamp = await stamp_of(journal, payload)
                self.stamps.append((checkpoint, stamp))
                if can_read() and not is_over(stamp, checkpoint):
                    text = f"the stamp of the checkpoint over {payload.stamped} leaves is not for it"
                    self._say(session, Code.CHECKPOINT_DIFFERS, text)
            if isinstance(payload, RecorderCheckpoint):
                ends = await leaves_of(journal, payload)
                self.tree = self.tree.grown(hashed(ends))
                for end in ends:
                    if leaves[end.stream].setdefault(end.seq, end.hash) != end.hash:
                        self._say(session, Code.CHECKPOINT_DIFFERS, f"{end.stream} is signed with two histories")
                if reason := wrong(session.opened, payload, self.tree):
                    self._say(session, Code.CHECKPOINT_DIFFERS, reason)
                else:
                    self.checkpoints[payload.size] = self.tree.root

    def unproven(self, trusted: Sequence[NoteKey]) -> str:
        """Return why the newest key is none that is believed; empty: it is, or was handed the log over by one."""
        known = False
        for number, session in enumerate(self._sessions):
            opened = session.opened
            same = number > 0 and opened.key == self._sessions[number - 1].opened.key
            is_trusted = any(str(key) == opened.key for key in trusted)
            known = is_trusted or (known and (same or _handed(session)))
        return (
            "" if known else f"it is signed by {self._sessions[-1].opened.key}, which is not a key that is given here"
        )

    def cosigned(self, witnesses: Sequence[NoteKey]) -> int:
        """The largest number of leaves that one of these witnesses cosigned."""
        valid = (
            checkpoint.size
            for checkpoint, lines in self.cosignatures
            if any(signed_by(checkpoint, lines, key, is_signature) is not None for key in witnesses)
        )
        return max(valid, default=0)

    def _say(self, session: LogSession, code: Code, text: str) -> None:
        self.problems.append(StreamProblem(session.head.stream, code, f"{session.head.stream}: {text}"))


def _handed(session: LogSession) -> bool:
    opened = session.opened
    for old, new in zip(_keys(opened.previous_key), _keys(opened.key), strict=False):
        text = handover(opened.origin, opened.previous_key, new, session.tree)
        return is_signature(decoded(opened.handover), text, old.public)
    return False


def _leaves(checkpoint: Checkpoint) -> int:
    return checkpoint.size


def _size(stamp: tuple[Checkpoint, bytes]) -> int:
    return stamp[0].size


def _keys(text: str) -> list[NoteKey]:
    try:
        return [NoteKey.parse(text)]
    except ValueError:
        return []
