"""The journal's values: what a stream holds, and what one transaction may change.

A *stream* is an append-only list of events with one *head*: the mutable row on which every list, queue, lock and lease
is a query. A writer of a stream knows its head and says so; a write that finds another head is refused whole.

The hash chain of a stream, over the bytes as they are stored.

    h(0) = SHA-256("remit-chain-1" 00 stream)
    h(n) = SHA-256(h(n-1) ‖ seq:8 ‖ at:8 ‖ length of kind:2 ‖ kind ‖ data)      integers big-endian

The stream's name is in the root, so events cannot be moved between streams; `at` and `kind` are covered as well as the
payload. A chain shows that nothing recorded was changed, reordered or dropped in the middle; it cannot show that a
whole stream, or its newest tail, was never there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from struct import Struct
from typing import Final, NamedTuple

import msgspec

from remit.errors import ChainBrokenError, JournalError
from remit.journal.labels import Bound

UNSET: Final = msgspec.UNSET
OPEN_STATES: Final = ("pending", "running", "waiting")
"""States that a lease changes one into another, and no other: it writes no seal, and a seal takes them for one."""
LATEST: Final = 2**63 - 1
"""A time before which every stream was made."""
_COMMIT_OVERHEAD: Final = 200
_EVENT_OVERHEAD: Final = 300


class Event(msgspec.Struct, frozen=True, gc=False):
    """One recorded fact."""

    stream: str
    seq: int
    """Place in the stream, from 1."""
    kind: str
    at: int
    """Microseconds since the Unix epoch, by the writer's clock."""
    data: bytes
    """The payload as JSON bytes; these very bytes are what the chain covers."""
    hash: bytes
    """Chain value after this event (see `link`), 32 bytes."""


class Placed(msgspec.Struct, frozen=True, gc=False):
    """An event, and its place among those of all streams."""

    position: int
    event: Event


class Scanned(msgspec.Struct, frozen=True, gc=False):
    """A page of the whole journal."""

    events: tuple[Placed, ...]
    position: int
    """Where the next page begins: everything up to here was looked at."""
    more: bool
    """Whether there are events after it, or some may still appear before the newest one."""


class StreamEnd(NamedTuple):
    """The newest event of a stream, or of a stretch of it."""

    stream: str
    seq: int
    hash: bytes
    """Chain value after its event `seq`."""


class Ends(msgspec.Struct, frozen=True, gc=False):
    """A stretch of the whole journal: the newest event of each stream in it."""

    ends: tuple[StreamEnd, ...]
    position: int
    """Position at which the next stretch begins: everything up to here was looked at."""
    more: bool
    """Whether there are events after it, or some may still appear before the newest one."""


class JournalFold(msgspec.Struct, frozen=True, gc=False):
    """An index that can be made again at any time, such as what was summed over all events up to a position."""

    name: str
    """Its name, or that of a part of it as `name/part`."""
    position: int
    data: bytes


class Blob(msgspec.Struct, frozen=True, gc=False):
    """Bytes kept by digest, for values too large for an event."""

    digest: str
    data: bytes
    """Empty for bytes that were erased: that takes the place of what was kept, for good."""
    until: int | None = None
    """When they may be erased, in microseconds since the Unix epoch; None: never. Of two that share a digest, the one
    kept longer decides."""


class StreamHead(msgspec.Struct, frozen=True, kw_only=True):
    """The newest state of a stream."""

    stream: str
    kind: str
    """The sort of stream it is, such as `job` or `confirmation`; queues are per kind."""
    state: str
    seq: int
    """Sequence number of the newest event."""
    epoch: int
    """Fencing token: grows with every change of writer (rule 4)."""
    hash: bytes
    lease_owner: str | None
    lease_until: int | None
    due_at: int | None
    """When the stream next wants a worker; None: not before something wakes it. While leased: when the lease lapses."""
    priority: int
    wakes: int
    """The number of times that something from outside asked the stream's worker to look again."""
    closed: bool
    """Nothing will ever happen to the stream again: it is never due, leased or woken."""
    route: str
    """Which workers can take it, in the words of the code that uses the kind; empty: any of them."""
    subject: str
    """Whom its values are about, so that they can be erased; empty: no one in particular. Set as it is made."""
    title: str
    labels: dict[str, str]
    created_at: int
    updated_at: int
    seal: bytes = b""
    """Shows that the writer of the head has the journal's key (seals.py); empty: written without one."""
    share: str = ""
    """Those with whom it shares its turns in the queue: streams of other shares do not wait for all of theirs."""


