"""The log as the journal tells it: sessions of recorders, their checkpoints, and what each leaf says.

A leaf says how far a stream reached: `["stream",seq,"hash"]`, its name, the number of its newest event and the chain
value after it (hexadecimal), as JSON without spaces. The chain value stands for every event of the stream up to there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from remit.canonical import canonical
from remit.errors import ChainBrokenError
from remit.evidence.merkle import Tree
from remit.evidence.note import Checkpoint, NoteKey, decoded, encoded, signed_by
from remit.evidence.proofs import leaf_of
from remit.journal.event import HeadQuery, StreamEnd
from remit.journal.kinds import decode
from remit.journal.scan import every_head
from remit.journal.signing_key import is_signature
from remit.parts.recorder.kinds import RecorderCheckpoint, RecorderClosed, RecorderOpened

if TYPE_CHECKING:
    from remit.journal.event import Event, StreamHead
    from remit.journal.journal import Journal

KIND: Final = "recorder"
ORIGIN: Final = "origin"
"""The label that names a session's log."""
_GAP: Final = "it does not begin where the session before it ended"
_LOOK: Final = "Look with `remit verify`; if the record was changed, restore a backup."
_DOMAIN: Final = b"remit-recorder-key-1\0"
_leaves = msgspec.json.Decoder(list[tuple[str, int, str]]).decode


class LogSession(NamedTuple):
    """One session as it is recorded."""

    head: StreamHead
    opened: RecorderOpened
    payloads: tuple[RecorderCheckpoint | RecorderClosed, ...]
    """The events after it."""
    last_at: int
    """When the newest event was recorded, in microseconds since the Unix epoch."""

    @property
    def is_open(self) -> bool:
        """Return whether its end is not on record."""
        return not any(isinstance(payload, RecorderClosed) for payload in self.payloads)

    @property
    def checkpoints(self) -> list[RecorderCheckpoint]:
        """Its checkpoints."""
        return [payload for payload in self.payloads if isinstance(payload, RecorderCheckpoint)]

    @property
    def cosigned(self) -> int:
        """The size of the last checkpoint that a witness is known to have cosigned; 0: none."""
        return max((payload.cosigned for payload in self.payloads), default=0)

    @property
    def tree(self) -> Tree:
        """The log as it was when the session began."""
        return Tree(self.opened.size, tuple(decoded(peak) for peak in self.opened.peaks))


def stream_of(session: int) -> str:
    """The stream of a session."""
    return f"recorder/{session}"


def session_of(head: StreamHead, events: Sequence[Event]) -> LogSession:
    """A session of its events, the whole stream. Raises ChainBrokenError if it does not begin as one."""
    payloads = [decode(event.kind, event.data) for event in events]
    if not payloads or not isinstance(payloads[0], RecorderOpened) or head.stream != stream_of(payloads[0].session):
        raise ChainBrokenError(f"{head.stream}: it does not begin as the session of a recorder", remedy=_LOOK)
    rest = tuple(payload for payload in payloads if isinstance(payload, RecorderCheckpoint | RecorderClosed))
    return LogSession(head, payloads[0], rest, events[-1].at)


async def newest(journal: Journal, origin: str = "") -> LogSession | None:
    """The newest session, of a log or of any, proven. Raises ChainBrokenError."""
    labels = {ORIGIN: origin} if origin else {}
    heads = await journal.heads(HeadQuery(kind=KIND, labels=labels, limit=1))
    return await read(journal, heads[0]) if heads else None


async def read(journal: Journal, head: StreamHead) -> LogSession:
    """A session, proven. Raises ChainBrokenError."""
    events = [event for event in await journal.read(head.stream) if event.seq <= head.seq]
    journal.prove(head, events)
    return session_of(head, events)


def sessions(journal: Journal, origin: str = "") -> AsyncIterator[StreamHead]:
    """The heads of every session, of a log or of any, the newest first."""
    return every_head(journal, HeadQuery(kind=KIND, labels={ORIGIN: origin} if origin else {}))


def encode_leaves(ends: Iterable[StreamEnd]) -> bytes:
    """The form in which a checkpoint records its leaves."""
    return msgspec.json.encode([(end.stream, end.seq, end.hash.hex()) for end in ends])


async def leaves_of(journal: Journal, checkpoint: RecorderCheckpoint) -> list[StreamEnd]:
    """The leaves that a checkpoint added. Raises ChainBrokenError."""
    data = await journal.value(checkpoint.leaves, checkpoint.leaves_blob)
    try:
        return [StreamEnd(stream, seq, bytes.fromhex(chained)) for stream, seq, chained in _leaves(data or b"")]
    except (msgspec.DecodeError, ValueError) as error:
        raise ChainBrokenError(f"the leaves of a checkpoint cannot be read: {error}", remedy=_LOOK) from error


