"""The hash chain of a stream, over the bytes as they are stored.

    h(0) = SHA-256("remit-chain-1" 00 stream)
    h(n) = SHA-256(h(n-1) ‖ seq:8 ‖ at:8 ‖ length of kind:2 ‖ kind ‖ data)      integers big-endian

The stream's name is in the root, so events cannot be moved between streams; `at` and `kind` are covered as well as the
payload. A chain shows that nothing recorded was changed, reordered or dropped in the middle; it cannot show that a
whole stream, or its newest tail, was never there.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from struct import Struct
from typing import Final

from remit.errors import ChainBrokenError
from remit.journal.event import Event

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
