"""Whether a stream is what was recorded: its chain, its head, and the values that its events refer to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from remit.errors import ChainBrokenError, PayloadErasedError
from remit.journal.blobs import BlobRef
from remit.journal.chain import verify
from remit.journal.event import UNSET, Event, Head
from remit.journal.heads import contradiction
from remit.journal.salting import references
from remit.journal.seals import Seals

_RESTORE: Final = "Restore the journal from a backup."


class Examined(msgspec.Struct, frozen=True):
    """What checking a stream found: nothing wrong."""

    events: int
    erased: int
    """Values that were erased with their subject."""
    sealed: bool = False
    """Whether its head has a seal that holds."""


def prove(head: Head, events: Sequence[Event], seals: Seals | None, after: tuple[int, bytes] | None = None) -> None:
    """Raise ChainBrokenError unless these events chain to the head, and its seal holds where there are keys (rule 14).

    `events` are those up to the head's seq: all of them, or those `after` a length and chain value proven before.
    """
    length, last = verify(head.stream, events, after)
    if length != head.seq or last != head.hash:
        msg = f"{head.stream}: the head says {head.seq} events, the stream holds {length} that chain to another value"
        raise ChainBrokenError(msg, remedy=_RESTORE)
    if seals is not None and (doubt := seals.doubt(head)) is not None:
        raise doubt


async def examine(
    head: Head,
    events: Sequence[Event],
    seals: Seals | None,
    value: Callable[[msgspec.UnsetType, BlobRef], Awaitable[object]],
    now: int,
) -> Examined:
    """Check all of it; `value` reads what a reference stands for. Raises ChainBrokenError, the first it finds."""
    prove(head, events, None)
    if said := contradiction(head, events):
        msg = f"{head.stream}: the head is not what its events say: {said}"
        raise ChainBrokenError(msg, remedy="Someone changed the head. Trust the events, and restore a backup.")
    if seals is not None and (doubt := seals.doubt(head)) is not None:
        raise doubt
    erased = 0
    for ref in [ref for event in events for ref in references(event, now)]:
        try:
            await value(UNSET, ref)
        except PayloadErasedError:
            erased += 1
    return Examined(len(events), erased, seals is not None)