async def stamp_of(journal: Journal, checkpoint: RecorderCheckpoint | RecorderClosed) -> bytes:
    """The stamp that an event of the recorder brings; empty: it cannot be read."""
    data = await journal.value(checkpoint.stamp, checkpoint.stamp_blob)
    try:
        return decoded(msgspec.json.decode(data or b"", type=str))
    except msgspec.DecodeError:
        return b""


async def stamps_of(journal: Journal) -> list[tuple[Checkpoint, bytes]]:
    """The checkpoints of every log that were stamped, each with its stamp. Raises ChainBrokenError."""
    roots: dict[tuple[str, int], str] = {}
    stamps: list[tuple[Checkpoint, bytes]] = []
    for head in reversed([head async for head in sessions(journal)]):
        session = await read(journal, head)
        origin = session.opened.origin
        for payload in session.payloads:
            if (origin, payload.stamped) in roots:
                checkpoint = Checkpoint(origin, payload.stamped, decoded(roots[origin, payload.stamped]))
                stamps.append((checkpoint, await stamp_of(journal, payload)))
            if isinstance(payload, RecorderCheckpoint):
                roots[origin, payload.size] = payload.root
    return stamps


def hashed(ends: Iterable[StreamEnd]) -> list[bytes]:
    """The hash of each leaf."""
    encode = msgspec.json.encode
    return [leaf_of(encode((end.stream, end.seq, end.hash.hex()))) for end in ends]


def handover(origin: str, old: str, new: NoteKey, tree: Tree) -> bytes:
    """The text that the old key signs when another takes its place."""
    return _DOMAIN + canonical([origin, old, str(new), tree.size, encoded(tree.root)])


class Grown(NamedTuple):
    """The log as far as it is recorded."""

    session: LogSession
    """The newest one."""
    tree: Tree
    since: Tree
    """The log as it was a number of leaves ago."""
    hashes: list[bytes]
    """Of the leaves after these."""


async def grown(journal: Journal, origin: str, since: int | None = None) -> Grown | None:
    """The log now, and as it was with `since` leaves (None: when its newest session began); None: there is none.

    Raises ChainBrokenError if it is not what was signed, or never had so few leaves or so many.
    """
    chain: list[LogSession] = []
    async for head in sessions(journal, origin):
        chain.insert(0, await read(journal, head))
        if since is None or chain[0].opened.size <= since:
            break
    if not chain:
        return None
    base = tree = chain[0].tree
    hashes: list[bytes] = []
    for session in chain:
        added = [leaf for checkpoint in session.checkpoints for leaf in hashed(await leaves_of(journal, checkpoint))]
        begins, tree = tree, tree.grown(added)
        reason = "" if session.tree == begins and begins.fits else _GAP
        for checkpoint in session.checkpoints[-1:]:
            reason = reason or wrong(session.opened, checkpoint, tree)
        if reason:
            raise ChainBrokenError(f"{session.head.stream}: {reason}", remedy=_LOOK)
        hashes += added
    cut = 0 if since is None else since - base.size
    if not 0 <= cut <= len(hashes):
        raise ChainBrokenError(f"{chain[-1].head.stream}: the log never had {since} leaves", remedy=_LOOK)
    return Grown(chain[-1], tree, base.grown(hashes[:cut]), hashes[cut:])


def wrong(opened: RecorderOpened, recorded: RecorderCheckpoint, tree: Tree) -> str:
    """Return what is wrong with a checkpoint, given the tree that its leaves make; empty: nothing."""
    checkpoint = Checkpoint(opened.origin, recorded.size, decoded(recorded.root))
    if checkpoint != Checkpoint(opened.origin, tree.size, tree.root):
        return f"the checkpoint over {recorded.size} leaves is not what its leaves make"
    try:
        key = NoteKey.parse(opened.key)
    except ValueError as error:
        return f"its key cannot be read: {error}"
    if key.name != opened.origin or signed_by(checkpoint, (recorded.signature,), key, is_signature) is None:
        return f"the checkpoint over {recorded.size} leaves is not signed by the session's key"
    return ""


async def notes(journal: Journal, limit: int) -> list[str]:
    """The newest checkpoints of every log as signed notes, with cosignatures, the newest last.

    Raises ChainBrokenError.
    """
    texts: list[str] = []
    async for head in sessions(journal):
        session = await read(journal, head)
        cosigned = {payload.cosigned: payload.cosignatures for payload in session.payloads}
        for checkpoint in reversed(session.checkpoints):
            lines = (checkpoint.signature, *cosigned.get(checkpoint.size, ()))
            texts.append(Checkpoint(session.opened.origin, checkpoint.size, decoded(checkpoint.root)).signed(lines))
            if len(texts) == limit:
                return texts[::-1]
    return texts[::-1]
