"""The stub of a stream that was pruned: one event in the place of all before it.

    event 1 … event N, h(N)      removed; the stub says N, h(N) and their times
    event N+1, the stub          h(N+1) continues h(N) by the formula of every event
    event N+2 …                  what was recorded later, if anything

So the chain still binds what was removed: anyone who kept h(N), or the events in a package, can compare. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remit.clock import isoformat
from remit.errors import RecordPrunedError
from remit.journal.kinds import StreamPruned, decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.journal.event import Event, Head

PRUNED: Final = "pruned"
"""The state of a pruned stream that belongs to another one, such as the question of a job: it is in no list then."""
MARK: Final = "remit.pruned"
"""The label of a pruned stream's head: the seq of its stub."""
_IN_PACKAGE: Final = "Read the evidence package that was archived before: `remit verify FILE.zip` shows its hash."
_NOWHERE: Final = "No evidence package was archived before; only the stub is left, which `remit verify` checks."


def is_pruned(head: Head) -> bool:
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
    why = f"{stream.partition('/')[2]} was pruned on {isoformat(at)[:10]}: {events}, the last of "
    return RecordPrunedError(
        f"{why}{isoformat(stub.last_at)[:10]}{package}", remedy=_IN_PACKAGE if stub.package else _NOWHERE
    )
