"""The signed checkpoints that cover the streams of a package, with proofs; `remit.evidence.checkpoints` checks them.

Of each log come the first checkpoint that holds all leaves of the package, and the first ones from there on that a
witness cosigned and that an authority stamped. So once these are recorded, they are the same each time.
"""

from __future__ import annotations

import asyncio
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.audit.sessions import End, Session, sessions_of
from remit.canonical import canonical
from remit.errors import ChainBrokenError
from remit.evidence.checkpoints import CHECKPOINTS
from remit.evidence.merkle import Subtrees
from remit.evidence.note import Checkpoint, encoded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from remit.journal.journal import Journal

_REMEDY: Final = "Look with `remit verify`; if the record was changed, restore a backup."


class Reached(NamedTuple):
    """The last event of a stream in a package."""

    seq: int
    chain: str
    """The chain value after its last event, in hexadecimal."""


async def checkpoint_files(
    journal: Journal, streams: Mapping[str, Reached], since: int, until: int
) -> dict[str, tuple[bytes, ...]]:
    """Return files of a package over these streams, which grew between two times; none if no recorder signed them.

    Raise ChainBrokenError if a stream or the log is not what was signed.
    """
    sessions = await sessions_of(journal, streams, since, until)
    return await asyncio.to_thread(_files, sessions, streams)  # a busy day has a million leaves


def _files(sessions: Sequence[Session], streams: Mapping[str, Reached]) -> dict[str, tuple[bytes, ...]]:
    sessions = sorted(sessions, key=lambda session: session.origin)
    logs = [_Log(list(group), streams) for _, group in groupby(sessions, key=lambda session: session.origin)]
    rows, files = list[dict[str, Any]](), dict[str, tuple[bytes, ...]]()
    for log in logs:
        if log.leaves:
            rows.append(log.row(files))
    return {CHECKPOINTS: (canonical(rows),), **files} if rows else {}


class _Log:
    """The log of one origin, in the sessions that were read."""

    def __init__(self, sessions: Sequence[Session], streams: Mapping[str, Reached]) -> None:
        self._sessions = sessions
        self.leaves: dict[str, tuple[int, int]] = {}
        """By stream, the number of the newest event that is signed, and the index of the leaf that says so."""
        self._signed: dict[int, Mapping[str, Any]] = {}
        """By size, each checkpoint."""
        tree, hashes = sessions[0].tree, list[bytes]()
        for session in sessions:
            if session.tree.size != tree.size + len(hashes):
                raise _broken(session.stream, "it does not begin where the session before it ended")
            for beat in session.beats:
                for stream, end in beat.ends.items():
                    self._take(stream, end, streams[stream], tree.size + len(hashes))
                hashes += beat.leaves
                self._signed[beat.signed["size"]] = beat.signed
        self._tree = Subtrees(tree, hashes)

    def _take(self, stream: str, end: End, reached: Reached, size: int) -> None:
        if end.seq == reached.seq and end.chain != reached.chain:
            raise _broken(stream, f"event {end.seq} is not the one that was signed: it was written again")
        if self.leaves.get(stream, (0, 0))[0] < end.seq <= reached.seq:
            self.leaves[stream] = end.seq, size + end.place

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


def _broken(place: str, why: str) -> ChainBrokenError:
    return ChainBrokenError(f"{place}: {why}", remedy=_REMEDY)
