"""Reads what stands beside the events: large values and schemas, by digest.

The stub of a stream that was pruned: one event in the place of all before it.

    event 1 … event N, h(N)      removed; the stub says N, h(N) and their times
    event N+1, the stub          h(N+1) continues h(N) by the formula of every event
    event N+2 …                  what was recorded later, if anything

So the chain still binds what was removed: anyone who kept h(N), or the events in a package, can compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from remit.canonical import sha256
from remit.clock import isoformat
from remit.codes import Code
from remit.errors import ChainBrokenError, JournalError, RecordPrunedError
from remit.journal.blobs import BlobRef
from remit.journal.event import JournalFold
from remit.journal.kinds import OptionalRaw, OptionalRef, StreamPruned, decode
from remit.journal.port import Store
from remit.journal.references import reveal

if TYPE_CHECKING:
    from remit.journal.event import Event, StreamHead


RESTORE: Final = "Restore the journal from a backup."
_UNWRITABLE: Final = frozenset({Code.JOURNAL_MISSING, Code.JOURNAL_READ_ONLY, Code.JOURNAL_LOCKED, Code.JOURNAL_FULL})
"""Why a fold may not be kept just now."""


class Blobs(Protocol):
    """Reads the bytes that lie beside events."""

    async def blob(self, digest: str) -> bytes | None:
        """Return the bytes kept under a digest; empty: they were erased; None: they are not there."""
        ...


async def value(store: Blobs, inline: OptionalRaw, ref: OptionalRef) -> bytes | None:
    """As Journal.value."""
    if isinstance(ref, BlobRef):
        data = await store.blob(ref.digest)
        if data is None:
            msg = f"the bytes of {ref.digest} ({ref.bytes} bytes) are gone"
            raise ChainBrokenError(msg, code=Code.BLOB_MISSING, remedy=RESTORE)
        return reveal(ref, data)
    return bytes(inline) if isinstance(inline, msgspec.Raw) else None


async def schema(store: Blobs, digest: str) -> Any:
    """As Journal.schema."""
    data = await store.blob(digest)
    if data is None:
        return None
    if sha256(data) != digest:
        raise ChainBrokenError(f"the schema kept as {digest} has another digest", remedy=RESTORE)
    return msgspec.json.decode(data)


class Folds:
    """The folds of one journal."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, name: str, parts: Iterable[str] = ()) -> list[JournalFold]:
        """A fold that was kept, and these parts of it, of one moment."""
        return await self._store.folds(name, tuple(parts))

    async def keep(self, folds: Sequence[JournalFold], before: int) -> bool:
        """Keep a fold in the place of the one kept at the position `before`; False if another one is kept by now."""
        return await self._store.keep_folds(folds, before)

    async def keep_if_writable(self, folds: Sequence[JournalFold], before: int) -> bool | None:
        """The same; None if nothing can be written just now: they are right all the same, and used without that.

        Nor is a journal of an older Remit brought to today's schema for them: they are made by looking (rule 13).
        """
        if self._store.is_older():
            return None
        try:
            return await self.keep(folds, before)
        except JournalError as error:
            if error.code not in _UNWRITABLE:
                raise
            return None


PRUNED: Final = "pruned"
"""The state of a pruned stream that belongs to another one, such as the question of a job: it is in no list then."""
MARK: Final = "remit.pruned"
"""The label of a pruned stream's head: the seq of its stub."""
_IN_PACKAGE: Final = "Read the evidence package that was archived before: `remit verify FILE.zip` shows its hash."
_NOWHERE: Final = "No evidence package was archived before; only the stub is left, which `remit verify` checks."


def is_pruned(head: StreamHead) -> bool:
    """Return whether nothing of a stream is left but its stub."""
    return head.labels.get(MARK) == str(head.seq)


def stub_of(events: Sequence[Event]) -> StreamPruned | None:
    """Return the stub that the events of a stream, from the first one that is there, begin with; None: there is none.

    Raises ChainBrokenError if it cannot be read.
    """
    if not events or events[0].kind != StreamPruned.KIND:
        return None
    payload = decode(events[0].kind, events[0].data)
    return payload if isinstance(payload, StreamPruned) else None


def beginning(events: Sequence[Event]) -> tuple[int, bytes] | None:
    """Return the length and the chain value that these events continue if a stub is the first; None: nothing."""
    stub = stub_of(events)
    return None if stub is None else (stub.events, bytes.fromhex(stub.hash))


def whole(stream: str, after: int, events: list[Event]) -> list[Event]:
    """Return the events of a stream after a position. Raises RecordPrunedError if some of them were removed."""
    if events and events[0].seq != after + 1 and (stub := stub_of(events)) is not None:
        raise removal(stream, stub, events[0].at)
    return events


def removal(stream: str, stub: StreamPruned, at: int) -> RecordPrunedError:
    """Return what anyone gets who reads what was removed at a time."""
    package = f"; evidence package {stub.package}" if stub.package else ""
    events = f"{stub.events} event{'s' * (stub.events != 1)}"
    reason = f"{stream.partition('/')[2]} was pruned on {isoformat(at)[:10]}: {events}, the last of "
    return RecordPrunedError(
        f"{reason}{isoformat(stub.last_at)[:10]}{package}", remedy=_IN_PACKAGE if stub.package else _NOWHERE
    )
