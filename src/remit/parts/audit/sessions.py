"""Sessions of a recorder that signed while a record was made: what its checkpoints cover, and who else vouched."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from remit.evidence.merkle import Tree
from remit.evidence.note import decoded
from remit.evidence.proofs import leaf_of
from remit.journal.event import HeadQuery
from remit.journal.kinds import decode
from remit.journal.scan import every_head

if TYPE_CHECKING:
    from remit.journal.event import Event, StreamHead
    from remit.journal.journal import Journal

KIND: Final = "recorder"
CHECKPOINT: Final = "recorder_checkpoint"
CLOSED: Final = "recorder_closed"
_ORIGIN: Final = "origin"
_LATER: Final = 2
_leaves: Final = msgspec.json.Decoder(list[tuple[str, int, str]]).decode
_encode: Final = msgspec.json.Encoder().encode
_text: Final = msgspec.json.Decoder(str).decode


class WantedStreams(Protocol):
    """The streams whose leaves are wanted."""

    def __contains__(self, stream: object, /) -> bool:
        """Return whether a stream is one of them."""
        ...


class CheckpointEnd(NamedTuple):
    """The newest event of a stream, as a checkpoint says."""

    seq: int
    chain: str
    """The chain value after that, in hexadecimal."""
    place: int
    """The number of leaves before this one in the checkpoint."""


class Beat(NamedTuple):
    """A checkpoint."""

    at: int
    """When it was signed, in microseconds since the Unix epoch."""
    signed: dict[str, Any]
    """Its size and root, and the line of the signature that was made then."""
    leaves: list[bytes]
    """The hashes of the leaves that it added."""
    ends: Mapping[str, CheckpointEnd]
    """The streams that were asked for, among these."""


class Vouched(NamedTuple):
    """The word of others about checkpoints."""

    cosigned: int
    """The size of the one that a witness cosigned; 0: none."""
    cosignatures: tuple[str, ...]
    stamped: int
    """The size of the one that an authority stamped; 0: none."""
    stamp: bytes
    """The authority's answer (RFC 3161)."""


class RecorderSession(NamedTuple):
    """A session of the recorder."""

    stream: str
    origin: str
    """The log."""
    key: str
    """The public key that signed the checkpoints, as C2SP writes it."""
    began: int
    seconds: int
    """A checkpoint follows the one before within this time."""
    tree: Tree
    """The log as it was before."""
    beats: list[Beat]
    vouched: list[Vouched]
    closed: int | None
    """When it ended by itself; None: it goes on, or its process died."""


async def sessions_of(journal: Journal, streams: WantedStreams, *spans: tuple[int, int]) -> list[RecorderSession]:
    """Return the sessions that went on in these spans of time, and the next two after each, the first one first.

    Raise JournalError.
    """
    heads = [head async for head in every_head(journal, HeadQuery(kind=KIND))]
    ended, left = dict[str, int](), dict[str, int]()
    chosen: list[StreamHead] = []
    for head in reversed(heads):
        origin = head.labels.get(_ORIGIN, "")
        end = head.updated_at if head.closed else sys.maxsize
        meets = any(head.created_at <= until and since <= end for since, until in spans)
        if meets or any(ended.get(origin, 0) <= until < head.created_at for _, until in spans):
            left[origin] = _LATER
        if meets or left.get(origin):
            chosen.append(head)
            left[origin] -= not meets
        ended[origin] = end
    return [await _session(journal, await journal.read(head.stream), streams) for head in chosen]


def opened_of(event: Event) -> RecorderSession:
    """Return the session that an event begins, without what comes after it."""
    payload: Any = decode(event.kind, event.data)
    tree = Tree(payload.size, tuple(decoded(peak) for peak in payload.peaks))
    return RecorderSession(
        event.stream, payload.origin, payload.key, event.at, payload.every_seconds, tree, [], [], None
    )


async def beat_of(journal: Journal, event: Event, streams: WantedStreams | None = None) -> Beat:
    """Return the checkpoint that an event is, with the ends of these streams; None: of all that it covers."""
    payload: Any = decode(event.kind, event.data)
    rows = _leaves(await journal.value(payload.leaves, payload.leaves_blob) or b"[]")
    ends = {
        row[0]: CheckpointEnd(row[1], row[2], place)
        for place, row in enumerate(rows)
        if streams is None or row[0] in streams
    }
    signed = {"size": payload.size, "root": payload.root, "signature": payload.signature}
    return Beat(event.at, signed, [leaf_of(_encode(row)) for row in rows], ends)


async def _session(journal: Journal, events: list[Event], streams: WantedStreams) -> RecorderSession:
    session, closed = opened_of(events[0]), None
    for event in events[1:]:
        if event.kind not in {CHECKPOINT, CLOSED}:
            continue
        payload: Any = decode(event.kind, event.data)
        if event.kind == CHECKPOINT:
            session.beats.append(await beat_of(journal, event, streams))
        elif payload.reason != "lost":
            closed = event.at
        if payload.cosigned or payload.stamped:
            stamp = await journal.value(payload.stamp, payload.stamp_blob)
            words = Vouched(payload.cosigned, payload.cosignatures, payload.stamped, decoded(_text(stamp or b'""')))
            session.vouched.append(words)
    return session._replace(closed=closed)
