"""The signed checkpoints that cover the streams of a package, with proofs; `remit.evidence.checkpoints` checks them.

Of each log come the first checkpoint that holds all leaves of the package, and the first ones from there on that a
witness cosigned and that an authority stamped. So once these are recorded, they are the same each time. Where events
of a package lie far apart, such as an approval of last year, each stretch of the log stands for itself.

What does not fit is not exported: a stream that was cut, is gone, or is not the one that was signed.
"""

from __future__ import annotations

import asyncio
import sys
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.audit.sessions import KIND, End, Session, sessions_of
from remit.canonical import canonical
from remit.clock import DAY, SKEW
from remit.codes import Code
from remit.errors import ChainBrokenError
from remit.evidence.checkpoints import CHECKPOINTS
from remit.evidence.merkle import Subtrees
from remit.evidence.note import Checkpoint, encoded
from remit.journal.event import HeadQuery
from remit.record.walk import root_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from remit.journal.journal import Journal

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
    newest: dict[str, End] = {}
    for stream, end in _ends(sessions):
        reached = streams.get(stream)
        if reached is not None and end.seq == reached.seq and end.chain != reached.chain:
            raise _differs(stream, end)
        newest[stream] = max(end, newest.get(stream, end))
    for stream, end in newest.items():
        await _compare(journal, stream, end, streams.get(stream))
    return await asyncio.to_thread(_files, sessions, streams)  # a busy day has a million leaves


async def _are_elsewhere(journal: Journal, sessions: Sequence[Session], streams: Mapping[str, Reached]) -> bool:
    """Return whether checkpoints over these streams may be of other times: a clock that was wrong was set right."""
    signed: dict[str, int] = {}
    for stream, end in _ends(sessions):
        signed[stream] = max(end.seq, signed.get(stream, 0))
    bare = [one.at for stream, one in streams.items() if not one.is_pruned and signed.get(stream, 0) < one.seq]
    newest = await journal.heads(HeadQuery(kind=KIND, limit=1)) if bare else ()
    read = {session.stream for session in sessions}
    return any(head.stream not in read or min(bare) < head.updated_at for head in newest)


def _ends(sessions: Iterable[Session]) -> Iterator[tuple[str, End]]:
    return (pair for session in sessions for beat in session.beats for pair in beat.ends.items())


async def _compare(journal: Journal, stream: str, end: End, reached: Reached | None) -> None:
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


def _files(sessions: Sequence[Session], streams: Mapping[str, Reached]) -> dict[str, tuple[bytes, ...]]:
    there = {stream: reached for stream, reached in streams.items() if not reached.is_pruned}
    rows, files = list[dict[str, Any]](), dict[str, tuple[bytes, ...]]()
    for _, group in groupby(sorted(sessions, key=_origin), key=_origin):
        logs = [_Log(stretch, there) for stretch in _stretches(group)]
        for number, log in enumerate(logs):
            later = set[str]().union(*(one.leaves for one in logs[number + 1 :]))
            log.leaves = {stream: leaf for stream, leaf in log.leaves.items() if stream not in later}
            if log.leaves:
                rows.append(log.row(files))
    return {CHECKPOINTS: (canonical(rows),), **files} if rows else {}


def _origin(session: Session) -> str:
    return session.origin


def _stretches(sessions: Iterable[Session]) -> Iterator[list[Session]]:
    """Give the sessions of a log, divided where some between them were not read."""
    stretch: list[Session] = []
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

    def __init__(self, sessions: Sequence[Session], streams: Mapping[str, Reached]) -> None:
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
            rows[new]["proof"] = [encoded(one) for one in self._tree.prefix(old, new)]
        leaves = [
            {"stream": stream, "seq": seq, "index": index, "proof": [*map(encoded, self._tree.path(index, smallest))]}
            for stream, (seq, index) in sorted(self.leaves.items())
        ]
        return {"checkpoints": [rows[size] for size in sizes], "leaves": leaves}

    def _vouched(self, smallest: int) -> Iterator[tuple[int, tuple[str, ...], bytes]]:
        """Give the first cosigned and the first stamped checkpoint of at least a size."""
        words = [one for session in self._sessions for one in session.vouched]
        cosigned = [one for one in words if one.cosigned >= smallest and one.cosigned in self._signed]
        stamped = [one for one in words if one.stamped >= smallest and one.stamped in self._signed and one.stamp]
        for one in cosigned[:1]:
            yield one.cosigned, one.cosignatures, b""
        for one in stamped[:1]:
            yield one.stamped, (), one.stamp

    def _note(self, size: int, cosignatures: Sequence[str] = ()) -> str:
        return self._checkpoint(size).signed([self._signed[size]["signature"], *cosignatures])

    def _checkpoint(self, size: int) -> Checkpoint:
        session, root = self._sessions[0], self._tree.root(0, size)
        if encoded(root) != self._signed[size]["root"]:
            raise _broken(session.origin, f"the checkpoint over {size} leaves is not what its leaves make")
        return Checkpoint(session.origin, size, root)


def _differs(stream: str, end: End) -> ChainBrokenError:
    return _broken(stream, f"event {end.seq} is not the one that was signed: it was written again")


def _broken(place: str, why: str, code: Code = Code.CHECKPOINT_DIFFERS) -> ChainBrokenError:
    return ChainBrokenError(f"{place}: {why}", code=code, remedy=_REMEDY)