class HeadPatch(msgspec.Struct, frozen=True, kw_only=True):
    """What an append changes in the head besides sequence and hash; UNSET leaves a field alone."""

    state: str | msgspec.UnsetType = UNSET
    due_at: int | msgspec.UnsetType | None = UNSET
    priority: int | msgspec.UnsetType = UNSET
    closed: bool | msgspec.UnsetType = UNSET
    route: str | msgspec.UnsetType = UNSET
    subject: str | msgspec.UnsetType = UNSET
    """Counts where the stream is made, and not later."""
    title: str | msgspec.UnsetType = UNSET
    labels: dict[str, str] | msgspec.UnsetType = UNSET
    share: str | msgspec.UnsetType = UNSET
    release: bool = False
    """Give the lease up in the same transaction; say with `due_at` when the stream wants its next worker."""


NO_PATCH: Final = HeadPatch()


class Append(msgspec.Struct, frozen=True, kw_only=True):
    """Events for one stream, and the head they were computed from."""

    stream: str
    kind: str
    """The stream's kind, used where it is created."""
    expect_seq: int
    """The head's seq before; 0 creates the stream."""
    expect_hash: bytes
    """The head's chain value before, so that two writers of one epoch never continue each other's history."""
    epoch: int
    """The writer's fencing token; 0 in a new stream."""
    events: tuple[Event, ...]
    at: int
    patch: HeadPatch = NO_PATCH
    expect_wakes: int | None = None
    """Refuse if something woke the stream since the writer last looked, so that no wake-up is slept through."""
    sealer: Callable[[bytes], bytes] | None = None
    """Makes the head's seal out of its chain value (seals.py); None: it has no seal then."""

    @property
    def seal(self) -> bytes:
        """The head's seal afterwards. Of appends that are written as one, only the last one's is made."""
        if self.sealer is None:
            return b""
        return self.sealer(self.events[-1].hash if self.events else self.expect_hash)


class Commit(msgspec.Struct, kw_only=True, eq=False):
    """What happens in one transaction: all of it or nothing."""

    appends: tuple[Append, ...]
    at: int
    """Microseconds since the Unix epoch, by the writer's clock."""
    blobs: tuple[Blob, ...] = ()
    wakes: tuple[str, ...] = ()
    """Streams whose worker should look again: their `wakes` grows, and they become due unless leased or closed."""
    synced: bool = True
    """Return only after the storage has flushed it (design: durability follows the effect)."""
    on_error: Callable[[JournalError], None] | None = None
    """Called on the event loop when it was refused or failed."""
    on_done: Callable[[JournalError | None], None] | None = None
    """Called on the event loop when it has happened, or not."""
    size: int = 0
    """Bytes that wait in memory for it, roughly."""
    aside: bool = False
    """Written also to a journal that runs no jobs (standing.py)."""
    unleased: bool = False
    """Refused (JOURNAL_LOCKED) while someone holds a lease in the journal; no other commit is under way then."""
    erases: bool = False
    """Whether bytes are erased with it."""

    def __post_init__(self) -> None:
        """Weigh it once; what has no events waits too."""
        size = _COMMIT_OVERHEAD
        for append in self.appends:
            for event in append.events:
                size += len(event.data) + _EVENT_OVERHEAD
        for blob in self.blobs:
            size += len(blob.data)
            self.erases = self.erases or not blob.data
        self.size = size

    @property
    def changes_heads(self) -> bool:
        """Return whether it does more than add events to streams that exist."""
        for append in self.appends:
            if append.patch is not NO_PATCH or append.expect_seq == 0:
                return True
        return bool(self.wakes)


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """Stubs for streams, each in the place of every event before it, and the values that go with those."""

    appends: tuple[Append, ...]
    """Appends of one event each: the stub."""
    blobs: tuple[str, ...] = ()
    """Digests of the bytes that go."""
    names: frozenset[str] = frozenset()
    """Texts that may stand in no event after `position`: digests, and identifiers of what is removed."""
    position: int = 0
    """The position up to which the journal was looked at."""
    aside: bool = False
    """Written also to a journal that runs no jobs (standing.py)."""


class HeadQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which heads to list, newest stream first."""

    kind: str | None = None
    states: tuple[str, ...] = ()
    prefix: str = ""
    """Streams whose name starts with it, such as `job/J/`."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    bounds: tuple[Bound, ...] = ()
    """Conditions on the sizes of labels; only those of jobs have an index."""
    subject: str = ""
    text: str = ""
    """Only streams with this in their title; letters from A to Z stand for themselves in both sizes."""
    since: int = 0
    """Only streams made then or later, in microseconds since the Unix epoch."""
    until: int = LATEST
    """Only streams made before then."""
    before: str | None = None
    """Continue after this stream of an earlier page."""
    limit: int = 100

    @property
    def is_timed(self) -> bool:
        """Return whether the time at which streams were made counts."""
        return self.since > 0 or self.until < LATEST

    @property
    def needle(self) -> str:
        """The text with small letters for A to Z, as every backend compares it."""
        return self.text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


class StreamTally(msgspec.Struct, frozen=True):
    """The number of streams made in the same stretch of time, in the same state, which took about as long."""

    stretch: int
    """Which stretch, from 0."""
    state: str
    took: int | None
    """The number of given bounds that the time from first to last event reached; None: it is not closed."""
    number: int


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A stream someone now holds, and how it was found."""

    head: StreamHead
    """As it is now, with the new epoch and lease."""
    previous_state: str
    previous_owner: str | None
    """The owner that held it before without giving it up."""
    previous_due: int | None = None
    """When it wanted a worker."""
    turn: str = ""
    """The share that the claim looked at last: the next claim goes on after it."""


class LeaseClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A request for work: due streams of a kind, highest priority first, then by shares in turn, then longest due."""

    kind: str
    owner: str
    now: int
    lease_until: int
    limit: int = 1
    states: tuple[str, ...] = ()
    """Only streams in one of these states; empty: any."""
    routes: tuple[str, ...] = ()
    """Only streams without a route, or with one of these; empty: any."""
    after: str = ""
    """The share that had the last turn: where more is due than `limit`, the next shares by name come first."""
    state: str | None = None
    """The open state that those in an open state are put in (OPEN_STATES); None: they keep theirs."""


_FRAME: Final = Struct(">QqH").pack
_DOMAIN: Final = b"remit-chain-1\0"


def root(stream: str) -> bytes:
    """The chain value before a stream's first event."""
    return sha256(_DOMAIN + stream.encode()).digest()


def link(previous: bytes, seq: int, at: int, kind: str, data: bytes) -> bytes:
    """The chain value after an event."""
    name = kind.encode()
    return sha256(b"".join((previous, _FRAME(seq, at, len(name)), name, data))).digest()


def verify(stream: str, events: Iterable[Event], after: tuple[int, bytes] | None = None) -> tuple[int, bytes]:
    """Walk a stream, the whole of it or what comes `after` a length and chain value; return those of its end.

    Raises ChainBrokenError naming the first event that is missing or does not match.
    """
    seq, previous = after or (0, root(stream))
    for event in events:
        seq += 1
        if event.seq != seq:
            msg = f"{stream}: event {seq} is missing (found {event.seq} in its place)"
            raise ChainBrokenError(msg, remedy="Restore the journal from a backup; the events before it are intact.")
        previous = link(previous, seq, event.at, event.kind, event.data)
        if previous != event.hash:
            msg = f"{stream}: event {seq} ({event.kind}) does not match its hash"
            raise ChainBrokenError(msg, remedy="Restore the journal from a backup; the events before it are intact.")
    return seq, previous
