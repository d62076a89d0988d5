"""Whether a stream is what was recorded: its chain, its head, and the values that its events refer to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ChainBrokenError, PayloadErasedError
from remit.journal.blobs import BlobRef
from remit.journal.chain import verify
from remit.journal.event import UNSET, Event, Head
from remit.journal.heads import contradiction
from remit.journal.kinds import OptionalRaw, OptionalRef, Payload, ToolInvocationStarted
from remit.journal.references import Digest, digests_in, digests_of, payload_of, values_in
from remit.journal.seals import Seals, keyless

_RESTORE: Final = "Restore the journal from a backup."


class Values(Protocol):
    """Reads what stands beside events."""

    async def value(self, inline: OptionalRaw, ref: OptionalRef) -> bytes | None:
        """As Journal.value."""
        ...

    async def blob(self, digest: str) -> bytes | None:
        """The bytes kept under a digest."""
        ...


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
    head: Head, events: Sequence[Event], seals: Seals | None, values: Values, now: int, proven: set[str] | None = None
) -> Examined:
    """Check all of it. Raises ChainBrokenError, the first it finds.

    `proven` holds the digests of shared values that were checked for other streams, and grows.
    """
    prove(head, events, None)
    if said := contradiction(head, events):
        msg = f"{head.stream}: the head is not what its events say: {said}"
        raise ChainBrokenError(msg, remedy="Someone changed the head. Trust the events, and restore a backup.")
    if seals is None and head.seal:
        raise keyless(head)
    if seals is not None and (doubt := seals.doubt(head)) is not None:
        raise doubt
    looking = _Examination(values, set() if proven is None else proven)
    for event in events:
        payload = payload_of(event, now)
        if payload is not None:
            await looking.payload(payload)
    return Examined(len(events), looking.erased, seals is not None)


class _Examination:
    """The values of one stream."""

    def __init__(self, values: Values, proven: set[str]) -> None:
        self.erased = 0
        self._values = values
        self._proven = proven
        self._keeps_schemas = True
        """Whether the Remit that recorded this also kept the schemas: it said how risky a tool is, too."""

    async def payload(self, payload: Payload) -> None:
        """Check what an event keeps beside itself."""
        if isinstance(payload, ToolInvocationStarted) and not payload.risk_level:
            self._keeps_schemas = False
        for named in digests_in(payload):
            await self._digest(named, kept=self._keeps_schemas)
        for value in values_in(payload):
            data = value.inline_bytes if value.ref is None else await self._value(value.ref)
            if data is None or value.holds is None:
                continue
            for named in digests_of(value, data):
                await self._digest(named, kept=True)

    async def _value(self, ref: BlobRef) -> bytes | None:
        try:
            return await self._values.value(UNSET, ref)
        except PayloadErasedError:
            self.erased += 1
            return None

    async def _digest(self, named: Digest, *, kept: bool) -> None:
        """Check bytes that are named by their digest alone; `kept`: they were recorded."""
        digest = named.digest
        if digest in self._proven:
            return
        data = await self._values.blob(digest)
        if data is None and (not kept or named.whose != "shared"):
            return  # evidence is kept for a time
        if data == b"" and named.whose == "own":
            self.erased += 1
            return
        if not data:
            msg = f"the bytes of {digest} are gone"
            raise ChainBrokenError(msg, code=Code.BLOB_MISSING, remedy=_RESTORE)
        if sha256(data) != digest:
            raise ChainBrokenError(f"the bytes kept as {digest} have another digest", remedy=_RESTORE)
        self._proven.add(digest)
